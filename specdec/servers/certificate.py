"""Test from outside, by the texts that a server writes, whether its speculative decoding is lossless.

The joint distribution of the first tokens after a few prompts is compared with the target's. That comes from the
target's weights, or from the log-probabilities of a plain server of the same model, whose texts are tested in the same
way. The first token after a prompt is never drafted, so longer texts are needed. At temperature 0 the texts themselves
are compared. The command is `specdec certify`.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from ..families import zoo
from ..methods import EMBEDDED
from ..models.base import LanguageModel
from ..proof.black_box import (
    counts_in,
    distributions_of_cells,
    g_test_after_first,
    model_row,
    reserve_rest,
    Row,
    witness,
)
from ..proof.checks import NEAR_TIE
from ..proof.enumeration import JointDistribution
from ..proof.goodness_of_fit import g_test, GTest, SMALLEST
from ..proof.pair import CachedRows, rounded
from ..proof.power import assumed_draft, power
from ..types import SamplingParams
from . import fields
from .base import Chunk, Server, ServerError, Token
from .verdict import judge, name_reference, shown_by

ALARM = 1e-6  # the chance that a lossless server fails any test of a certificate
DRAWS = 3_000  # texts in each context
BATCH = 50  # texts of a request
GREEDY = 64  # tokens of a greedy text
TOP = 20  # log-probabilities for each token; vLLM's default maximum
MIN_PROBABILITY = 1e-6  # assumed for the second-best token if the server reports only one
STRIDE = 1_000  # difference between the seeds of two requests, since texts of one may have seed, seed + 1, …
REPORT_EVERY_S = 2.0
# The prompts after which a server is judged. Different distributions show different mistakes.
CONTEXTS = {
    "flat": "The old lighthouse keeper climbed the stairs and",  # many rejections, so the residual is used often
    "peaked": "Q: What is the capital of France?\nA:",  # whole drafts are accepted, so there is often a bonus
    "code": "import os\nimport sys\n\ndef main(argv=None):\n",  # sometimes the one, sometimes the other
}


@dataclass(frozen=True)
class Weights:
    """The target's model, and the draft's if it is available."""

    target: LanguageModel[Any]
    piece: Callable[[int], str]
    draft: LanguageModel[Any] | None = None

    @classmethod
    def load(cls, target: str) -> Weights:
        """Load a folder, a name on the Hub, or the embedded family in float32. Raises ValueError if that fails."""
        family = zoo.load(EMBEDDED, torch.float32) if target == EMBEDDED else zoo.load_pair(target, dtype=torch.float32)
        return cls(family.target, family.pieces.piece, next(iter(family.drafts.values()), None))


@dataclass
class Context:
    """One context, and the results for it so far."""

    name: str
    prompt: tuple[int, ...]
    plain: Counter[tuple[int, ...]] = field(default_factory=Counter)
    drawn: Counter[tuple[int, ...]] = field(default_factory=Counter)
    distributions: list[JointDistribution] = field(default_factory=list)
    row: Row | None = None  # the target's rows, cached
    result: dict[str, Any] = field(default_factory=dict)


def certify(
    server: Server,
    plain: Server | None = None,
    weights: Weights | None = None,
    temperature: float = 0.8,
    draws: int = DRAWS,
    contexts: Mapping[str, str] = CONTEXTS,
    batch: int = BATCH,
) -> Iterator[dict[str, Any]]:
    """Yield the growing certificate, ready for JSON. The last one has the verdict and its sentences.

    Raises ServerError if neither `plain` nor `weights` is given, since there is nothing to compare with.
    """
    if plain is None and weights is None:
        raise ServerError("Name what to compare with: a plain server of the same model, or the target's weights.")
    examination = Examination(server, plain, weights, SamplingParams(temperature, ignore_end=True), draws, batch)
    error = None
    try:
        yield from examination.run(contexts)
    except ServerError as broken:
        error = broken
    result = examination.state("")
    yield result | {"against": name_reference(result)} | judge(result, error)


@dataclass
class Examination:
    server: Server
    plain: Server | None
    weights: Weights | None
    params: SamplingParams
    draws: int
    batch: int
    pieces: dict[int, str] = field(default_factory=dict)
    contexts: list[Context] = field(default_factory=list)
    requests: int = 0

    def __post_init__(self) -> None:
        self.began, self.reported = time.monotonic(), 0.0
        self.k = min(self.server.facts.k or 4, 6)
        self.params = replace(self.params, max_tokens=max(4, self.k + 2))
        self.reference = "weights" if self.weights else "log-probabilities"

    def run(self, contexts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        # Shared by all tests: one for each context and length, of the plain server and of the server.
        self.alarm = ALARM / (2 * len(contexts) * self.params.max_tokens)
        for name, text in contexts.items():
            self.contexts.append(Context(name, self.tokenize(text), result={"name": name, "text": text}))
        for context in self.contexts:
            yield self.state(f"greedy text: {context.name}")
            self.check_greedy(context)
        if self.params.temperature == 0.0:
            return
        for context in self.contexts:
            yield self.state(f"the target's distribution: {context.name}")
            context.row = self.row_after(context.prompt, self.params)
            context.distributions = distributions_of_cells(context.row, self.params.max_tokens, SMALLEST / self.draws)
        if self.plain and not self.weights:
            for context in self.contexts:
                yield from self.control(self.plain, context)
        yield from self.measure()
        for context in self.contexts:
            yield from self.test(context)

    def tokenize(self, text: str) -> tuple[int, ...]:
        tokens = self.server.tokenize(text)
        if self.plain and self.plain.tokenize(text) != tokens:
            raise ServerError("The two servers read the prompt differently: they do not serve the same model.")
        return tokens

    # Greedy texts, and counts of drafts.

    def check_greedy(self, context: Context) -> None:
        """Compare greedy text with plain decoding, and count the drafts of greedy text and of a sampled text."""
        lengths = self.server.facts.context, self.weights.target.context if self.weights else None, 8 * GREEDY
        room = min(filter(None, lengths))
        params = SamplingParams(max_tokens=min(GREEDY, room - len(context.prompt) - 2 * self.k), ignore_end=True)
        text, counts = self.stream(self.server, context, params)
        plain = self.greedy(context, params)
        pairs = list(zip(text, plain, strict=False))
        same = next((i for i, pair in enumerate(pairs) if not alike(*pair)), len(pairs))
        gap = self.gap(context, plain[:same]) if same < len(plain) else None
        result = {"equal": same, "of": len(plain), "gap": None if gap is None else rounded(gap)}
        drafted = {"greedy": counts}
        if self.params.temperature > 0.0:
            sampled = replace(params, temperature=self.params.temperature, seed=self.fresh_seed())
            drafted["sampled"] = self.stream(self.server, context, sampled)[1]
        context.result |= {"greedy": result, "near_tie": gap is not None and gap <= NEAR_TIE, "drafted": drafted}

    def stream(self, server: Server, context: Context, params: SamplingParams) -> tuple[list[Token], list[int] | None]:
        """Return the tokens of a text, and how many were drafted and accepted if the server reports it."""
        tokens, counts = list[Token](), None
        for part in server.stream(context.prompt, params):
            if isinstance(part, Chunk):
                tokens += part.tokens
            elif part.counts is not None:
                counts = list(part.counts)
            if len(tokens) > params.max_tokens:
                raise ServerError("The server wrote more tokens than it was asked for.")
        self.pieces |= {token.id: token.piece for token in tokens if token.id is not None}
        return tokens, counts

    def greedy(self, context: Context, params: SamplingParams) -> list[Token]:
        """Return the greedy text of plain decoding, by the plain server or by the weights."""
        if self.plain:
            return self.stream(self.plain, context, params)[0]
        assert self.weights
        rows = CachedRows(self.weights.target, len(context.prompt) + params.max_tokens)
        text = context.prompt
        for _ in range(params.max_tokens):
            text = (*text, int(rows.logits(text).argmax()))
        return [Token(self.weights.piece(token), token) for token in text[len(context.prompt) :]]

    def gap(self, context: Context, tokens: Sequence[Token]) -> float:
        """Return the gap between the two best logits after `tokens`."""
        text = (*context.prompt, *(token.id for token in tokens if token.id is not None))
        distribution = self.row_after(text, SamplingParams(temperature=1.0, max_tokens=1))(())
        best, second = sorted((*distribution.values(), MIN_PROBABILITY), reverse=True)[:2]
        return math.log(best / second)

    # Samples.

    def control(self, plain: Server, context: Context) -> Iterator[dict[str, Any]]:
        """Test that the plain server, asked for many texts at once, draws from the distribution that it reports."""
        for done in self.draw(plain, context, context.plain):
            yield self.state(f"the plain server: {context.name}, {done} of {self.draws} texts")
        if any(test.tail < self.alarm for test in against_distributions(context.plain, context.distributions)):
            raise ServerError(
                "The plain server, asked for {n} texts at once, does not draw from the distribution that it reports, "
                "so that speculation cannot be judged by it. Start vLLM with --logprobs-mode processed_logprobs, or "
                "judge by the target's weights.",
                n=self.batch,
            )

    def row_after(self, prompt: tuple[int, ...], params: SamplingParams) -> Row:
        """Make the target's rows after `prompt`, from the weights, else from the plain server's reports."""
        if self.weights:
            return model_row(self.weights.target, prompt, params)
        assert self.plain
        plain = self.plain

        @functools.cache
        def row(text: tuple[int, ...]) -> dict[int, float]:
            distribution = plain.distribution((*prompt, *text), params, TOP)
            mass = math.fsum(distribution.values())
            if not distribution or not 0.0 < mass < 1.001:
                raise fields.unreadable("log-probabilities")
            return reserve_rest(distribution)

        return row

    def test(self, context: Context) -> Iterator[dict[str, Any]]:
        began = time.monotonic()
        for done in self.draw(self.server, context, context.drawn):
            yield self.state(f"the server: {context.name}, {done} of {self.draws} texts")
        tests = against_distributions(context.drawn, context.distributions)
        context.result |= {
            "seconds": round(time.monotonic() - began, 1),
            "tests": [test_figures(test) for test in tests],
            "red": [test.tail < self.alarm for test in tests],
            "witness": self.witness(context),
        }
        yield self.state(f"the server: {context.name}")

    def draw(self, server: Server, context: Context, texts: Counter[tuple[int, ...]]) -> Iterator[int]:
        """Draw texts in one context into `texts`. Yield their number every few seconds."""
        while (done := texts.total()) < self.draws:
            params = replace(self.params, seed=self.fresh_seed())
            drawn = server.sample(context.prompt, params, min(self.batch, self.draws - done))
            if any(len(text) != params.max_tokens for text in drawn) or not drawn:
                raise ServerError(
                    "The server ended texts before the {n} tokens that were asked for.", n=params.max_tokens
                )
            texts.update(drawn)
            if time.monotonic() - self.reported > REPORT_EVERY_S:
                yield texts.total()

    def fresh_seed(self) -> int:
        self.requests += 1
        return 1 + STRIDE * self.requests

    # Evidence and power.

    def witness(self, context: Context) -> dict[str, Any] | None:
        best = witness(context.drawn, context.distributions)
        return best and {
            "after": [self.piece(token) for token in best.before],
            "token": best.token,
            "piece": self.piece(best.token),
            "place": len(best.before) + 1,
            "expected": rounded(best.expected),
            "seen": rounded(best.seen),
            "of": best.texts,
        }

    def piece(self, token: int) -> str:
        if self.weights:
            return str(self.weights.piece(token))
        return self.pieces.get(token, f"#{token}")

    def measure(self) -> Iterator[dict[str, Any]]:
        """Compute how many draws are needed to show each known mistake."""
        for context in self.contexts:
            yield self.state(f"power: {context.name}")
            assert context.row
            drafted = self.weights.draft if self.weights else None
            draft = model_row(drafted, context.prompt, self.params) if drafted else assumed_draft(context.row)
            temperature = self.params.temperature
            context.result["needed"] = power(context.row, draft, context.distributions, self.k, temperature, self.alarm)
        results = [context.result for context in self.contexts]
        shown, known = len(shown_by(results, self.draws)), len(results[0]["needed"])
        yield self.state(f"{self.draws} draws at each context show {shown} of {known} known mistakes")

    def state(self, doing: str) -> dict[str, Any]:
        self.reported = time.monotonic()
        return {
            "server": asdict(self.server.facts),
            "plain": asdict(self.plain.facts) if self.plain else None,
            "temperature": self.params.temperature,
            "draws": self.draws if self.params.temperature > 0 else 0,
            "length": self.params.max_tokens,
            "reference": self.reference,
            "doing": doing,
            "seconds": round(self.reported - self.began, 1),
            "contexts": [dict(context.result) | {"done": context.drawn.total()} for context in self.contexts],
        }


def alike(a: Token, b: Token) -> bool:
    return a.id == b.id if a.id is not None and b.id is not None else a.piece == b.piece


def against_distributions(counts: Counter[tuple[int, ...]], distributions: Sequence[JointDistribution]) -> list[GTest]:
    """Test the first token, then the next 1, 2, … tokens given the first."""
    first, *longer = distributions
    return [
        g_test(counts_in(first, counts), first),
        *(g_test_after_first(counts, first, distribution) for distribution in longer),
    ]


def test_figures(test: GTest) -> list[float | None]:
    """Return G, its degrees of freedom, and a bound on the chance of so large a G, for JSON."""
    return [rounded(test.statistic), test.degrees, rounded(test.tail)]
