"""The certificate of a server, on our own engine behind HTTP: green where it is lossless, red for every mistake."""

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from specdec import cli as terminal
from specdec.proof import power
from specdec.proof.mistakes import CATALOGUE, MISTAKES
from specdec.proof.pair import ModelPair, toy
from specdec.proof.toys import TableModel
from specdec.servers.certificate import certify, Weights
from specdec.servers.connect import connect
from specdec.types import SamplingParams
from specdec.verify import RejectionSampling
from tests.servers.ours import MakeTask, of_pair, Ours, serving

PLACE = {"toy": "text"}
MANY = 50_000  # texts a request: our server draws them together


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """Large requests, and a certificate that predicts the draws for a few of the known mistakes."""
    monkeypatch.setattr(f"{certify.__module__}.BATCH", MANY)
    monkeypatch.setattr(power, "CATALOGUE", [MISTAKES[key] for key in ("accept_all", "from_target", "draft_bonus")])


@pytest.fixture
def every_mistake(quick, monkeypatch) -> None:
    monkeypatch.setattr(power, "CATALOGUE", CATALOGUE)


def told_of(
    task: MakeTask,
    plain: MakeTask | None = None,
    weights: Weights | None = None,
    draws: int = 2_000,
    tells: bool = True,
    kind: type[Ours] = Ours,
    temperature: float = 0.8,
) -> dict[str, Any]:
    """The whole certificate of that engine as a server; `tells` and `kind` are the plain server's."""
    with serving(task) as address, serving(plain or task, tells=tells, kind=kind) as beside:
        other = connect(beside) if plain else None
        *_, told = certify(connect(address), other, weights, temperature, draws, contexts=PLACE)
    return json.loads(json.dumps(told))


def weights(pair: ModelPair) -> Weights:
    return Weights(pair.models[0], pair.piece, pair.models[1])


def plain() -> MakeTask:
    return of_pair(toy(), k=0)


REFERENCES: dict[str, dict[str, Any]] = {
    "weights": {"weights": weights(toy())},
    "log-probabilities": {"plain": plain()},
}


@pytest.mark.usefixtures("every_mistake")
@pytest.mark.parametrize("reference", ["weights", pytest.param("log-probabilities", marks=pytest.mark.long)])
def test_a_lossless_server_is_green_whatever_it_is_held_against(reference: str) -> None:
    told = told_of(of_pair(toy()), **REFERENCES[reference])
    assert (told["verdict"], told["status"], told["reference"]) == ("lossless", 0, reference)
    (one,) = told["contexts"]
    assert one["greedy"]["equal"] == one["greedy"]["of"] > 40 and one["done"] == 2_000
    assert sum(n <= 2_000 for n in one["needed"].values() if n) >= 9
    drafted, accepted = one["drafted"]["sampled"]
    assert drafted > accepted > 0


@pytest.mark.parametrize(
    ("reference", "key"),
    [("weights", "from_target"), pytest.param("log-probabilities", "draft_bonus", marks=pytest.mark.long)],
)
def test_a_mistake_is_red_and_shown_by_a_token(reference: str, key: str) -> None:
    told = told_of(of_pair(toy(), MISTAKES[key]), **REFERENCES[reference], draws=4_000)
    assert (told["verdict"], told["status"]) == ("not lossless", 1)
    (one,) = told["contexts"]
    assert not one["red"][0] and any(one["red"][1:])  # the first token is never drafted
    witness = one["witness"]
    assert witness["place"] > 1 and abs(witness["expected"] - witness["seen"]) > 0.05
    assert repr(witness["piece"]) in told["sentences"][0]


def test_greedy_text_alone_shows_what_it_can() -> None:
    told = told_of(of_pair(toy(), MISTAKES["accept_all"]), plain(), temperature=0.0)
    assert told["verdict"] == "not lossless" and "two best logits" in told["sentences"][0]
    told = told_of(of_pair(toy()), plain(), temperature=0.0)
    assert told["verdict"] == "lossless" and told["sentences"] == [
        "The greedy text equals that of plain decoding, token for token."
    ]


class NeverKept(RejectionSampling):
    """Lossless, and in vain."""

    def accept(self, p: float, q: float, sampler: Any, node: int) -> tuple[bool, float]:
        return False, 1.0

    def residual(self, p: Any, q: Any, token: int) -> Any:
        return p


