"""The certificate of a server, on our own engine behind HTTP: green where it is lossless, red for every mistake."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from specdec import cli as terminal
from specdec.proof.certify import ModelPair, toy
from specdec.proof.mistakes import MISTAKES
from specdec.proof.toys import TableModel
from specdec.servers import vllm
from specdec.servers.certificate import certify, Weights
from specdec.servers.connect import connect
from specdec.types import SamplingParams
from specdec.verify import RejectionSampling
from tests.servers.ours import MakeTask, of_pair, Ours, serving


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """Large requests: our server draws the texts of one together."""
    monkeypatch.setattr(f"{certify.__module__}.BATCH", 50_000)


def told_of(task, plain=None, weights=None, draws=2_000, temperature=0.8, **options) -> dict[str, Any]:
    """The whole certificate of that engine as a server; `options` are the plain server's."""
    with serving(task) as address, serving(plain or task, **options) as beside:
        other = connect(beside) if plain else None
        *_, told = certify(connect(address), other, weights, temperature, draws, contexts={"toy": "text"})
    return json.loads(json.dumps(told))


def weights(pair: ModelPair) -> Weights:
    return Weights(pair.models[0], pair.piece)


def plain() -> MakeTask:
    return of_pair(toy(), k=0)


REFERENCES: dict[str, dict[str, Any]] = {
    "weights": {"weights": weights(toy())},
    "log-probabilities": {"plain": plain()},
}


@pytest.mark.parametrize("reference", ["weights", pytest.param("log-probabilities", marks=pytest.mark.long)])
def test_a_lossless_server_is_green_whatever_it_is_held_against(reference: str) -> None:
    told = told_of(of_pair(toy()), **REFERENCES[reference])
    assert (told["verdict"], told["status"], told["reference"]) == ("lossless", 0, reference)
    (one,) = told["contexts"]
    assert one["greedy"]["equal"] == one["greedy"]["of"] > 40 and one["done"] == 2_000
    assert 0.1 < one["bias"] < 0.3 and f"{one['bias']:.0%} of the probability after 'toy'" in told["sentences"][0]
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


def test_a_difference_after_a_token_without_id_is_not_judged(monkeypatch) -> None:
    read = vllm.tokens
    monkeypatch.setattr(vllm, "tokens", lambda *told: tuple(replace(token, id=None) for token in read(*told)))
    told = told_of(of_pair(toy(), MISTAKES["accept_all"]), plain(), temperature=0.0)
    assert told["contexts"][0]["greedy"]["equal"] > 0
    assert told["verdict"] == "cannot be tested" and "does not report the id" in told["sentences"][0]


class Capped(Ours):
    """A proxy's limit: it lets ten tokens of a text pass, or fewer."""

    most = 10

    def stream(self, prompt: Sequence[int], params: SamplingParams) -> Iterator[Any]:
        return super().stream(prompt, replace(params, max_tokens=min(self.most, params.max_tokens)))


class Mute(Capped):
    def stream(self, prompt: Sequence[int], params: SamplingParams) -> Iterator[Any]:
        for item in super().stream(prompt, params):
            if item.get("choices"):
                item["choices"][0] |= {"text": "", "token_ids": [], "logprobs": None}
            yield item


@pytest.mark.parametrize(("kind", "count"), [(Capped, 10), (Mute, 0)])
def test_a_text_that_is_only_shorter_is_no_difference(kind: type[Ours], count: int) -> None:
    with serving(of_pair(toy()), kind=kind) as short, serving(plain()) as beside:
        *_, judged = certify(connect(short), connect(beside), temperature=0.0, contexts={"toy": "text"})
        *_, against = certify(connect(beside), connect(short), temperature=0.0, contexts={"toy": "text"})
    for told, who in ((judged, "The server"), (against, "The plain server")):
        assert (told["verdict"], told["status"]) == ("cannot be tested", 2)
        assert told["sentences"][0].startswith(f"{who} stopped early: the text after 'toy' has {count} of ")


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
    "Raise the number of draws": {"weights": weights(toy()), "draws": 20},
}


@pytest.mark.parametrize("sentence", NO_VERDICT)
def test_what_cannot_be_tested_is_said(sentence: str) -> None:
    told = told_of(of_pair(toy()), **NO_VERDICT[sentence])
    assert (told["verdict"], told["status"]) == ("cannot be tested", 2) and sentence in told["sentences"][0]


def test_two_servers_of_two_models_are_told_apart() -> None:
    with serving(plain()) as one, serving(plain(), encode=lambda _: (0, 2)) as another:
        *_, told = certify(connect(one), connect(another), contexts={"text": "text"})
    assert told["status"] == 2 and "do not serve the same model" in told["sentences"][0]


@pytest.mark.long
def test_the_terminal_tells_it_and_leaves_with_its_status(capsys, tmp_path) -> None:
    with serving(of_pair(toy(), MISTAKES["accept_all"])) as bad, serving(plain()) as beside:
        asked = ["--draws", "100", "--json", str(tmp_path / "it.json")]
        assert terminal.main(["certify", "--server", bad, "--plain", beside, *asked]) == 1
        out, progress = capsys.readouterr()
        assert "✗ not lossless" in out and "should be" in out and "greedy text: flat" in progress
        assert json.loads((tmp_path / "it.json").read_text())["verdict"] == "not lossless"
        assert terminal.main(["certify", "--server", bad]) == 2
        assert "Name a plain server" in (told := capsys.readouterr().err) and "--target ours" in told
    assert terminal.main(["certify", "--server", "http://127.0.0.1:9"]) == 2


SMALL = {"residual_epsilon", "coarse_ratio", "block_residual"}  # these move less than 0.5 % of the probability
SOME = [key for key in list(MISTAKES)[::8] if key not in SMALL]


@pytest.mark.long
@pytest.mark.parametrize("key", SOME)
def test_a_mistake_that_moves_a_few_percent_is_red_after_20_000_draws(key: str) -> None:
    pair, mistake = toy(), MISTAKES[key]
    told = told_of(of_pair(pair, mistake, k=max(pair.k, mistake.least_k)), weights=weights(pair), draws=20_000)
    assert told["verdict"] == "not lossless" and any(told["contexts"][0]["red"])
