"""Run `specdec bench`: print a table of measured figures and, as the last line, JSON.

A target with a chat template gets questions as prompts; other targets get texts to continue, 18 of each kind, which the
page does not use. The stories and the code were written for this list. The facts were generated like the questions in
training, but are not the same. Of each kind, we took the first prompts, some cut short, for which the target's plain
greedy text does not loop, because loops are easy to draft. Digests of code and weights say when a table is out of date.
"""

import ast
import contextlib
import functools
import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pandas
from tqdm import tqdm

from .. import __version__
from ..engine import Engine
from ..families.zoo import Family
from ..figures import machine
from ..lanes import probe
from ..messages import Refused
from ..methods import ADAPTIVE, DRAFT_MODEL, inner_drafter
from ..paths import ASSETS, PACKAGE, write_whole
from ..types import Costs
from .measure import Case, measure_pairs, prediction, Row, row

TEMPERATURES = (0.0, 0.8)
BENCH_ADAPTIVE_K = 16  # the largest depth for drafters that choose the depth themselves
CACHED_RUNNERS = 24  # `gpu.runner.DeviceRunner` objects to keep for later runs; each uses one of torch's 32 streams
CHOOSING_ROUNDS = 1  # trial rounds, which choose the best k
Prompts = Mapping[str, Sequence[str]]  # by domain
CODE = ("loop", "task", "host", "drafters", "models", "verify", "sampling")
WEIGHTS = {"embedded": "family", "smollm2": "models/smollm2"}  # family -> folder below assets
COLUMNS = {
    "drafter": "drafter", "domain": "domain", "temperature": "T", "k": "K", "alpha": "α", "tau": "τ",
    "draft_cost": "c", "verify_cost": "v", "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s",
    "measured_speedup": "measured", "worst_prompt_speedup": "worst",
    "accounted_speedup": "accounted", "predicted_speedup": "predicted", "unseen_speedup": "unseen",
    "identical_to_plain": "identical", "repetition": "repetition",
}  # fmt: skip


def read_lists(file: str, *lists: str) -> dict[str, tuple[str, ...]]:
    kinds = json.loads((ASSETS / file).read_text(encoding="utf-8"))
    prompts = {kind: tuple(text for name in lists for text in halves.get(name, ())) for kind, halves in kinds.items()}
    return {kind: texts for kind, texts in prompts.items() if texts}


PROMPTS = read_lists("prompts.json", "bench", "more")  # texts to continue
QUESTIONS = read_lists("questions.json", "page", "bench", "more")  # for chat models, by the categories of SPEED-Bench


def measure_drafters(
    engine: Engine, prompts: Prompts, drafters: Sequence[str], ks: Sequence[int], tokens: int, repeats: int
) -> Iterator[Row]:
    """Yield a row for each domain, temperature and drafter (by default all), with the k that was fastest in trials."""
    family = engine.models
    every = [name for name in family.drafters if name != "none"] + [ADAPTIVE] * (DRAFT_MODEL in family.drafters)
    if unknown := [name for name in drafters if (family.wrapped(name) or name) not in family.drafters]:
        raise Refused(f"there is no drafter {unknown[0]!r}; choose from {', '.join(every)}")
    depths = {name: [BENCH_ADAPTIVE_K] if inner_drafter(name) else ks for name in drafters or every}
    trials = sum(len(tried) for tried in depths.values() if len(tried) > 1)
    warm_ups = (trials + len(depths)) * len(prompts)
    rounds = trials * CHOOSING_ROUNDS + len(depths) * repeats
    total = (warm_ups + rounds * sum(map(len, prompts.values()))) * len(TEMPERATURES)
    with tqdm(total=total, desc="measuring", unit="pair", mininterval=2) as bar:
        for (domain, texts), temperature in product(prompts.items(), TEMPERATURES):
            if temperature == TEMPERATURES[0]:  # at the speed of this hour
                costs = {name: probed_costs(family, name, texts[0]) for name in depths}
            cases = {
                name: [Case(name, domain, temperature, k, domain not in QUESTIONS) for k in tried]
                for name, tried in depths.items()
            }
            several = [case for each in cases.values() if len(each) > 1 for case in each]
            runs = measure_pairs(engine, tuple(texts), several, tokens, CHOOSING_ROUNDS, bar.update)
            tried = {case: row(case, measured, 0) for case, measured in runs.items()}
            chosen = [max(each, key=lambda case: speedup_of(tried.get(case, {}))) for each in cases.values()]
            # New seeds: with the seeds of the trials, the chosen k would look better than it is.
            seed = CHOOSING_ROUNDS + 1
            pairs = measure_pairs(engine, tuple(texts), chosen, tokens, repeats, bar.update, seed)
            for case in chosen:
                parameters = family.drafters[family.wrapped(case.drafter) or case.drafter].parameters
                probed = costs[case.drafter]
                result = row(case, pairs[case], parameters)
                result |= prediction(pairs[case], probed and probed.at(temperature))
                taus = {str(other.k): tried[other]["tau"] for other in cases[case.drafter] if other in tried}
                yield result | {"tau_by_k": taus or {str(case.k): result["tau"]}}


