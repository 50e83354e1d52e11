"""The API: the documented examples run as they are, and bad input gets a sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from gradio_client import Client

from specdec import Trace
from specdec.families.zoo import load
from specdec.lanes import race
from specdec.ui.build import build
from specdec.ui.session import session
from specdec.ui.tabs.race import run
from specdec.ui.theme import launch_settings
from tests import toyrun

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"
HOME = "http://127.0.0.1:7860/"


@pytest.fixture(scope="module")
def address(shallow) -> Iterator[str]:
    """The served app; its engine is in this process, with small models."""
    family = load(shallow, torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "process", toyrun.Engine(partial(race.race_lanes, family), family.describe()))
        demo = build()
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
        yield url
        demo.close()


def example(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.M | re.S)
    assert HOME in block
    return str(block)


@pytest.mark.long
def test_the_python_example_runs(address) -> None:
    names: dict[str, Any] = {}
    exec(example("python").replace(HOME, address), names)
    assert Trace.loads(names["trace"]).header.prompt == "Once upon a time"


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_curl_example_runs(address) -> None:
    script = f"set -euo pipefail\n{example('sh').replace(HOME, address)}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    lines = [json.loads(line) for line in re.findall(r"^data: (\[.*)", done.stdout, re.M)]
    assert done.returncode == 0 and "".join(line[0] for line in lines if line[0]).count('"event"') > 2, done


def test_every_endpoint_is_documented_and_typed(address) -> None:
    endpoints = Client(address, verbose=False).view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert endpoints.keys() == {"/run", "/run_zh"} == set(re.findall(r"`(/\w+)`", DOCS.read_text("utf-8")))
    for one in endpoints.values():
        types = {each["python_type"]["type"] for each in one["parameters"]}
        assert one["description"] and types == {"str", "int", "float", "bool"}


BAD: list[dict[str, Any]] = [
    *({"prompt": value} for value in ("", " ", None, 7, "a" * 4001)),
    {"prompt": "Hi", "k": 17},
    {"prompt": "Hi", "drafter": "magic"},
]


@pytest.mark.parametrize("sent", BAD, ids=lambda value: repr(value)[:30])
def test_what_is_refused_is_answered_with_a_sentence(sent: dict[str, Any]) -> None:
    (answer,) = map(json.loads, run(**sent))
    assert answer.keys() == {"error"} and answer["error"].endswith(".") and len(answer["error"]) < 500
    assert "Traceback" not in answer["error"] and "\n" not in answer["error"]
