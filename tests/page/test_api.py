"""Ways in for programs: documented examples run as they stand, bad input gets a sentence, a model has three tools."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import toyrun
from gradio_client import Client

from specdec import load, Trace
from specdec.figures import theory
from specdec.lanes import heartbeat, race
from specdec.ui import api, session
from specdec.ui.build import build
from specdec.ui.theme import launch_settings

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"
HOME = "http://127.0.0.1:7860/"
ENDPOINTS = {"/run", "/run_zh", "/compare", "/explain", "/theory"}


@pytest.fixture(scope="module")
def address(shallow: str) -> Iterator[str]:
    """The served app; its engine is in this process, with small models."""
    family = load(shallow, torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_worker", toyrun.Engine(partial(race.race, family), family.describe()))
        demo = build()
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
        yield url
        demo.close()


@pytest.fixture(scope="module")
def client(address: str) -> Client:
    return Client(address, verbose=False)


def examples(language: str) -> list[str]:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.M | re.S)
    return [block for block in blocks if HOME in block]


def test_the_python_example_runs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = examples("python")
    told: dict[str, Any] = {}
    exec(example.replace(HOME, address), told)
    assert Trace.loads(told["trace"]).header.prompt == "Once upon a time"
    assert 0.0 <= told["figures"]["alpha"] <= 1.0
    printed = capsys.readouterr().out
    assert "expected_tokens" in printed and "3 drafts joined the text" in printed


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_curl_examples_run(address: str) -> None:
    (example,) = examples("sh")
    script = f"set -euo pipefail\n{example.replace(HOME, address)}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    answers = [json.loads(line[6:])[0] for line in re.findall(r"event: complete\n(data: .*)", done.stdout)]
    assert done.returncode == 0 and len(answers) == 3, done
    predicted, compared, explained = answers
    assert predicted["expected_tokens"] == pytest.approx(theory.expected_tokens(0.7, 4), abs=1e-6)
    assert compared["same_text"] and explained["said"]


def test_every_endpoint_is_documented_and_typed(client: Client) -> None:
    told = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert told.keys() == ENDPOINTS == set(re.findall(r"^\| `(/\w+)`", DOCS.read_text("utf-8"), re.M)) | {"/run_zh"}
    for name in ENDPOINTS - {"/run", "/run_zh"}:
        assert told[name]["description"] and told[name]["returns"][0]["python_type"]["type"].startswith("dict"), name
        assert all(one["python_type"]["type"] in ("str", "int", "float") for one in told[name]["parameters"])


def test_a_race_is_the_same_run_that_is_then_explained(client: Client) -> None:
    asked = {"prompt": "Once upon a time", "k": 3, "temperature": 0.9, "max_tokens": 16, "seed": 5}
    compared = client.predict(**asked, api_name="/compare")
    assert compared["texts"].keys() == {"speculative", "plain"} and compared["settings"]["seed"] == 5
    cycle = next(one for one in compared["cycles"] if len(one["tokens"]) > 1)
    told = client.predict(**asked, cycle=cycle["cycle"], position=1, api_name="/explain")
    assert f"{told['token']!r} {told['status']}" == cycle["tokens"][0]


# ---- input that nobody should send ----

NO_TRACE = ["", "{}", None, ["a"], "\ud800", toyrun.header().line(), "[" * 100_000, "x" * 16_000_001]
BAD: list[tuple[Any, dict[str, Any]]] = [
    *((api.theory, {"alpha": value}) for value in (-0.1, 1.1, math.nan, "a", None, True, [0.5])),
    *((api.theory, {"k": value}) for value in (-1, 65, 2.5, 1e300)),
    *((api.theory, {name: value}) for name in "cvo" for value in (-1, 101)),
    *((api.explain, {"trace": value}) for value in NO_TRACE),
    *((api.explain, {"cycle": value}) for value in (-1, 0.5, "1", None, True, 9_999, 10**9)),
    *((api.explain, {"position": value}) for value in (-1, 0.5, "1", None, 9_999, 10**9)),
    *((api.explain, {"prompt": value}) for value in (" ", None, 7, "a" * 4001)),
    *((api.compare, {"prompt": value}) for value in ("", None, 7, "a\ud800", "a" * 4001)),
    (api.compare, {"prompt": "Hi", "k": 17}),
    (api.compare, {"prompt": "Hi", "drafter": "magic"}),
]


@pytest.mark.parametrize(("question", "sent"), BAD, ids=lambda value: getattr(value, "__name__", repr(value)[:30]))
def test_what_is_refused_is_answered_with_a_sentence(question: Any, sent: dict[str, Any]) -> None:
    *_, told = api.answering(question)(**sent)
    assert told.keys() == {"error"} and told["error"].endswith(".") and len(told["error"]) < 500
    assert "Traceback" not in told["error"] and "\n" not in told["error"]
    json.dumps(told, allow_nan=False).encode()


def test_a_race_that_is_cut_says_so_and_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, **__: Any) -> Iterator[Any]:
        yield from toyrun.events()[:9]
        monkeypatch.setattr(heartbeat, "time", SimpleNamespace(monotonic=lambda: math.inf))
        yield from toyrun.events()[9:]

    monkeypatch.setattr(session, "_worker", toyrun.Engine(slow))
    *_, last = api.answering(api.compare)("Hi")
    assert "seconds" in last["notice"] and last["texts"]["speculative"]


# ---- models ----


def test_without_the_extra_there_is_no_server_and_no_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert launch_settings()["mcp_server"] is False


def test_a_model_has_three_tools(address: str) -> None:
    pytest.importorskip("mcp")
    import anyio
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def visit() -> tuple[Any, list[str]]:
        async with (
            streamablehttp_client(f"{address}gradio_api/mcp/") as (read, write, _),
            ClientSession(read, write) as visitor,
        ):
            await visitor.initialize()
            tools = (await visitor.list_tools()).tools
            asked = [
                ("theory", {"alpha": 0.7}),
                ("explain", {"cycle": 1, "position": 1}),
                ("compare", {"prompt": "Once upon a time", "max_tokens": 8}),
                ("compare", {"prompt": " "}),
            ]
            answers = [await visitor.call_tool(name, sent) for name, sent in asked]
            assert not any(answer.isError for answer in answers)
            return tools, [answer.content[0].text for answer in answers]

    with ThreadPoolExecutor() as apart:  # tests of the browser leave a loop in this thread
        tools, (predicted, explained, compared, refused) = apart.submit(anyio.run, visit).result()
    assert {tool.name for tool in tools} == set(api.TOOLS)
    for tool in tools:
        assert "Returns:" in tool.description
        assert all(one["description"] for one in tool.inputSchema["properties"].values())
    assert "'expected_tokens': 2.7731" in predicted and "drafts joined the text" in explained
    assert "measured_speedup" in compared and "'same_text': True" in compared and "error" in refused
