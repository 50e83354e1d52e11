"""List statements about other software that are due for a check. `assets/sources.json` has them, with sources.

`python -m tools.sources 30` lists the entries whose last check was more than 30 days ago, oldest first.
"""

import sys
from collections.abc import Iterator
from datetime import date
from typing import Any

from specdec.paths import ASSETS
from specdec.ui.text import read_json

DAYS = 30


def sources() -> dict[str, list[dict[str, Any]]]:
    """Read the entries by kind.

    `systems`: how to switch speculation on. `defaults`: how an engine samples by default. `uses`: who serves with it.
    `answers`: statements in the Guide about other software. `hosts`: those in docs/hosting.md. `certified`: statements
    about engines in docs/certify-a-server.md and docs/reports. `claims`: figures that *Theory* works out.
    `formats`: what runs the drafters of `families/published.py`, and how docs/serving.md says that heads are read.
    """
    return read_json(ASSETS / "sources.json")  # type: ignore[no-any-return]


def entries() -> Iterator[tuple[str, date, list[str]]]:
    """Yield the name, the day of the last check and the links of every entry, and of assets/hardware.json."""
    for kind, listed in sources().items():
        for entry in listed:
            yield f"{kind}: {entry['name']}", date.fromisoformat(entry["checked"]), entry["links"]
    hardware = read_json(ASSETS / "hardware.json")
    links = [machine["link"] for machine in hardware["machines"] if "link" in machine]
    yield "hardware", date.fromisoformat(hardware["read"]), links


def stale(days: int = DAYS, today: date | None = None) -> list[str]:
    """Return a line for each entry whose last check was more than `days` days before `today`."""
    now = today or date.today()
    old = [(checked, name, links) for name, checked, links in entries() if (now - checked).days > days]
    return [f"{checked}  {name}  {' '.join(links)}" for checked, name, links in sorted(old)]


if __name__ == "__main__":
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    print("\n".join(stale(limit)) or f"Every entry was checked in the last {limit} days.")
