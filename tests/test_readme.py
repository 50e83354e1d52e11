"""README and docs tell what the reports say, and name what exists: files, commands and their options."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from typer.main import get_group

from specdec.cli import app
from specdec.events import Finished
from specdec.families import zoo
from specdec.traces.file import Trace
from specdec.ui.results import SHOWN
from tools import record
from tools.bench import options as bench_options
from tools.bench import tables
from tools.options import parser
from tools.train import __main__ as train_options

ROOT = tables.ROOT
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PICTURES = ROOT / "docs" / "pictures"
COMMANDS = get_group(app).commands
TOOLS = {
    name: parser(module.Options, name)
    for name, module in {"tools.bench": bench_options, "tools.record": record, "tools.train": train_options}.items()
}
named = {"argnames": "page", "argvalues": PAGES, "ids": lambda page: page.name}


def commands(text: str) -> list[list[str]]:
    """Every command of ours in the code of a Markdown text, as its words after `python -m` or `$`."""
    ours = r"(pip install .* && )?(python (-m (specdec|tools)|app\.py)|specdec )"
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`]+)`", rest)
    found = [line.rpartition("&& ")[2] for line in lines if re.match(ours, line.replace("\n", " "))]
    split = [shlex.split(line.replace("…", "text"), comments=True) for line in found]
    return [words[2:] if words[:2] == ["python", "-m"] else words for words in split]


def wrong(words: list[str]) -> str:
    """What a command names that is not there, "" if nothing."""
    first, *rest = words
    if first in ("python", "app.py"):
        name, rest = "app", rest[rest[:1] == ["app.py"] :]
    elif first in TOOLS:
        known = {flag for option in TOOLS[first]._actions for flag in option.option_strings}
        return f"{first} has no {', '.join(unknown)}" if (unknown := flags(rest) - known) else ""
    elif first != "specdec":
        return "" if importlib.util.find_spec(first) else f"there is no module {first}"
    elif not rest:
        return ""
    elif rest[0] in COMMANDS:
        name, rest = rest[0], rest[1:]
    else:  # a prompt has spaces in it; a single word is a subcommand that is gone
        if not rest[0].startswith("-") and " " not in rest[0] and rest[0] != "text":
            return f"there is no subcommand {rest[0]}"
        name = "run"
    rest = rest[: rest.index("--")] if "--" in rest else rest
    options = {flag for option in COMMANDS[name].params for flag in (*option.opts, *option.secondary_opts)}
    unknown = flags(rest) - options - {"--version", "--help"}
    return f"{name} has no {', '.join(sorted(unknown))}" if unknown else ""


def flags(words: list[str]) -> set[str]:
    return {word for word in words if re.match("--?[a-z]", word)}


@pytest.mark.parametrize("page", tables.PAGES)
def test_figures_are_those_of_the_reports(page: str) -> None:
    text, made = (ROOT / page).read_text(encoding="utf-8"), tables.blocks(ROOT)
    assert tables.filled(text, {name: made[name] for name in tables.PAGES[page]}) == text


@pytest.mark.parametrize("name", SHOWN)
def test_a_report_of_the_page_notes_what_has_changed_since(name: str) -> None:
    report = tables.load(ROOT / "assets" / "results" / f"{name}.json")
    assert report["provenance"]["changed"] == tables.changed(report), "python -m tools.bench.tables notes it"


def test_every_place_for_figures_is_filled_by_a_report() -> None:
    for page in PAGES:
        places = re.findall(r"<!-- (\w+) -->", page.read_text(encoding="utf-8"))
        assert sorted(places) == sorted(tables.PAGES.get(str(page.relative_to(ROOT)), []))


@pytest.mark.parametrize(**named)
def test_the_files_that_it_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text) + re.findall(r"(?:src|srcset)=\"([^\"]+)\"", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        there = (page.parent / file if file else page).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.+)$", there, re.M)
        assert heading in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles], heading
    paths = re.findall(r"`((?:specdec|tests|assets|docs)/[\w/.-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists() and "NAME" not in path] == []


@pytest.mark.parametrize(**named)
def test_the_commands_that_it_names_exist(page: Path) -> None:
    assert [(words, wrong(words)) for words in commands(page.read_text(encoding="utf-8")) if wrong(words)] == []


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["small", "embedded"])
def test_the_lines_of_python_run(whole: bool, shallow, tmp_path, monkeypatch) -> None:
    load = zoo.load
    if not whole:
        monkeypatch.setattr(zoo, "load", lambda *_: load(shallow, torch.float32))
    monkeypatch.chdir(tmp_path)
    for page in ("README.md", "docs/python.md"):
        names: dict[str, Any] = {}
        for example in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S):
            exec(example, names)
        assert names["run"]._repr_html_()
    assert Trace.load("run.jsonl") and isinstance(names["event"], Finished)


def test_what_theory_says_was_measured_is_in_the_reports() -> None:
    hardware = {one["id"]: one.get("measured") for one in tables.load(ROOT / "assets" / "hardware.json")["machines"]}
    results = ROOT / "assets" / "results"
    steps = tables.load(results / "machines" / "gpu.h200.json")["stages"]["steps"]
    plain, check = (one["verify_ms"] for one in steps[:2])
    assert steps[1]["k"] + 1 == hardware["h200"]["rows"] and hardware["h200"]["v"] == round(check / plain, 2)
    (cpu,) = (
        one["v"][str(hardware["cpu"]["rows"])]
        for one in tables.load(results / "star" / "passes.json")["rows"]
        if (one["engine"], one["precision"], one["threads"]) == ("specdec", "bfloat16", 2)
    )
    assert hardware["cpu"]["v"] == round(cpu, 2)


def test_pictures_are_light_and_the_race_moves() -> None:
    sizes = {path.name: path.stat().st_size for path in PICTURES.glob("*.webp")}
    assert sum(sizes.values()) <= 4_000_000
    assert sizes["race-light.webp"] + sizes["race-dark.webp"] <= 3_000_000
    for theme in ("light", "dark"):
        with Image.open(PICTURES / f"race-{theme}.webp") as film:
            assert film.n_frames > 20
