"""Keep measured costs in the user's cache folder, so that a machine measures a drafter once and not at every start."""

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..families.zoo import Family
from ..figures import machine
from ..models.build import folder
from ..types import Costs


def file() -> Path:
    return folder() / "costs.json"


def key(family: Family, name: str) -> str:
    """Return what costs depend on: version, machine, models, precision, threads and drafter."""
    here = machine.describe()
    drafter = [name, family.drafters[name].parameters]
    return json.dumps(
        [__version__, here.get("torch"), here["cpu"], here.get("gpu"), family.describe(), drafter], sort_keys=True
    )


def recall(family: Family) -> None:
    """Add the costs of the family's drafters that were measured earlier."""
    stored = read_file()
    for name in family.drafters:
        if name not in family.costs and (values := stored.get(key(family, name))):
            with contextlib.suppress(TypeError, KeyError):  # written by another version
                family.costs[name] = Costs(**{**values, "passes": tuple(values["passes"])})


def store(family: Family) -> None:
    """Write the family's costs beside those of others. If the folder cannot be written, they are measured again."""
    earlier = read_file()
    new = {key(family, name): asdict(costs) for name, costs in family.costs.items()}
    with contextlib.suppress(OSError):
        part = file().with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(earlier | new), encoding="utf-8")
        os.replace(part, file())


def read_file() -> dict[str, dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(file().read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}
