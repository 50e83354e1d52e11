"""`python -m tools.bench.engines litgpt --method draft_model`: put another project's engine under the certificate.

It needs a virtual environment of its own, with this project's requirements too: `pip install litgpt` and so on. The
reference is the exact distribution of the embedded pair, or of SmolLM2-135M, in float32.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tqdm import tqdm

from specdec import __version__
from specdec.families import zoo
from specdec.families.export import export
from specdec.families.presets import STAR
from specdec.methods import EMBEDDED
from specdec.servers.base import Facts
from specdec.servers.certificate import certify, CONTEXTS, Weights
from specdec.servers.in_process import InProcess
from specdec.servers.verdict import shown_by

from ...options import option, run
from . import browser, hub, litgpt, llama, mlx, onnx, openvino, own, smollm2
from .adapter import Job

MODULES = (litgpt, onnx, mlx, hub, llama, openvino, own, browser)
NAMES = ("litgpt", "onnx", "mlx", "transformers", "llama", "openvino", "specdec", "browser")
ENGINES = dict(zip(NAMES, (module.ENGINE for module in MODULES), strict=True))
UNUSED = {EMBEDDED: "ÿ", STAR: "<jupyter_script>"}  # tokens that no text here has, the byte 0xFF among them
SETTING = ("engine", "version", "method", "note", "temperature", "top_k", "top_p")  # beside the family
PLACE = ("name", "text", "greedy", "drafted", "tests", "red", "witness", "seconds")


@dataclass(frozen=True)
class Options:
    """One certificate of another project's engine, in this process."""

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
        if self.method not in (methods := ENGINES[self.engine].methods):
            raise ValueError(f"--method of {self.engine} is one of {', '.join(methods)}")
        if self.mended and not ENGINES[self.engine].mended:
            raise ValueError(f"nothing of {self.engine} is mended here")


def start(options: Options, work: Path) -> tuple[InProcess, Weights]:
    """Write the pair into `work` in the Hub's layout; start the engine over it, and load the reference."""
    engine, target, draft = ENGINES[options.engine], work / "target", work / "draft_model"
    if options.family == STAR:
        smollm2.write_pair(work)
    else:
        export(options.family, work)
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    unused = tokenizer.token_to_id(UNUSED[options.family])
    job = Job(options.family, target, draft, options.method, options.k, work, unused, options.mended)
    version = metadata.version(engine.package) if engine.package else __version__
    facts = Facts(engine.name, version, options.family, k=options.k)
    models = zoo.load_pair(target, draft, dtype=zoo.dtype_of(engine.precision))
    weights = Weights(models.target, models.pieces.piece, models.drafts["draft_model"])
    return InProcess(facts, models.encode, engine.writer(job), lambda: job.counts), weights


def row(result: dict[str, Any], options: Options) -> dict[str, Any]:
    """Make a row of the table of real servers from a certificate."""
    places = result["contexts"]
    filters = {"top_k": options.top_k, "top_p": options.top_p % 1.0}  # 1 is off
    measured = all("needed" in one for one in places)
    power = (len(shown_by(places, result["draws"])), len(places[0]["needed"])) if measured else (None, None)
    return {
        "engine": result["server"]["kind"],
        "version": result["server"]["version"],
        **{name: getattr(options, name) for name in ("family", "method", "temperature", "k")},
        **{name: value for name, value in filters.items() if value},
        **{name: result[name] for name in ("draws", "length", "reference", "verdict", "status", "sentences")},
        "note": ENGINES[options.engine].mended if options.mended else "",
        **dict(zip(("shown", "known"), power, strict=True)),
        "seconds": round(result["seconds"]),
        "date": str(datetime.date.today()),
        "contexts": [{name: one.get(name) for name in PLACE} for one in places],
    }


def add(path: Path, new: dict[str, Any]) -> None:
    """Put the row behind those of its engine, in place of an older one of the same setting."""

    def setting(one: dict[str, Any]) -> list[Any]:
        return [one.get("family", EMBEDDED), *map(one.get, SETTING)]

    report = json.loads(path.read_text(encoding="utf-8"))
    rows = [one for one in report["rows"] if setting(one) != setting(new)]
    behind = [i + 1 for i, one in enumerate(rows) if one["engine"] == new["engine"]]
    rows.insert(max(behind, default=len(rows)), new)
    path.write_text(json.dumps(report | {"rows": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report(options: Options) -> int:
    torch.set_num_threads(1)  # two threads on two busy cores wait for each other
    contexts = {name: CONTEXTS[name] for name in options.contexts}
    chosen: dict[str, Any] = {"contexts": contexts, "top_k": options.top_k, "top_p": options.top_p}
    with tempfile.TemporaryDirectory() as work:
        engine, weights = start(options, Path(work))
        *_, result = tqdm(certify(engine, None, weights, options.temperature, options.draws, **chosen), unit="step")
    new = row(result, options)
    print(f"{new['engine']} {new['version']}, {options.method}, T = {options.temperature:g}: {new['verdict']}")
    print(*new["sentences"], sep="\n")
    if options.json:
        add(options.json, new)
    return int(new["status"])


if __name__ == "__main__":
    raise SystemExit(run(report, Options, None, "tools.bench.engines"))
