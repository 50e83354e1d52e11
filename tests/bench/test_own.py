"""Prompts of one's own: a row for each, the slowest first, and its run opens on the page."""

import pytest

from specdec import cli as terminal
from specdec import Engine, Trace
from specdec.bench.own import measure_prompts, read_prompts


def test_a_file_of_prompts_becomes_rows_and_the_slowest_run(shallow, tmp_path, capsys) -> None:
    file, saved = tmp_path / "prompts.txt", tmp_path / "worst.jsonl"
    file.write_text('Once upon a time\n\n{"prompt": "def main():"}\n', encoding="utf-8")
    words = ["bench", "--target", shallow, "--prompts", str(file), "--drafter", "draft_model", "-k", "2"]
    assert terminal.main([*words, "--tokens", "6", "--repeats", "1", "--save", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "α by place" in out and "Once upon a time" in out and "def main():" in out
    assert Trace.load(saved).header.prompt in read_prompts(file)
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        frame = measure_prompts(engine, read_prompts(file), ["draft_model", "prompt_lookup"], 2, 0.0, 6, 1)
    assert len(frame) == 4 and frame["speedup"].dropna().is_monotonic_increasing


def test_a_file_without_prompts_says_what_to_write(tmp_path) -> None:
    for content, sentence in (("\n", "holds no prompt"), ('{"text": "x"}', "line 1: JSON needs `prompt`")):
        (tmp_path / "wrong").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=sentence):
            read_prompts(tmp_path / "wrong")
