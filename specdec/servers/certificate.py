"""Test whether a server's speculative decoding is lossless, from the texts that it writes (`specdec certify`).

The joint distribution of many short texts is compared with the target's, which is computed from its weights, or read
from the log-probabilities that a plain server reports. Greedy texts are compared, too.
"""

import functools
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..engine import Engine
from ..models.base import LanguageModel
from ..proof import black_box
from ..proof.certify import four_digits, NEAR_TIE
from ..proof.enumeration import JointDistribution
from ..proof.goodness_of_fit import MIN_EXPECTED
from ..types import SamplingParams
from . import answers
from .answers import Chunk, ServerError, Token
from .connect import Server

ALARM = 1e-6  # the largest chance that a lossless server fails one or more tests of its certificate
DRAWS = 3_000  # texts to sample after each prompt
BATCH = 50  # texts per request
GREEDY = 64  # tokens per greedy text
TOP = 20  # log-probabilities to request for each token; vLLM's default maximum
MIN_PROBABILITY = 1e-6  # assumed for the second-best token if only one is listed
STRIDE = 1_000  # distance between the seeds of two requests: the texts of one request use seed, seed + 1, …
REPORT_EVERY_S = 2.0
LOSSLESS = "lossless"
LOSSY = "not lossless"
IDLE = "speculation never ran"
UNKNOWN = "cannot be tested"
MAX_BIAS = 0.5  # a certificate that would miss larger ones everywhere says nothing
STATUS = {LOSSLESS: 0, LOSSY: 1, IDLE: 1, UNKNOWN: 2}
# The prompts whose continuations are tested. Different distributions show different mistakes.
CONTEXTS = {
    "flat": "The old lighthouse keeper climbed the stairs and",  # many rejections, so the residual is used often
    "peaked": "Q: What is the capital of France?\nA:",  # whole drafts are accepted, so bonus tokens are frequent
    "code": "import os\nimport sys\n\ndef main(argv=None):\n",  # both rejections and bonus tokens occur
}


@dataclass(frozen=True)
class Weights:
    target: LanguageModel[Any]
    piece: Callable[[int], str]


def load_weights(target: str) -> Weights:
    """Load a folder, a name on the Hub, or the embedded family in float32. Raises Refused if that fails."""
    family = Engine(target, dtype="float32", device="cpu").models
    return Weights(family.target, family.pieces.piece)


@dataclass
class Context:
    name: str
    prompt: tuple[int, ...]
    texts: Counter[tuple[int, ...]] = field(default_factory=Counter)
    distributions: list[JointDistribution] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)


def alarm_of_each(contexts: int, length: int) -> float:
    """Divide ALARM among all tests: one for each context, each server, and each length of text."""
    return ALARM / (2 * contexts * length)


def certify(
    server: Server,
    plain: Server | None = None,
    weights: Weights | None = None,
    temperature: float = 0.8,
    draws: int = DRAWS,
    contexts: Mapping[str, str] = CONTEXTS,
) -> Iterator[dict[str, Any]]:
    """Yield the certificate as it grows, ready for JSON; only the last has a verdict. Needs `plain` or `weights`."""
    if plain is None and weights is None:
        raise ServerError("Name what to compare with: a plain server of the same model, or the target's weights.")
    certification = Certification(server, plain, weights, SamplingParams(temperature, ignore_end=True), draws)
    error = None
    try:
        yield from certification.run(contexts)
    except ServerError as broken:
        error = broken
    result = certification.state("")
    exact, reported = "the exact distribution of the target's weights", "the distribution that the plain server reports"
    yield result | {"against": exact if weights else reported} | judge(result, error)


