"""The API: the documented examples run as they are, and bad input gets a sentence."""

from __future__ import annotations

import json
import math
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
from specdec.messages import Refused
from specdec.ui.api import run
from specdec.ui.request import check
from specdec.ui.session import session
from tests import toyrun

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"
HOME = "http://127.0.0.1:7860/"


@pytest.fixture
def engine(shallow, monkeypatch) -> None:
    """The engine is in this process, with small models."""
    family = load(shallow, torch.float32)
    engine = toyrun.Engine(partial(race.race_lanes, family), family.describe())
    monkeypatch.setattr(session, "process", engine)


def example(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.M | re.S)
    assert HOME in block
    return str(block)


@pytest.mark.long
def test_the_python_example_runs(address, engine) -> None:
    names: dict[str, Any] = {}
    exec(example("python").replace(HOME, address), names)
    assert Trace.loads(names["trace"]).header.prompt == "Once upon a time"


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_curl_example_runs(address, engine) -> None:
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


BAD: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "empty"),
    ({"prompt": " \n\t "}, "empty"),
    ({"prompt": None}, "text"),
    ({"prompt": 7}, "text"),
    ({"prompt": "a" * 4001}, "4,001"),
    ({"drafter": "magic"}, "drafter"),
    ({"drafter": "adaptive:none"}, "drafter"),
    ({"drafter": "adaptive:adaptive"}, "drafter"),
    ({"rule": "magic"}, "rule"),
    ({"rule": {}}, "rule"),
    ({"target": "../family"}, "target"),
    ({"k": 17}, "16"),
    ({"k": 2.5}, "whole"),
    ({"k": math.nan}, "whole"),
    ({"temperature": -0.1}, "temperature"),
    ({"top_p": 0}, "Top-p"),
    ({"top_k": 10**9}, "Top-k"),
    ({"max_tokens": 257}, "256"),
    ({"seed": 10**400}, "seed"),
    ({"stop": "a\nb\nc\nd\ne"}, "stop"),
    ({"stop": "x" * 65}, "stop"),
    ({"stop": "\ud800"}, "stop"),
    ({"prompt": "Once \ud800"}, "half of a character"),
    ({"peer": "yes"}, "true or false"),
]


@pytest.mark.parametrize(("change", "word"), BAD, ids=lambda value: repr(value)[:40])
def test_bad_input_gets_one_sentence_that_names_the_trouble(change: dict[str, Any], word: str) -> None:
    asked = {"prompt": "Once upon a time", **change}
    with pytest.raises(Refused) as caught:
        check(**asked)
    message = str(caught.value)
    assert word in message and message.endswith(".") and len(message) < 200
    assert "{" not in message and "\n" not in message
    answers: Iterator[str] = run(**asked)
    assert [json.loads(answer) for answer in answers] == [{"error": message}]
