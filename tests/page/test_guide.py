"""The guide: every figure in its text is what the formulas give, references lead somewhere, and it stays small."""

from __future__ import annotations

import gzip
import json
import re
from datetime import date

import pytest
import typer

from specdec.cli import app
from specdec.ui.tabs import labels
from specdec.ui.tabs.guide import elsewhere
from specdec.ui.text import ASSETS, LANGUAGES, PAGE, read_json, speaking, strings, TEXT
from tests.figures.test_theory import best_k, expected_tokens, speedup
from tools import sources

LIMIT = 227_000  # bytes, compressed, of the page's own scripts, styles, templates, pictures and words of one language
OTHERS = ("class", "engine", "site", "page")
WORDS = strings("guide")


def said(beginning: str) -> str:
    return next(right for wrong, right, _ in WORDS["mistakes"] if wrong.startswith(beginning))


def test_figures_and_the_distribution_in_the_common_mistakes_are_computed() -> None:
    best = best_k(0.8, 0.1)
    longer = f"K = {best} ({speedup(0.8, best, 0.1):.2f}×); K = 16 gives {speedup(0.8, 16, 0.1):.2f}×"
    assert longer in said("A longer draft")
    tokens = expected_tokens(0.8, 4)
    accepted = tokens - 1
    assert f"{accepted / 4:.0%} of drafted" in said("‘Acceptance rate’")
    assert f"{accepted / tokens:.0%} of emitted" in said("‘Acceptance rate’")
    assert f"predicts {expected_tokens(accepted / 4, 4):.2f} tokens" in said("Put the logged")
    assert f"the run gives {tokens:.2f}." in said("Put the logged")
    assert f"gives {speedup(0.75, 4, 0.5):.2f}× at K = 4" in said("Half of the layers")
    p, q = (0.6, 0.3, 0.1), (0.2, 0.5, 0.3)
    kept = [min(*pair) for pair in zip(p, q, strict=True)]
    distribution = [k + (1 - sum(kept)) * x for k, x in zip(kept, p, strict=True)]
    told = ", ".join(f"{x:.2f}".removeprefix("0") for x in distribution)
    assert f"({told})" in said("After a rejection")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_temperature_does_is_read_off_the_report(language: str) -> None:
    rows = read_json(ASSETS / "results" / "methods.json")["rows"]
    shown = {(row["domain"], row["temperature"]): row for row in rows if row["drafter"] == "eagle3"}
    mistakes = read_json(TEXT / language / "guide.json")["mistakes"]
    told = next(right for _, right, source in mistakes if source.startswith("assets/results/methods.json"))
    falls, rises = ([shown[domain, temperature] for temperature in (0.0, 0.8)] for domain in ("story", "facts"))
    assert all(f"{one['tau']:.2f}" in told and f"K = {one['k']}" in told for one in (*falls, *rises))
    assert falls[0]["k"] == falls[1]["k"] and rises[0]["k"] == rises[1]["k"]  # at the same K
    assert falls[0]["tau"] > falls[1]["tau"] and rises[0]["tau"] < rises[1]["tau"]


def test_the_price_of_a_check_is_the_measured_one() -> None:
    def costs(name: str) -> list[float]:
        rows = read_json(ASSETS / "results" / f"{name}.json")["rows"]
        return [row["verify_cost"] for row in rows if row["verify_cost"] is not None]

    every = [*costs("embedded"), *costs("methods")]
    low, high = f"{min(every):.1f}", f"{max(every):.1f}"
    said = f"a check costs {low} to {high} plain steps."
    assert said in " ".join((TEXT / "en" / "reading.md").read_text("utf-8").split())
    said = f"一次验证相当于 {low} 到 {high} 个普通步。"
    assert said in (TEXT / "zh" / "reading.md").read_text("utf-8").replace("\n", "")


def test_questions_have_their_answers_on_a_tab() -> None:
    questions = WORDS["quiz"]["list"]
    assert len(questions) == 12
    for question in questions:
        assert 0 <= question["answer"] < len(question["choices"]) and question["why"]
        assert question["tab"] in labels()
        if "part" in question:
            page = (PAGE / question["tab"] / f"{question['tab']}.html").read_text("utf-8")
            assert f'data-fold="{question["part"]}"' in page
    formula = next(one for one in questions if "c = .1" in one["ask"])
    assert formula["choices"][formula["answer"]] == f"{speedup(0.8, 4, 0.1):.2f}×"
    passes = f"{expected_tokens(0.8, 4):.2f} tokens for {1 + 4 * 0.1:.2f} passes"
    assert passes in formula["why"]
    assert f"{speedup(0.8, 16, 0.1):.2f}×" in next(one for one in questions if "K = 16" in one["ask"])["why"]


