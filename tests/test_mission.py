"""What must be there, and where each row of it is shown. A row whose place goes fails here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest
import typer

from specdec.cli import app
from specdec.methods import METHODS
from specdec.proof.mistakes import CATALOGUE
from specdec.ui.tabs import TABS

ROOT = Path(__file__).resolve().parents[1]
ROWS = [f"S{n}" for n in range(1, 21)] + [f"C{n}" for n in range(1, 7)] + [f"R{n}" for n in range(1, 6)]
# `part`: of a template, `ROOM/NAME.PART`. `text`: of a file in both languages, `FILE.KEY`. `command`: with an option.
SHOWN = {
    "S1 draft and target": "tab:race tab:step method:draft_model text:step.notation.lev.target",
    "S2 greedy verification": "text:step.say text:player.reason file:specdec/verify.py",
    "S3 the residual": "text:step.notation.lev.residual mistake:target_minus_target",
    "S4 the bonus token": "text:player.tree.bonus mistake:extra_bonus",
    "S5 EAGLE-3": "method:eagle3 text:drafters.eagle3.card.training text:guide.answers.list.eagle3",
    "S6 early exit": "method:early_exit text:drafters.early_exit.card",
    "S7 Medusa, trees": "method:medusa method:medusa:tree method:eagle3:tree text:methods.questions.tree",
    "S8 distilled drafts": "text:drafters.draft_model.card.training command:train --method",
    "S9 a domain, and the wrong one": "method:draft_model:story text:guide.answers.list.domain",
    "S10 assisted generation": "text:player.peer.done file:specdec/lanes/transformers.py command:run --peer",
    "S11 tokens per cycle": "text:theory.recursion.rule text:theory.recursion.closed part:theory/theory.recursion",
    "S12 throughput, speed-up": "text:theory.recursion.throughput part:theory/theory.curves",
    "S13 the best K": "text:theory.longer.draft part:theory/theory.table part:theory/theory.map",
    "S14 figures of introductions": "part:theory/theory.introductions part:theory/theory.atlas text:theory.atlas.needs "
    + " ".join(
        f"text:theory.introductions.list.{name}.answer"
        for name in ("three", "bytes", "epsilon", "warfarin", "example", "length", "rates", "pairs")
    ),
    "S15 domain and temperature": "part:theory/theory.heat text:methods.domains.facts file:assets/results/methods.json",
    "S16 the memory wall": "part:theory/theory.roof text:theory.wall.measured file:assets/hardware.json",
    "S17 where it is used": "text:guide.practice.uses text:theory.labels.edge",
    "S18 one tokenizer": "text:methods.questions.tokenizer file:specdec/families/published.py",
    "S19 times": "text:player.define.ttft text:player.define.tpot",
    "S20 engines": "text:guide.practice.notes.vllm text:guide.practice.notes.tgi text:guide.practice.notes.llama_cpp "
    "text:guide.practice.notes.tensorrt_llm file:assets/sources.json command:certify --server",
    "C1 coloured text": "file:assets/page/race/tokens.js text:player.status",
    "C2 live charts": "file:assets/page/race/meters.js text:player.charts.alpha_aria text:player.charts.speed_aria",
    "C3 a measured baseline": "text:player.define.speedup file:specdec/lanes/race.py",
    "C4 a GPU's captured graphs": "file:specdec/gpu/runner.py file:assets/results/machines/gpu.h200.json",
    "C5 Spaces": "file:app.py file:specdec/zero.py file:docs/hosting.md command:site --base",
    "C6 teaching": "command:app --class text:class.phone file:notebooks/workshop.ipynb text:guide.teach",
    "R1 a model that people know": "text:pairs.smollm2 file:assets/models/smollm2 command:site --smollm2",
    "R2 any model of one's own": "command:run --target command:run --draft file:docs/pairs.md",
    "R3 a draft trained for it": "command:train --target file:docs/train-a-draft.md",
    "R4 a server": "command:run --server command:certify --plain text:player.server.define",
    "R5 no server": "command:site --out file:assets/page/engine/worker.js",
}


@pytest.mark.parametrize("row", SHOWN)
def test_it_is_shown_where_the_table_says(row: str) -> None:
    assert [name.split()[0] for name in SHOWN] == ROWS
    for kind, place in re.findall(r"(\w+):(\S+(?: --\S+)?)", SHOWN[row]):
        assert FOUND[kind](place), f"{kind} {place} is gone"


def has_text(key: str) -> bool:
    name, *path = key.split(".")
    files = [ROOT / "assets/text" / language / f"{name}.json" for language in ("en", "zh")]
    return all(reduce(lambda words, step: words[step], path, json.loads(file.read_text("utf-8"))) for file in files)


def has_part(place: str) -> bool:
    template, _, part = place.partition(".")
    page = ROOT / "assets/page" / template
    scripts = "".join(path.read_text("utf-8") for path in page.parent.glob("*.js"))
    return f'data-part="{part}"' in page.with_suffix(".html").read_text("utf-8") and f"part.{part}." in scripts


def has_command(place: str) -> bool:
    name, option = place.split()
    return any(option in one.opts for one in typer.main.get_command(app).commands[name].params)


FOUND: dict[str, Callable[[str], bool]] = {
    "tab": TABS.__contains__,
    "text": has_text,
    "part": has_part,
    "method": METHODS.__contains__,
    "mistake": {mistake.key for mistake in CATALOGUE}.__contains__,
    "command": has_command,
    "file": lambda place: (ROOT / place).exists(),
}
