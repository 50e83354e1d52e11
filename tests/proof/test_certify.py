"""The certificate: green for the shipped rule, red for every mistake, or the number of draws that would make it so."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import pytest
import torch

from specdec.families import zoo
from specdec.messages import Refused
from specdec.models import native
from specdec.proof import certify
from specdec.proof.black_box import CachedRows
from specdec.proof.certify import (
    closed_form,
    greedy,
    MAX_ERROR,
    ModelPair,
    next_token_distribution,
    next_tokens,
    sample,
)
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.goodness_of_fit import distances, FALSE_ALARM, g_test, is_red
from specdec.proof.mistakes import CATALOGUE, Mistake, MISTAKES
from specdec.proof.toys import TableModel
from specdec.sampling import RandomSampler
from specdec.types import SamplingParams
from specdec.ui import recorded, request
from specdec.ui.recorded import CERTIFICATES
from specdec.ui.session import Answer, session
from specdec.ui.text import ASSETS, prompts, strings
from tests import toyrun
from tools import certificates as recording

RECORDED: dict[str, Any] = json.loads(CERTIFICATES.read_text(encoding="utf-8"))
EVERY = ["", *MISTAKES]


def tiny() -> ModelPair:
    target = TableModel(3, seed=1)
    return ModelPair("tiny", target, TableModel(3, 2, target), (0, 1), SamplingParams(temperature=0.8), str, 12)


@pytest.mark.parametrize("key", ["", *"from_target one_coin drop_doubtful argmax_draft point_kept row_shift".split()])
def test_closed_form_is_the_distribution_of_the_enumerated_loop(key: str) -> None:
    pair, mistake = tiny(), MISTAKES.get(key)
    distribution = next_token_distribution(pair, mistake)
    exact = recording.enumerated(pair, mistake)["tv"]
    distance = total_variation({(i,): float(p) for i, p in enumerate(distribution)}, pair.exact[0])
    assert exact[0] == pytest.approx(distance, rel=1e-3, abs=1e-12)
    assert (exact[2] > 1e-9) == (key in MISTAKES)
    assert all(a <= b + 1e-12 for a, b in pairwise(exact))  # a longer text hides nothing of a shorter one


def sampled(pair: ModelPair, mistake: Mistake | None, draws: int, seed: int = 3) -> list[list[float | None]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for text, n in sample(pair, mistake, draws, torch.Generator().manual_seed(seed)):
        counts[text] += n
    assert counts.total() == draws
    return distances(pair.exact, counts)


@pytest.mark.long
def test_a_crowd_draws_as_one_by_one() -> None:
    pair, mistake = tiny(), MISTAKES["from_target"]
    distribution, _ = output_distribution(next_tokens(pair, mistake))
    run, dice = next_tokens(pair, mistake), RandomSampler(5)
    alone, together = Counter(run(dice) for _ in range(800)), Counter[tuple[int, ...]]()
    for text, n in sample(pair, mistake, 20_000, torch.Generator().manual_seed(5)):
        together[text] += n
    for counts in (alone, together):
        test = g_test(counts, distribution)
        assert test.degrees > 10 and test.tail >= FALSE_ALARM


def test_the_shipped_rule_stays_green_and_inside_the_band() -> None:
    for tv, band, *_, ruled_out in (found := sampled(tiny(), None, 1500)):
        assert tv is not None and band is not None and tv < band and ruled_out == 0
    assert not any(map(is_red, found))


def test_no_state_of_the_shipped_rule_is_red(monkeypatch) -> None:
    monkeypatch.setattr(certify, "REPORT_EVERY_S", -1.0)  # a state after each group of runs
    states = list(certify.certify(certify.toy(), None, 1_000, seed=3))
    assert len({state["done"] for state in states}) > 100  # the page shows how far it is
    assert not any(is_red(row) for state in states for _, rows in state["sampled"] for row in rows)
    assert {draws for state in states for draws, _ in state["sampled"]} == {100, 1_000}


@pytest.mark.parametrize("key", ["from_target", "extra_bonus", "argmax_draft", "row_shift"])
def test_as_many_draws_as_it_says_turn_it_red(key: str) -> None:
    needed = recording.enumerated(tiny(), MISTAKES[key])["needed"]
    assert needed < 6000
    assert is_red(sampled(tiny(), MISTAKES[key], needed)[-1])
    assert not is_red(sampled(tiny(), MISTAKES[key], max(1, needed // 20))[-1])


def test_rows_are_computed_once_and_are_those_of_the_model() -> None:
    lengths: list[int] = []

    class Counting(TableModel):
        def forward(self, tokens: Any, cache: Any, parents: Any = (), rows: int = 1) -> Any:
            lengths.append(len(tokens))
            return super().forward(tokens, cache, parents, rows)

    model = Counting(4, seed=1)
    memory = CachedRows(model, 8)
    for text in [(0, 1), (0, 1, 2), (0, 1, 2), (0, 3), (0, 1, 3), (0,)]:
        assert torch.equal(memory.logits(text), model.logits(text))
    assert lengths == [2, 1, 1, 2, 1]


def test_greedy_text_parts_where_it_says() -> None:
    result = greedy(certify.toy(), MISTAKES["accept_all"])
    at = result["equal"] - result["start"]
    assert result["equal"] < result["of"] and result["gap"] > 0
    assert result["plain"][:at] == result["speculative"][:at] and result["plain"][at] != result["speculative"][at]


@pytest.mark.parametrize("key", EVERY)
def test_what_is_recorded_is_what_the_code_computes(key: str) -> None:
    result, mistake = (
        json.loads(json.dumps(closed_form(certify.toy(), MISTAKES.get(key)), allow_nan=False)),
        MISTAKES.get(key),
    )
    recorded, error = RECORDED["toy"][key], result.pop("error")
    shows = mistake is not None and mistake.first_token_shows and mistake.least_k == 1  # drafts one token
    assert (error is None or error > MAX_ERROR) == shows and (key in MISTAKES or error < 1e-12)
    assert error == pytest.approx(recorded["closed"]["error"], abs=1e-12)
    assert rounded(result).items() <= rounded(recorded["closed"]).items()
    assert greedy(certify.toy(), MISTAKES.get(key)) == recorded["greedy"]


def rounded(value: Any) -> Any:
    """Twelve digits: another order of the same sums is no other distribution."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 12) if isinstance(value, float) else value