def test_what_can_go_stale_stands_in_one_file_with_its_day_and_sources() -> None:
    listed = sources.sources()
    practice = WORDS["practice"]
    assert [one["id"] for one in listed["systems"]] == list(practice["notes"])
    assert {one["draft"] for one in listed["defaults"]} == set(practice["draft"])
    assert {one["keep"] for one in listed["defaults"]} == set(practice["keep"])
    assert [one["note"] for one in listed["defaults"] if "note" in one] == list(practice["default_notes"])
    for one in listed["systems"]:
        assert set(re.findall(r"{(\w+)}", practice["notes"][one["id"]])) == set(one["values"]), one["id"]
    for name, checked, links in sources.entries():
        assert checked <= date.today() and links and all(link.startswith("https://") for link in links), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_are_whole_and_what_they_say_of_others_is_dated(language: str) -> None:
    told = read_json(TEXT / language / "guide.json")["answers"]["list"]
    read = sources.sources()["answers"]
    assert {one["id"] for one in read} <= set(told) and len(told) >= 15
    for name, answer in told.items():
        texts = [text for text in answer["say"] if isinstance(text, str)]
        steps = [step for listed in answer["say"] if isinstance(listed, list) for step in listed]
        assert answer["ask"] and texts and all(len(step) == 2 and all(step) for step in steps), name
        assert all(text.count("`") % 2 == 0 for text in texts + [text for step in steps for text in step]), name
        values = {key for one in read if one["id"] == name for key in one.get("values", {})}
        assert set(re.findall(r"{(\w+)}", " ".join(texts))) == values, name


def test_commands_in_the_answers_exist() -> None:
    said = json.dumps(WORDS["answers"], ensure_ascii=False)
    commands = [line.split() for line in re.findall(r"`specdec ([^`]+)`", said)]
    assert {name for name, *_ in commands} == {"train", "certify", "bench", "run", "doctor", "app", "site"}
    for name, *words in commands:
        known = {option for one in typer.main.get_command(app).commands[name].params for option in one.opts}
        assert {word for word in words if word.startswith("-")} <= known, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_search_reads_the_other_tabs_too(language: str) -> None:
    with speaking(language):
        places, tabs, sections = elsewhere(), set(labels()), set(strings("guide")["sections"])
        expected = {
            "methods": strings("drafters")["eagle3"]["card"]["how"],
            "race": strings("player")["define"]["tau"],
            "step": strings("step")["own"]["lead"],
            "lossless": strings("lossless")["mistakes"]["one_coin"]["what"],
            "theory": strings("theory")["labels"]["wallsub"],
            "mistakes": strings("guide")["mistakes"][0][1],
            "practice": strings("guide")["practice"]["uses"],
            "about": strings("guide")["about"]["not"][0],
        }
    assert {place for place, *_ in places} == set(expected) <= tabs | sections
    assert all(heading and text and not re.search(r"{\w+}", heading) for _, heading, text in places)
    for name, text in expected.items():
        assert any(place == name and text in told for place, _, told in places), name


@pytest.mark.parametrize(
    ("language", "typed"), [("en", ("distillation", "seed", "GPU memory")), ("zh", ("蒸馏", "种子", "显存"))]
)
def test_what_people_type_is_found(language: str, typed: tuple[str, ...]) -> None:
    told = read_json(TEXT / language / "guide.json")
    with speaking(language):
        entries = [*elsewhere(), *told["glossary"], *told["answers"]["list"].values()]
    texts = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    for words in typed:
        assert any(all(word.lower() in text.lower() for word in words.split()) for text in texts), words


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pages_own_assets_are_small(language: str) -> None:
    sent = (path for path in PAGE.rglob("*.*") if path.is_file() and path.suffix != ".ts")
    files = [path for path in sent if path.parent.name not in OTHERS]
    files += [ASSETS / "hardware.json", ASSETS / "sources.json", *(TEXT / language).glob("*.md")]
    files += [path for path in (TEXT / language).glob("*.json") if path.stem not in ("class", "engine", "site")]
    files.sort(key=lambda path: path.suffix != ".json")  # like beside like
    assert len(gzip.compress(b"".join(path.read_bytes() for path in files), 6)) <= LIMIT
