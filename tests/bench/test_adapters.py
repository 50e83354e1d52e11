"""Engines of others behind the certificate: the rows, and each adapter where its package is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from specdec.families.zoo import load
from specdec.proof.pair import CachedRows
from specdec.types import SamplingParams
from tools.bench.engines import __main__ as engines
from tools.bench.engines.adapter import PLAIN
from tools.bench.engines.browser import chromium
from tools.bench.engines.gguf import convert
from tools.options import run

OWN = "browser"  # it starts a browser, so a process of its own does
PAIRS = [(name, method) for name, engine in engines.ENGINES.items() if name != OWN for method in engine.methods]
MODULES = {
    "litgpt": "litgpt", "onnx": "onnxruntime_genai", "mlx": "mlx_lm", "llama": "llama_cpp",
    "openvino": "openvino_genai",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_an_adapter_writes_the_targets_greedy_text_and_keeps_its_seed(name: str, method: str, tmp_path: Path) -> None:
    if not find_spec(module := MODULES.get(name, name)):
        pytest.skip(f"{module} is not installed")
    wrong = name == "litgpt" and method != PLAIN  # docs/reports/litgpt-greedy.md: it is greedy by the filter alone
    engine, _ = engines.start(engines.Options(name, method, mended=wrong), tmp_path)
    prompt, params = engine.tokenize("import os\nimport sys\n"), SamplingParams(max_tokens=12)
    asked = replace(params, temperature=1.0, top_k=1) if wrong else params
    family = load()
    rows, text = CachedRows(family.target, len(prompt) + 12), prompt
    for _ in range(12):
        text = (*text, int(rows.logits(text).argmax()))
    told = list(engine.stream(prompt, asked))
    written = [token.id for part in told if hasattr(part, "tokens") for token in part.tokens]
    assert written == list(text[len(prompt) :])
    drawn = [engine.sample(prompt, replace(params, temperature=1.0, seed=7), 6) for _ in range(2)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 1


@pytest.mark.long
@pytest.mark.skipif(chromium() is None or not find_spec("playwright"), reason="no chromium, or no playwright")
def test_our_engine_in_a_chromium_writes_the_text_of_seven_bits() -> None:
    command = [sys.executable, "-m", "tools.bench.engines", OWN, "--method", "draft_model", "--temperature", "0"]
    done = subprocess.run([*command, "--contexts", "code"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "SpecDec in Chromium" in done.stdout and "lossless" in done.stdout, done.stderr


def certificate(**more: Any) -> dict[str, Any]:
    place = {"name": "code", "text": "a", "needed": {"one": 10, "two": 2_000, "three": None}, "place": "left out"}
    return {
        "server": {"kind": "new", "version": "1"}, "temperature": 0.8, "draws": 1_000, "length": 6,
        "reference": "weights", "verdict": "lossless", "status": 0, "sentences": [], "seconds": 1.5,
        "contexts": [place],
    } | more  # fmt: skip


def test_a_row_says_how_many_mistakes_would_have_shown_and_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"rows": [{"engine": "vLLM"}, {"engine": "mlx-lm"}]}), encoding="utf-8")
    found = engines.row(certificate(), engines.Options(top_k=20))
    assert (found["shown"], found["known"], found["top_k"], found["seconds"]) == (1, 3, 20, 2) and "top_p" not in found
    assert "place" not in found["contexts"][0]
    red = engines.row(certificate(contexts=[{"name": "code"}]), engines.Options())
    assert red["shown"] is None and "top_k" not in red
    for one in (found, red, red | {"seconds": 9}):
        engines.add(path, one)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert [one["engine"] for one in rows] == ["vLLM", "mlx-lm", "new", "new"] and rows[-1]["seconds"] == 9


@pytest.mark.parametrize(
    "words", [["litgpt", "--method", "ngram"], ["mlx", "--mended"], ["nobody"]], ids=["method", "mended", "engine"]
)
def test_what_an_engine_has_not_is_refused(words: list[str]) -> None:
    try:
        assert run(engines.report, engines.Options, words, "engines") == 2
    except SystemExit as end:
        assert end.code == 2


def test_without_llama_cpps_converter_one_sentence_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONVERT_HF_TO_GGUF", raising=False)
    with pytest.raises(ValueError, match=r"name llama.cpp's convert_hf_to_gguf.py in CONVERT_HF_TO_GGUF"):
        convert(tmp_path, tmp_path / "model.gguf")