@pytest.mark.parametrize("key", MISTAKES)
def test_every_mistake_is_red_at_twenty_thousand_draws_or_says_how_many(key: str) -> None:
    for one in (RECORDED[pair][key] for pair in ("toy", "embedded")):
        draws, found = one["sampled"][-1]
        if (least := MISTAKES[key].least_k) > one["k"]:  # drafts this short hide it, and the page says so
            assert one["least_k"] == least
            continue
        needed = one["exact"]["needed"] if "exact" in one else one["closed"]["needed"]
        if needed is None:  # the next token hides it, on models too large to enumerate: the page names the toys
            needed = RECORDED["toy"][key]["exact"]["needed"]
        assert any(map(is_red, found)) or (draws == 20_000 and needed > draws)
        if "exact" in one:
            assert one["exact"]["tv"][2] > 1e-9


def test_the_shipped_rule_is_recorded_green() -> None:
    for one in (pair[""] for pair in RECORDED.values()):
        assert one["closed"]["error"] <= MAX_ERROR and not any(map(is_red, one["sampled"][-1][1]))
        assert one["greedy"]["equal"] == one["greedy"]["of"] and one.get("exact", {"tv": [0, 0, 0]})["tv"][2] <= 1e-12


# What each instrument of the certificate overlooks on the toys. Enumeration overlooks one, as it drafts two tokens: the
# greedy text shows it, and so do single cycles (`test_cycles.py`), as they do every mistake of a rule.
OVERLOOKED = {
    "closed": {"extra_bonus", "draft_bonus", "one_coin", "unjudged_fourth", "block_residual", "block_product"},
    "sampled": {"residual_epsilon", "coarse_ratio", "unjudged_fourth", "block_residual"},
    "exact": {"unjudged_fourth"},
}


def test_every_mistake_is_caught_by_an_instrument_of_the_certificate() -> None:
    toys = {key: RECORDED["toy"][key] for key in MISTAKES}
    shown = {
        "closed": {key for key, one in toys.items() if not certify.passed(one)[0]},
        "sampled": {key for key, one in toys.items() if not certify.passed(one)[1]},
        "exact": {key for key, one in toys.items() if one["exact"]["tv"][-1] > MAX_ERROR},
    }
    greedy_shows = {key for key, one in toys.items() if one["greedy"]["equal"] < one["greedy"]["of"]}
    assert {name: toys.keys() - keys for name, keys in shown.items()} == OVERLOOKED
    assert set.union(*shown.values(), greedy_shows) == {*toys}