@pytest.mark.parametrize(
    ("rule", "k", "sentence"),
    [(None, 0, "drafted no token"), pytest.param(NeverKept(), 2, "accepted none", marks=pytest.mark.long)],
)
def test_speculation_that_never_ran_is_said(rule: Any, k: int, sentence: str) -> None:
    made = of_pair(toy(), k=k)
    told = told_of(lambda *asked: replace(made(*asked), **({"rule": rule} if rule else {})), weights=weights(toy()))
    assert (told["verdict"], told["status"]) == ("speculation never ran", 1) and sentence in told["sentences"][0]


class Lying(Ours):
    def sample(self, prompt: Sequence[int], params: SamplingParams, n: int) -> list[tuple[int, ...]]:
        return super().sample(prompt, replace(params, temperature=params.temperature * 2), n)


def other() -> ModelPair:
    target = TableModel(5, seed=3)
    return ModelPair("other", target, target, (0, 1), SamplingParams(temperature=0.8), str, 12)


NO_VERDICT: dict[str, dict[str, Any]] = {
    "does not draw from the distribution that it reports": {"plain": plain(), "kind": Lying},
    "reports no log-probabilities": {"plain": plain(), "tells": False},
    "never drafted": {"weights": weights(other())},  # with other weights; no fault of speculation
    "none of the known mistakes": {"weights": weights(toy()), "draws": 20},  # would show
}


@pytest.mark.parametrize("sentence", NO_VERDICT)
def test_what_cannot_be_tested_is_said(sentence: str) -> None:
    told = told_of(of_pair(toy()), **NO_VERDICT[sentence])
    assert (told["verdict"], told["status"]) == ("cannot be tested", 2) and sentence in told["sentences"][0]


def test_two_servers_of_two_models_are_told_apart() -> None:
    with serving(plain()) as one, serving(plain(), encode=lambda _: (0, 2)) as another:
        *_, told = certify(connect(one), connect(another), contexts={"text": "text"})
    assert told["status"] == 2 and "do not serve the same model" in told["sentences"][0]


ASKED = ("--draws", "100", "--json")


@pytest.mark.long
def test_the_terminal_tells_it_and_leaves_with_its_status(capsys, tmp_path) -> None:
    with serving(of_pair(toy(), MISTAKES["accept_all"])) as bad, serving(plain()) as beside:
        assert terminal.main(["certify", "--server", bad, "--plain", beside, *ASKED, str(tmp_path / "it.json")]) == 1
        out, progress = capsys.readouterr()
        assert "✗ not lossless" in out and "should be" in out and "greedy text: flat" in progress
        assert json.loads((tmp_path / "it.json").read_text())["verdict"] == "not lossless"
        assert terminal.main(["certify", "--server", bad]) == 2
        assert "Name a plain server" in (told := capsys.readouterr().err) and "--target ours" in told
    assert terminal.main(["certify", "--server", "http://127.0.0.1:9"]) == 2


MANY_DRAWS = {"block_residual", "unjudged_fourth", "one_coin"}
SOME = [key for key in list(MISTAKES)[::8] if key not in MANY_DRAWS]


@functools.cache
def predicted(k: int) -> dict[str, int | None]:
    told = told_of(of_pair(toy(), k=k), weights=weights(toy()), draws=20_000)
    assert told["verdict"] == "lossless"
    return dict(told["contexts"][0]["needed"])


@pytest.mark.long
@pytest.mark.usefixtures("every_mistake")
@pytest.mark.parametrize("key", SOME)
def test_every_mistake_is_red_within_three_times_the_predicted_draws(key: str, record_property) -> None:
    needed = predicted(max(2, MISTAKES[key].least_k))[key]
    assert needed is not None
    if needed > 400_000:
        record_property("figure", f"{key}: would need {needed:,} draws")
        return
    told = told_of(of_pair(toy(), MISTAKES[key]), weights=weights(toy()), draws=3 * needed)
    record_property("figure", f"{key}: {needed:,} predicted, {told['verdict']} after {3 * needed:,}")
    assert told["verdict"] == "not lossless" and any(told["contexts"][0]["red"])
