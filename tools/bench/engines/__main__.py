"""`python -m tools.bench.engines litgpt --method draft_model`: an engine of others under the certificate.

In a virtual environment of its own, beside this project's requirements: `pip install litgpt` and so on. The embedded
pair, or SmolLM2-135M, is asked in float32, K = 4, and its exact distribution is the reference. `--json` adds the row
to a report.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from specdec import __version__
from specdec.export import export
from specdec.families import zoo
from specdec.families.presets import STAR
from specdec.methods import EMBEDDED
from specdec.servers.base import Facts
from specdec.servers.certificate import certify, CONTEXTS, Weights
from specdec.servers.in_process import InProcess
from specdec.servers.verdict import shown_by

from ...options import option, run
from . import browser, hub, litgpt, llama, mlx, onnx, openvino, own, smollm2
from .adapter import Asked, Engine

ENGINES: dict[str, Engine] = {
    "litgpt": litgpt.ENGINE, "onnx": onnx.ENGINE, "mlx": mlx.ENGINE, "transformers": hub.ENGINE,
    "llama": llama.ENGINE, "openvino": openvino.ENGINE, "specdec": own.ENGINE,
    "browser": browser.ENGINE,
}  # fmt: skip
UNUSED = {EMBEDDED: "ÿ", STAR: "<jupyter_script>"}  # tokens that no text here has, the byte 0xFF among them
KEPT = ("name", "text", "greedy", "drafted", "tests", "red", "witness", "seconds")


@dataclass(frozen=True)
class Options:
    """One certificate of an engine of others, in this process."""

    engine: str = option("litgpt", "whose", positional=True, choices=tuple(ENGINES))
    method: str = option("draft_model", "how it drafts; 'plain' is the control")
    family: str = option(EMBEDDED, "whose weights", choices=(EMBEDDED, STAR))
    temperature: float = option(0.8, "0 compares greedy texts")
    top_k: int = option(0, "the likeliest tokens alone; 0 is off")
    top_p: float = option(1.0, "the likeliest tokens of so much probability; 1 is off")
    k: int = option(4, "tokens drafted a cycle")
    draws: int = option(1_000, "texts at each prompt")
    contexts: tuple[str, ...] = option(("peaked", "code"), "prompts", choices=tuple(CONTEXTS))
    mended: bool = option(False, "with one known defect taken away that hides the sampling")
    json: Path | None = option(None, "a report to which the row is added, in place of an older one of the same")

    def __post_init__(self) -> None:
        if self.method not in (known := ENGINES[self.engine].methods):
            raise ValueError(f"--method of {self.engine} is one of {', '.join(known)}")
        if self.mended and not ENGINES[self.engine].mended:
            raise ValueError(f"nothing of {self.engine} is mended here")


def made(
    engine: Engine, method: str, k: int, work: Path, mended: bool = False, family: str = EMBEDDED
) -> tuple[InProcess, Weights]:
    """The engine over a pair, which `work` gets in the Hub's layout, and its reference."""
    source, pair = family, work / "pair"
    if family == STAR:
        smollm2.write(work / STAR)
        source = str(work / STAR)
    if not pair.exists():
        export(source, pair)
    target, draft = pair / "target", pair / "draft_model"
    words = json.loads((target / "tokenizer.json").read_text(encoding="utf-8"))
    asked = Asked(source, target, draft, method, k, work, words["model"]["vocab"][UNUSED[family]], mended)
    version = metadata.version(engine.package) if engine.package else __version__
    facts = Facts(engine.name, version, family, k=k)

    def counts() -> tuple[int, int] | None:
        return (asked.counts[0], asked.counts[1]) if asked.counts else None

    dtype = zoo.dtype_of(engine.precision)
    models = zoo.load(EMBEDDED, dtype) if family == EMBEDDED else zoo.load_pair(target, draft, dtype=dtype)
    weights = Weights(models.target, models.pieces.piece, models.drafts["draft_model"])
    return InProcess(facts, models.encode, engine.writer(asked), counts), weights


def row(result: dict[str, Any], options: Options) -> dict[str, Any]:
    """A certificate as the table of real servers keeps it."""
    measured = all("needed" in one for one in result["contexts"])
    filters = {name: getattr(options, name) for name in ("top_k", "top_p") if getattr(options, name) not in (0, 1.0)}
    told, places = result["server"], result["contexts"]
    return {
        "engine": told["kind"], "version": told["version"], "family": options.family, "method": options.method,
        "note": ENGINES[options.engine].mended if options.mended else "", "temperature": result["temperature"],
        **filters, "draws": result["draws"], "length": result["length"], "k": options.k,
        **{name: result[name] for name in ("reference", "verdict", "status", "sentences", "notes")},
        "shown": len(shown_by(places, result["draws"])) if measured else None,
        "known": len(places[0]["needed"]) if measured else None,
        "seconds": round(result["seconds"]), "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "contexts": [{name: one.get(name) for name in KEPT} for one in places],
    }  # fmt: skip


def add(path: Path, found: dict[str, Any]) -> None:
    """Behind the rows of the same engine; instead of one of the same setting."""

    def setting(one: dict[str, Any]) -> list[Any]:
        names = "engine", "version", "method", "note", "temperature", "top_k", "top_p"
        return [one.get("family", EMBEDDED), *map(one.get, names)]

    report = json.loads(path.read_text(encoding="utf-8"))
    rows = report["rows"]
    same = [i for i, one in enumerate(rows) if setting(one) == setting(found)]
    if same:
        rows[same[0]] = found
    else:
        behind = [i + 1 for i, one in enumerate(rows) if one["engine"] == found["engine"]]
        rows.insert(max(behind, default=len(rows)), found)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report(options: Options) -> int:
    torch.set_num_threads(1)  # two threads on two busy cores wait for each other
    with tempfile.TemporaryDirectory() as work:
        named = ENGINES[options.engine], options.method, options.k, Path(work), options.mended, options.family
        engine, weights = made(*named)
        told: dict[str, Any] = {}
        with tqdm(unit="text") as bar:
            for told in certify(
                engine, None, weights, options.temperature, options.draws,
                contexts={name: CONTEXTS[name] for name in options.contexts},
                top_k=options.top_k, top_p=options.top_p,
            ):  # fmt: skip
                bar.n = sum(one["done"] for one in told["contexts"])
                bar.set_description(told["doing"])
    found = row(told, options)
    print(f"{found['engine']} {found['version']}, {options.method}, T = {options.temperature:g}: {found['verdict']}")
    print(*found["sentences"], sep="\n")
    if options.json:
        add(options.json, found)
    return int(found["status"])


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench.engines")


if __name__ == "__main__":
    raise SystemExit(main())