def probed_costs(family: Family, drafter: str, text: Any) -> Costs | None:
    """Measure the costs of a drafter's cycles after `text`, or after one that repeats itself if nothing drafts there.

    An adaptive drafter has the passes of the drafter in it, which is probed at every depth, and drafts of its own:
    to choose the depth, and to judge each token, takes time, too.
    """
    inner = family.wrapped(drafter)
    for probed in (text, probe.TEXT):
        with contextlib.suppress(Refused):
            costs = probe.measure_costs(family, inner or drafter, text=probed)
            if inner:
                probe.probe(family, inner)  # by these costs, which stay, it chooses the depth
                costs = replace(probe.measure_costs(family, drafter, text=probed), passes=costs.passes)
            return costs
    return None


def speedup_of(entry: Row) -> float:
    return entry.get("measured_speedup") or 0.0


def table(rows: Sequence[Row]) -> str:
    frame = pandas.DataFrame(list(rows))[list(COLUMNS)].rename(columns=COLUMNS)
    frame["identical"] = [{True: "yes", False: "NO", None: "–"}[value] for value in frame["identical"]]
    return frame.to_string(index=False, float_format="{:.2f}".format)


def make_engine(target: str, draft: Sequence[str], dtype: str | None, device: str) -> Engine:
    """Make the engine to measure. Raises Refused if its models do not load."""
    engine = Engine(target, list(draft) or None, dtype=dtype, device=device)
    engine.models.resources.max_idle = CACHED_RUNNERS  # with fewer, most runs would capture their graphs again
    return engine


def report_drafters(
    engine: Engine, drafters: Sequence[str], ks: Sequence[int], tokens: int, repeats: int, file: Path | None
) -> None:
    """Measure, print, and write a file if one is named."""
    prompts = PROMPTS if engine.models.chat is None else QUESTIONS
    rows = list(measure_drafters(engine, prompts, drafters, ks, tokens, repeats))
    print(table(rows))
    write({"rows": rows, "models": engine.models.describe()}, file)


def commit() -> str | None:
    with contextlib.suppress(OSError):  # a machine without git
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=PACKAGE, capture_output=True, text=True)
        return done.stdout.strip() or None
    return None


@functools.cache
def digests(family: str) -> dict[str, str]:
    """Digest each part of the engine, without comments, docstrings and blank lines, and a family's weights."""
    code = {name: digest(code_lines(file) for file in files(PACKAGE, name, ".py", ".cpp")) for name in CODE}
    folder = WEIGHTS.get(family)
    weights = files(ASSETS, folder, ".safetensors") if folder else []
    return code | {"weights": digest(file.read_bytes() for file in weights)}


def files(root: Path, name: str, *endings: str) -> list[Path]:
    """List a module, or the files of a folder, that have one of these endings."""
    places = [root / f"{name}.py"] if (root / f"{name}.py").is_file() else (root / name).rglob("*")
    return sorted(file for file in places if file.suffix in endings)


def digest(contents: Iterator[bytes]) -> str:
    state = hashlib.sha256()
    for content in contents:
        state.update(content)
    return state.hexdigest()[:12]


def code_lines(file: Path) -> bytes:
    """Return a source file without comment lines, blank lines and, in Python, docstrings."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)) if file.suffix == ".py" else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            start, end = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[start:end] = [""] * len(lines[start:end])
    stripped, comment = (line.strip() for line in lines), "#" if file.suffix == ".py" else "//"
    return "\n".join(line for line in stripped if line and not line.startswith(comment)).encode()


def write(result: dict[str, Any], file: Path | None) -> None:
    """Add provenance to `result`, print it as the last line of the output, and write a file if one is named."""
    result = {"machine": machine.describe()} | result
    models = result.pop("models")
    result["provenance"] = {
        "commit": commit(),
        "version": __version__,
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "models": models,
        "digests": digests(models.get("family", "")),
    }
    final = json.dumps(result, ensure_ascii=False)
    if file:
        write_whole(file, final + "\n")
    print(final)
