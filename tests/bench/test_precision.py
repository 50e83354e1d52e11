"""Quantise or draft: what is compared with what, and another engine's process beside us."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stub import Asked, Reply, Stub

from specdec.bench.prompts import PROMPTS
from specdec.servers.base import ServerError
from specdec.servers.connect import connect
from specdec.types import SamplingParams
from tools.bench import llama_cpp, precision
from tools.bench.options import Options
from tools.bench.precision import DEFAULT, Lane, OURS, PLAIN, Written
from tools.bench.tables import precision as table

SPEEDS = {(PLAIN, 0): 1.0, (DEFAULT, 3): 1.5, (DEFAULT, 7): 1.25}
FASTER = {"float32": 1.0, "bfloat16": 1.5, "int8": 2.0}
OPTIONS = Options("precision", tokens=4, repeats=3, k=(3, 7))


class Machine:
    """Every run is slower than the one before, as on a machine that others use; neighbours are alike."""

    def __init__(self) -> None:
        self.runs: list[tuple[Lane, int]] = []

    def __call__(self, lane: Lane, prompt: str, params: SamplingParams) -> Written:
        self.runs.append((lane, params.seed))
        rate = 100.0 * FASTER[lane.precision] * SPEEDS[lane.method, lane.k] * 0.999 ** len(self.runs)
        return Written((1, 2, 3, len(lane.precision)), rate, 2.0)


def lanes() -> list[Lane]:
    return [Lane(OURS, name, *one) for name in FASTER for one in SPEEDS]


def rows(machine: Callable[..., Written], temperature: float = 0.0) -> list[dict[str, Any]]:
    return list(precision.side_by_side(machine, lanes(), "story", temperature, OPTIONS))


def test_a_lane_is_told_at_its_best_k_as_a_ratio_to_its_neighbours() -> None:
    found = {(row["precision"], row["method"]): row for row in rows(Machine())}
    assert len(found) == 6
    for (name, method), row in found.items():
        k = 0 if method == PLAIN else 3
        assert row["k"] == k and row["same_text"] == [6, 6] and row["tau"] == 2.0
        assert row["ratio"] == pytest.approx(FASTER[name] * SPEEDS[method, k], rel=0.01)
        low, high = row["ratio_interval"]
        assert low <= row["ratio"] <= high
        assert row["tokens_per_second"] < 0.98 * 100 * row["ratio"]  # the machine grew slower; the ratio did not


def test_a_drafting_lane_is_held_against_its_plain_lane_text_by_text() -> None:
    """Fast texts and slow ones: only the ratio of the same text says what drafting did to it."""

    def written(lane: Lane, prompt: str, params: SamplingParams) -> Written:
        slow = prompt == PROMPTS["story"][0]  # the only text that drafting slows down
        pace = (100.0 if slow else 300.0) * FASTER[lane.precision]
        return Written((1,), pace * (1.0 if lane.method == PLAIN else 0.5 if slow else 1.2))

    found = [row for row in rows(written) if row["method"] != PLAIN]
    for row in found:
        assert row["over_plain"] == pytest.approx(1.2) and row["over_plain_interval"] == pytest.approx([1.2, 1.2])
        assert row["faster_than_plain"] == [5, 6]
    assert len(found) == 3 and all("over_plain" not in row for row in rows(written) if row["method"] == PLAIN)


def test_the_rounds_that_choose_k_have_other_seeds_than_those_that_report() -> None:
    machine = Machine()
    rows(machine, 0.8)
    first = next(i for i, (_, seed) in enumerate(machine.runs) if seed == 1)
    losing = {lane for lane, _ in machine.runs[:first]} - {lane for lane, _ in machine.runs[first:]}
    assert losing == {lane for lane in lanes() if lane.k == 7}
    assert {seed for _, seed in machine.runs[first:]} == {1, 2, 3} and {seed for _, seed in machine.runs[:first]} == {0}


def test_a_lane_that_writes_another_text_is_seen() -> None:
    def parted(lane: Lane, prompt: str, params: SamplingParams) -> Written:
        return Written((lane.k > 0 and prompt.startswith("The boat"),), 1.0)

    found = {(row["precision"], row["method"]): row["same_text"] for row in rows(parted)}
    assert found["int8", PLAIN] == [6, 6] and found["int8", DEFAULT] == [5, 6]
    assert all(row["same_text"] is None for row in rows(Machine(), 0.8))


def test_the_table_names_the_best_way_to_draft(tmp_path: Path) -> None:
    report = {
        "rows": [
            {"engine": OURS, "precision": "int8", "method": method, "domain": "story", "temperature": 0.0, "k": k,
             "ratio": ratio}
            for method, k, ratio in ((PLAIN, 0, 2.0), (DEFAULT, 3, 3.0), ("block", 5, 2.5))
        ],
        "law_moved": {"int8": 0.0123}, "llama_cpp": None, "machine": {"cpu": "a CPU", "cores": 2},
        "provenance": {"measured": "2026-11-23T00:00:00", "commit": "abc"},
    }  # fmt: skip
    assert "| int8 | specdec | 2.00 → 3.00, +50% (`draft_model`, 3) | 0.012 |" in table(report)
    assert table(report).endswith("a CPU, 2 cores, 2026-11-23, commit abc.")


def answer(asked: Asked) -> Reply:
    if asked.path == "/v1/models":
        return Reply.of({"data": [{"id": "target", "owned_by": "llamacpp"}]})
    if asked.path == "/completion":
        return Reply.of({"tokens": [5, 6, 7], "timings": {"predicted_ms": told["ms"]}})
    return Reply.of({})


told: dict[str, Any] = {"ms": 40.0}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(answer) as server:
        yield server


def test_its_own_clock_is_read(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    server = connect(stub.address)
    params = SamplingParams(temperature=0.8, max_tokens=3, ignore_end=True)
    assert server.timed([1, 2], params) == ((5, 6, 7), 0.04)  # type: ignore[attr-defined]
    body = stub.asked[-1].body
    assert body["prompt"] == [1, 2] and body["n_predict"] == 3 and body["ignore_eos"] and body["n_probs"] == 0
    for wrong in (None, 0, "40"):
        monkeypatch.setitem(told, "ms", wrong)
        with pytest.raises(ValueError, match="times that cannot be read"):
            server.timed([1, 2], params)  # type: ignore[attr-defined]


def test_a_server_that_does_not_start_is_told_by_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp.Servers, "model", lambda self, name, numbers: tmp_path / name)
    executable = tmp_path / "llama-server"
    executable.write_text(f"#!{sys.executable}\nimport sys\nprint('no such option')\nsys.exit(1)\n")
    executable.chmod(0o755)
    said = "llama-server did not start: no such option"
    with llama_cpp.Servers(str(executable), "embedded", 1) as servers, pytest.raises(ValueError, match=said):
        servers.lane("q8_0")


@pytest.mark.long
def test_the_files_are_those_of_the_export(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    with llama_cpp.Servers("", "embedded", 1) as servers:
        names = [servers.model("target", "f32").name, servers.model("draft_model", "q8_0").name]
        assert names == ["target-f32.gguf", "draft_model-q8_0.gguf"]


def test_a_server_is_started_once_with_what_its_lane_says_and_ends_with_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp.Servers, "model", lambda self, name, numbers: tmp_path / f"{name}-{numbers}.gguf")
    executable, said = tmp_path / "llama-server", tmp_path / "said"
    executable.write_text(f"""#!{sys.executable}
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
words = sys.argv[1:]
with Path({str(said)!r}).open("a") as file:
    file.write(json.dumps(words) + "\\n")
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        data = json.dumps({{"data": [{{"id": "t", "owned_by": "llamacpp"}}]}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
HTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Handler).serve_forever()
""")
    executable.chmod(0o755)
    with llama_cpp.Servers(str(executable), "embedded", 3) as servers:
        assert servers.lane("q8_0") is servers.lane("q8_0")
        servers.lane("q8_0", 5)
        plain, drafting = map(json.loads, said.read_text().splitlines())
        assert plain[plain.index("--threads") + 1] == "3" and not any(word.startswith("--spec") for word in plain)
        assert drafting[drafting.index("--spec-draft-n-max") + 1] == "5"
        assert Path(drafting[drafting.index("--model") + 1]).name == "target-q8_0.gguf"
        address = f"http://127.0.0.1:{plain[plain.index('--port') + 1]}"
    with pytest.raises(ServerError):
        connect(address)


def test_a_polite_kill_ends_the_servers_too(tmp_path: Path) -> None:
    ended = False
    with pytest.raises(KeyboardInterrupt), llama_cpp.Servers("", "embedded", 1) as servers:
        servers._stack.callback(lambda: (tmp_path / "ended").touch())
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        ended = True
    assert (tmp_path / "ended").exists() and not ended


def test_a_place_that_was_named_and_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(llama_cpp.VARIABLE, "/nowhere/llama-server")
    with pytest.raises(ValueError, match="names /nowhere/llama-server, which is no command"):
        llama_cpp.command()