class Certification:
    def __init__(
        self, server: Server, plain: Server | None, weights: Weights | None, params: SamplingParams, draws: int
    ) -> None:
        self.server, self.plain, self.weights, self.draws = server, plain, weights, draws
        self.k = min(server.facts.k or 4, 6)
        self.params = replace(params, max_tokens=max(4, self.k + 2))  # the first token is never drafted
        self.pieces, self.contexts = dict[int, str](), list[Context]()
        self.seeds = itertools.count(STRIDE + 1, STRIDE)
        self.began, self.reported = time.monotonic(), 0.0

    def run(self, contexts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        self.alarm = alarm_of_each(len(contexts), self.params.max_tokens)
        for name, text in contexts.items():
            self.contexts.append(Context(name, self.tokenize(text), result={"name": name, "text": text}))
        for context in self.contexts:
            yield self.state(f"greedy text: {context.name}")
            self.check_greedy(context)
        if self.params.temperature == 0.0:
            return
        for context in self.contexts:
            yield self.state(f"the target's distribution: {context.name}")
            row = self.row_after(context.prompt, self.params)
            smallest = MIN_EXPECTED / self.draws
            context.distributions = black_box.distributions_of_cells(row, self.params.max_tokens, smallest)
            degrees = len(context.distributions[-1]) - len(context.distributions[0])
            context.result["bias"] = four_digits(black_box.noticed_bias(degrees, self.draws, self.alarm))
        if self.plain and not self.weights:
            for context in self.contexts:
                yield from self.control(self.plain, context)
        yield self.state(describe_bias([context.result for context in self.contexts], self.draws))
        for context in self.contexts:
            yield from self.test(context)

    def tokenize(self, text: str) -> tuple[int, ...]:
        tokens = self.server.tokenize(text)
        if self.plain and self.plain.tokenize(text) != tokens:
            raise ServerError("The two servers read the prompt differently: they do not serve the same model.")
        return tokens

    def check_greedy(self, context: Context) -> None:
        """Compare the greedy text with that of plain decoding. Count the drafts in it and in a sampled text."""
        limits = self.server.facts.context, self.weights.target.context if self.weights else None, 8 * GREEDY
        limit = min(filter(None, limits))
        params = SamplingParams(max_tokens=min(GREEDY, limit - len(context.prompt) - 2 * self.k), ignore_end=True)
        text, counts = self.stream(self.server, context, params)
        plain = self.greedy(context, params)
        pairs = list(zip(text, plain, strict=False))
        equal = next((i for i, pair in enumerate(pairs) if not alike(*pair)), len(pairs))
        gap = self.gap(context, plain[:equal]) if equal < len(plain) else None
        result = {"equal": equal, "of": len(plain), "gap": None if gap is None else four_digits(gap)}
        drafted = {"greedy": counts}
        if self.params.temperature > 0.0:
            sampled = replace(params, temperature=self.params.temperature, seed=next(self.seeds))
            drafted["sampled"] = self.stream(self.server, context, sampled)[1]
        context.result |= {"greedy": result, "near_tie": gap is not None and gap <= NEAR_TIE, "drafted": drafted}

    def stream(self, server: Server, context: Context, params: SamplingParams) -> tuple[list[Token], list[int] | None]:
        """Return the tokens of a text, and [drafted, accepted], None if that is not reported."""
        tokens, counts = list[Token](), None
        for item in server.stream(context.prompt, params):
            if isinstance(item, Chunk):
                tokens += item.tokens
            elif item.counts is not None:
                counts = list(item.counts)
            if len(tokens) > params.max_tokens:
                raise ServerError("The server wrote more tokens than it was asked for.")
        if len(tokens) < params.max_tokens:
            raise ServerError(
                f"The {'plain ' * (server is self.plain)}server stopped early: the text after {context.name!r} has "
                f"{len(tokens)} of {params.max_tokens} tokens. Does a proxy limit it, or is ignore_eos not honoured?"
            )
        self.pieces |= {token.id: token.piece for token in tokens if token.id is not None}
        return tokens, counts

    def greedy(self, context: Context, params: SamplingParams) -> list[Token]:
        """Return plain decoding's greedy text, from the plain server, or else from the weights."""
        if self.plain:
            return self.stream(self.plain, context, params)[0]
        assert self.weights
        rows = black_box.CachedRows(self.weights.target, len(context.prompt) + params.max_tokens)
        text = context.prompt
        for _ in range(params.max_tokens):
            text = (*text, int(rows.logits(text).argmax()))
        return [Token(self.weights.piece(token), token) for token in text[len(context.prompt) :]]

    def gap(self, context: Context, tokens: Sequence[Token]) -> float | None:
        """Return how far apart the two best logits after `tokens` are; None if the id of one is unknown."""
        text = tuple(token.id for token in tokens if token.id is not None)
        if len(text) < len(tokens):
            return None
        distribution = self.row_after(context.prompt + text, SamplingParams(temperature=1.0, max_tokens=1))(())
        best, second = sorted((*distribution.values(), MIN_PROBABILITY), reverse=True)[:2]
        return math.log(best / second)

    def control(self, plain: Server, context: Context) -> Iterator[dict[str, Any]]:
        """Check that the plain server, asked for many texts at once, draws from what it reports."""
        texts = Counter[tuple[int, ...]]()
        for done in self.draw(plain, context, texts):
            yield self.state(f"the plain server: {context.name}, {done} of {self.draws} texts")
        if any(test.tail < self.alarm for test in black_box.against_distributions(texts, context.distributions)):
            raise ServerError(
                f"The plain server, asked for {BATCH} texts at once, does not draw from the distribution that it "
                "reports, so that speculation cannot be judged by it. Start vLLM with --logprobs-mode "
                "processed_logprobs, or judge by the target's weights."
            )

    def row_after(self, prompt: tuple[int, ...], params: SamplingParams) -> black_box.RowAfter:
        """Make the target's `RowAfter` after `prompt` from the weights, or else from the plain server's reports."""
        if self.weights:
            return black_box.model_row(self.weights.target, prompt, params)
        assert self.plain
        plain = self.plain

        @functools.cache
        def row(text: tuple[int, ...]) -> dict[int, float]:
            distribution = plain.distribution((*prompt, *text), params, TOP)
            mass = math.fsum(distribution.values())
            if not distribution or not 0.0 < mass < 1.001:
                raise answers.unreadable("log-probabilities")
            return black_box.reserve_rest(distribution)

        return row

    def test(self, context: Context) -> Iterator[dict[str, Any]]:
        began = time.monotonic()
        for done in self.draw(self.server, context, context.texts):
            yield self.state(f"the server: {context.name}, {done} of {self.draws} texts")
        tests = black_box.against_distributions(context.texts, context.distributions)
        best = black_box.witness(context.texts, context.distributions)
        context.result |= {
            "seconds": round(time.monotonic() - began, 1),
            "tests": [[four_digits(test.statistic), test.degrees, four_digits(test.tail)] for test in tests],
            "red": [test.tail < self.alarm for test in tests],
            "witness": best
            and {
                "after": [self.piece(token) for token in best.before],
                "token": best.token,
                "piece": self.piece(best.token),
                "place": len(best.before) + 1,
                "expected": four_digits(best.expected),
                "seen": four_digits(best.seen),
                "of": best.texts,
            },
        }
        yield self.state(f"the server: {context.name}")

    def draw(self, server: Server, context: Context, texts: Counter[tuple[int, ...]]) -> Iterator[int]:
        """Sample texts for one context and add them to `texts`. Yield their number, every few seconds."""
        while (done := texts.total()) < self.draws:
            params = replace(self.params, seed=next(self.seeds))
            batch = server.sample(context.prompt, params, min(BATCH, self.draws - done))
            if any(len(text) != params.max_tokens for text in batch) or not batch:
                raise ServerError(f"The server ended texts before the {params.max_tokens} tokens that were asked for.")
            texts.update(batch)
            if time.monotonic() - self.reported > REPORT_EVERY_S:
                yield texts.total()

    def piece(self, token: int) -> str:
        if self.weights:
            return str(self.weights.piece(token))
        return self.pieces.get(token, f"#{token}")

    def state(self, doing: str) -> dict[str, Any]:
        self.reported = time.monotonic()
        return {
            "server": asdict(self.server.facts),
            "plain": asdict(self.plain.facts) if self.plain else None,
            "temperature": self.params.temperature,
            "draws": self.draws if self.params.temperature > 0 else 0,
            "length": self.params.max_tokens,
            "reference": "weights" if self.weights else "log-probabilities",
            "doing": doing,
            "seconds": round(self.reported - self.began, 1),
            "contexts": [dict(context.result) | {"done": context.texts.total()} for context in self.contexts],
        }


def alike(a: Token, b: Token) -> bool:
    return a.id == b.id if a.id is not None and b.id is not None else a.piece == b.piece


def judge(result: dict[str, Any], error: ServerError | None = None) -> dict[str, Any]:
    """Return the verdict on `result`, its sentences and exit status. `error` is what stopped the tests."""
    contexts = result["contexts"]  # `red` of each says which tests failed, that of the first token first
    if error is not None:
        return verdict(UNKNOWN, error.sentence)
    idle = describe_idleness(contexts)
    different = [context for context in contexts if context["greedy"]["gap"] is not None and not context["near_tie"]]
    failing = [context for context in contexts if any(context.get("red", ()))]
    if result["reference"] == "weights" and any(context["red"][0] for context in failing):
        return verdict(
            UNKNOWN,
            "Even the first token, which is never drafted, does not follow the distribution of these weights: "
            "the server uses other weights, another precision, or its own sampling settings.",
        )
    if failing or different:
        return verdict(LOSSY, *map(describe_witness, failing[:1]), *map(describe_difference, different[:1]), *idle)
    if idle:
        return verdict(IDLE, *idle)
    if any(text["gap"] is None and text["equal"] < text["of"] for text in (one["greedy"] for one in contexts)):
        return verdict(
            UNKNOWN,
            "The greedy texts differ, perhaps only because two logits nearly tie. That cannot be tested, because the "
            "server does not report the id of each token before.",
        )
    ties = []
    if near_ties := sum(context["near_tie"] for context in contexts):
        ties = [f"In {near_ties} of the contexts, the greedy texts differ, but only because two logits nearly tie."]
    if not result["temperature"]:
        return verdict(LOSSLESS, "The greedy text equals that of plain decoding, token for token.", *ties)
    if min(context["bias"] for context in contexts) >= MAX_BIAS:
        return verdict(UNKNOWN, f"{describe_bias(contexts, result['draws'])}. Raise the number of draws.")
    sentence = f"Lossless as far as this can tell: {describe_bias(contexts, result['draws'])}."
    silent = ["The server does not report whether it drafted anything."]
    return verdict(LOSSLESS, sentence, *ties, *([] if speculated(contexts) else silent))


def verdict(name: str, *sentences: str) -> dict[str, Any]:
    return {"verdict": name, "sentences": list(sentences), "status": STATUS[name]}


def describe_idleness(contexts: Sequence[Any]) -> list[str]:
    """Return a sentence if the server drafted or accepted nothing in its greedy or its sampled texts."""
    for mode in ("greedy", "sampled"):
        drafted, accepted = speculated(contexts, [mode]) or (1, 1)
        if not drafted:
            return ["Speculation never ran: the server drafted no token."]
        if not accepted:
            return [f"Speculation never ran: the server accepted none of {drafted} drafted tokens."]
    return []


def speculated(contexts: Sequence[Any], modes: Sequence[str] = ("greedy", "sampled")) -> tuple[int, int] | None:
    """Return the numbers of drafted and accepted tokens; None if the server does not report them."""
    counts = [
        context["drafted"][mode] for context in contexts for mode in modes if context.get("drafted", {}).get(mode)
    ]
    return (sum(drafted for drafted, _ in counts), sum(accepted for _, accepted in counts)) if counts else None


def describe_witness(context: Any) -> str:
    seen = context["witness"]
    before = context["text"][-30:] + "".join(seen["after"])
    return (
        f"Not lossless: after {before!r}, token {seen['place']} should be {seen['piece']!r} with probability "
        f"{seen['expected']:.4g}, but its share is {seen['seen']:.4g} (of {seen['of']} texts)."
    )


def describe_difference(context: Any) -> str:
    greedy, name = context["greedy"], context["name"]
    return (
        f"Not lossless: the greedy text of {name} differs from plain decoding's at token {greedy['equal'] + 1}, "
        f"where the two best logits are {greedy['gap']:.3g} apart."
    )


def describe_bias(contexts: Sequence[Any], draws: int) -> str:
    """Say what any mistake must move to be noticed. `bias` of a context is a total variation (`noticed_bias`)."""
    shares = ", ".join(f"{context['bias']:.0%} of the probability after {context['name']!r}" for context in contexts)
    return f"{draws} draws at each context show, in 999 of 1,000 certificates, any mistake that moves {shares}"