def test_the_page_names_every_mistake_and_docs_their_number() -> None:
    assert strings("lossless")["mistakes"].keys() == MISTAKES.keys()
    assert all(RECORDED[pair].keys() == set(EVERY) for pair in ("toy", "embedded"))
    assert {*RECORDED} == {*strings("lossless")["rail"]["pairs"]} - {"server"} == {*request.PAIRS}
    for path in [ASSETS.parent / "README.md", *ASSETS.parent.glob("docs/*.md")]:
        for number in re.findall(r"(\d+) known mistakes", path.read_text(encoding="utf-8")):
            assert int(number) == len(CATALOGUE), path


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ({"pair": "other"}, "must be one of: toy"),
        ({"mistake": "__class__"}, "must be empty or one of"),
        ({"draws": math.nan}, "must be one of: 100"),
        ({"seed": -1}, "The seed"),
        ({"pair": "embedded", "text": " "}, "prompt is empty"),
        ({"pair": "embedded", "text": None}, "must be text"),
    ],
)
def test_a_wrong_wish_is_refused_with_the_reason(asked: dict[str, Any], advice: str) -> None:
    with pytest.raises(Refused, match=advice):
        request.check_certificate(**asked)


@pytest.mark.long
def test_a_live_certificate_arrives_piece_by_piece_and_frees_the_machine() -> None:
    news = list(session.certify(request.check_certificate("toy", "from_target", 100, 1)))
    states = [json.loads(item) for item in toyrun.written(news)]
    assert states[0]["sampled"] == [] and states[0]["closed"]["error"] > 0.01
    assert states[-1]["sampled"][-1][0] == 100 and states[-1]["mistake"] == "from_target"
    assert news[-1] == Answer("done", strings("page")["notice"]["certified"])
    growing: Any = session.certify(request.check_certificate("toy", "", 20_000, 1))
    assert sum(item.name == "lines" for item in islice(growing, 6)) >= 2
    growing.close()
    assert not session.turns.busy()


def test_a_recorded_pair_is_fetched_by_its_name_if_there_is_one(tmp_path, monkeypatch) -> None:
    assert all(recorded.recorded_certificates(name) == RECORDED.get(name, {}) for name in (*RECORDED, "other"))
    assert recorded.recorded_certificates(["toy"]) == {}
    monkeypatch.setattr(recorded, "CERTIFICATES", tmp_path / "none.json")
    assert recorded.recorded_certificates("toy") == {}


# Torch's kernel for 8 bits also rounds its inputs: the draft's q differs a little, which shows under a mistake only.
as_recorded = pytest.mark.skipif(native.library() is None, reason="recorded with the layers in C++")


@pytest.mark.parametrize("key", ["", pytest.param("from_target", marks=[as_recorded, pytest.mark.long])])
def test_what_is_recorded_of_the_embedded_models_is_what_they_do(key: str) -> None:
    pair, recorded = certify.embedded(zoo.load(), prompts()["story"][0]), RECORDED["embedded"][key]
    assert "".join(recorded["text"]) == prompts()["story"][0]  # and no control token
    result = closed_form(pair, MISTAKES.get(key))
    assert result["error"] == pytest.approx(recorded["closed"]["error"], rel=1e-3, abs=1e-12)
    for (piece, *chances), (its_piece, *its_chances) in zip(result["rows"], recorded["closed"]["rows"], strict=True):
        assert piece == its_piece and chances == pytest.approx(its_chances, rel=1e-3)


@pytest.mark.parametrize(("top_k", "tokens"), [(6, 16), pytest.param(20, 48, marks=pytest.mark.long)])
def test_the_embedded_models_pass_all_three_checks(top_k: int, tokens: int) -> None:
    family = zoo.load()
    pair = certify.embedded(family, "Once upon a time there was a")
    assert (pair.params.top_k, pair.greedy_limit) == (20, 48)
    assert pair.task(None, 2, 3).resources is family.resources  # and so the threads that were tuned
    pair.params, pair.greedy_limit = replace(pair.params, top_k=top_k), tokens
    assert closed_form(pair, None)["error"] < 1e-12
    result = greedy(pair, None)
    assert result["equal"] == result["of"]
    assert len(pair.exact[2]) == pair.params.top_k**3
    assert not any(map(is_red, sampled(pair, None, 300)))
    with pytest.raises(ValueError, match="it must have between"):
        certify.embedded(family, "word " * 3000)
