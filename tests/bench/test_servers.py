"""The suite over two servers, as a real vLLM answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from record import PROMPTS, TOKENS
from stub import Asked, NO_TEMPLATE, recording, Reply, Stub

from specdec import cli
from specdec.bench import servers


def again(name: str) -> Stub:
    """That recording, whatever the seed and however much is asked for."""

    def wanted(path: str, body: Any) -> str:
        return path + json.dumps([(body or {}).get(part) for part in ("prompt", "temperature", "stream")])

    calls = {wanted(call["path"], call["body"]): call for call in reversed(recording(name)["calls"])}

    def answer(asked: Asked) -> Reply:
        if asked.path == "/tokenize" and "messages" in asked.body:  # asked of models without a template only
            return Reply.of({"error": {"message": NO_TEMPLATE, "type": "BadRequestError", "code": 400}}, 400)
        call = calls[wanted(asked.path, asked.body)]
        return Reply([block.encode() for block in call["blocks"]], call["status"], call["type"])

    return Stub(answer)


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PROMPTS", {kind: (prompt,) for kind, prompt in PROMPTS.items()})


def measured(path: Path, *options: str) -> Any:
    asked = ["--tokens", str(TOKENS), "--repeats", "1", "--json", str(path)]
    assert cli.main(["bench", "--suite", "server", *options, *asked]) == 0
    return json.loads(path.read_text(encoding="utf-8"))


def test_two_servers_side_by_side(prompts: None, tmp_path: Path) -> None:
    with again("vllm-draft_model-mended") as fast, again("vllm-plain") as slow:
        report = measured(tmp_path / "found.json", "--server", fast.address, "--plain", slow.address)
    rows = {(row["domain"], row["temperature"]): row for row in report["rows"]}
    assert set(rows) == {(kind, t) for kind in PROMPTS for t in (0.0, 0.8)}
    for (_, temperature), row in rows.items():
        assert row["cycles"] in ("exact", "merged") and row["tau"] > 1.0 and 0.0 < row["alpha"] <= 1.0
        assert row["measured_speedup"] and row["tokens_per_second"] and row["plain_tokens_per_second"]
        assert row["identical_to_plain"] is (True if temperature == 0.0 else None)
    assert [(one["requests"], one["temperature"]) for one in report["under_load"]] == [
        (crowd, temperature) for temperature in (0.0, 0.8) for crowd in (1, 4, 16)
    ]
    assert all(one["gain"] and one["plain_ms_per_token"] > 0.0 for one in report["under_load"])
    about = report["provenance"]["models"]
    assert (about["server"]["speculates"], about["plain_server"]["speculates"]) == (True, False)
    assert fast.address not in json.dumps(report)


def test_without_a_plain_server_there_is_no_speed_up(prompts: None, tmp_path: Path) -> None:
    with again("vllm-draft_model-mended") as server:
        report = measured(tmp_path / "found.json", "--server", server.address)
    assert all(row["measured_speedup"] is None and row["tau"] > 1.0 for row in report["rows"])
    assert all(one["gain"] is None and one["speculative_tokens_per_second"] for one in report["under_load"])


@pytest.mark.parametrize("words", [["--suite", "server"], ["--plain", "http://127.0.0.1:1"]])
def test_an_address_belongs_to_the_suite(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", *words]) == 2
    assert "belong to --suite server" in capsys.readouterr().err


def test_a_server_that_breaks_off_ends_the_suite(
    prompts: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    with again("vllm-plain") as server:
        asked = ["--tokens", "2", "--repeats", "1", "--json", str(path)]  # it writes more than that
        assert cli.main(["bench", "--suite", "server", "--server", server.address, *asked]) == 2
    assert "more tokens than it was asked for" in capsys.readouterr().err and not path.exists()
