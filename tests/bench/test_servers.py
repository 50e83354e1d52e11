"""The suite over two servers, as a real vLLM answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from record import PROMPTS, TOKENS
from stub import Asked, NO_TEMPLATE, recording, Reply, Stub

from specdec import cli
from specdec.bench import suites


def again(name: str) -> Stub:
    """That recording, whatever the seed and however much is asked for."""

    def wanted(path: str, body: Any) -> str:
        return path + json.dumps([(body or {}).get(part) for part in ("prompt", "temperature", "stream")])

    calls = {wanted(call["path"], call["body"]): call for call in reversed(recording(name)["calls"])}

    def answer(asked: Asked) -> Reply:
        if asked.path == "/tokenize" and "messages" in asked.body:  # asked of models without a template only
            return Reply.of({"error": {"message": NO_TEMPLATE}}, 400)
        call = calls[wanted(asked.path, asked.body)]
        return Reply([block.encode() for block in call["blocks"]], call["status"], call["type"])

    return Stub(answer)


def measured(path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Any:
    monkeypatch.setattr(suites, "PROMPTS", {kind: (prompt,) for kind, prompt in PROMPTS.items()})
    asked = ["--tokens", str(TOKENS), "--repeats", "1", "--json", str(path)]
    assert cli.main(["bench", "--suite", "server", *options, *asked]) == 0
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_server_is_measured_beside_a_plain_one_and_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with again("vllm-draft_model-mended") as fast, again("vllm-plain") as slow:
        path, pair = tmp_path / "found.json", ("--server", fast.address, "--plain", slow.address)
        report, alone = (measured(path, monkeypatch, *words) for words in (pair, pair[:2]))
    rows = {(row["domain"], row["temperature"]): row for row in report["rows"]}
    assert set(rows) == {(kind, t) for kind in PROMPTS for t in (0.0, 0.8)}
    for (_, temperature), row in rows.items():
        assert row["cycles"] in ("exact", "merged") and row["tau"] > 1.0 and 0.0 < row["alpha"] <= 1.0
        assert row["measured_speedup"] and row["tokens_per_second"] and row["plain_tokens_per_second"]
        assert row["identical_to_plain"] is (True if temperature == 0.0 else None)
    about = report["provenance"]["models"]
    assert (about["server"]["speculates"], about["plain_server"]["speculates"]) == (True, False)
    assert fast.address not in json.dumps(report)
    assert all(row["measured_speedup"] is row["identical_to_plain"] is None for row in alone["rows"])
    assert all(row["tau"] > 1.0 for row in alone["rows"])


def test_a_server_that_breaks_off_ends_the_suite(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with again("vllm-plain") as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(suites, "PROMPTS", {"story": (PROMPTS["story"],)})
        asked = ["--tokens", "2", "--repeats", "1", "--json", str(tmp_path / "found.json")]  # it writes more than that
        assert cli.main(["bench", "--suite", "server", "--server", server.address, *asked]) == 2
    assert "more tokens than it was asked for" in capsys.readouterr().err and not list(tmp_path.iterdir())
