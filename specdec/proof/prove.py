"""The enumerator: every random path of a decoding loop, with its exact probability, against the target's law.

Sampling cannot show that a loop is exact, only that it is not far off; some classic mistakes would take a
hundred million samples to see. On a toy model with a handful of tokens all random paths can be walked. The
chooser below answers every random question in turn with each answer that has a chance, and multiplies the
chances. What comes out is the loop's exact output law.

`specdec prove` proves the shipped loop, under any of its rules. `specdec prove my_verify.py`
judges a file that defines `verify(tokens, p, q, chooser)`: `tokens` are the K drafted ids, `p` [K + 1, V] and
`q` [K, V] the two models' laws (float64 tensors); it returns the accepted tokens followed by exactly one more. All
randomness comes from `chooser.categorical(probs, key)` and `chooser.accept(p, q, key) -> (accepted, u)`; any key
will do.
"""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from ..drafters.base import Drafter, siblings
from ..drafters.draft_model import DraftModelDrafter
from ..engine import generate, Task
from ..events import Committed, Failed
from ..rules import RULES
from ..sampling import Chooser, probabilities
from ..types import Kind, Proposal, SamplingParams, Verdict
from ..verify import RejectionSampling, Rule

Law = dict[tuple[int, ...], float]
Outcome = TypeVar("Outcome")
PROMPT = (0,)


class TooManyPaths(RuntimeError):
    """The toy is too large to enumerate within the limit."""


class EnumeratingChooser(Chooser):
    """Answers as the script says, then takes the first possible answer; remembers what else was possible."""

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.script = list(script)
        self.open: list[list[int]] = []  # per question, the answers not yet taken
        self.probability = 1.0
        self._asked = 0

    def categorical(self, probs: Tensor, key: tuple[str, int] = ("", 0)) -> int:
        return self._answer(probs.tolist())

    def accept(self, p: float, q: float, key: tuple[str, int] = ("", 0)) -> tuple[bool, float]:
        keep = 1.0 if p >= q else p / q
        accepted = bool(self._answer([1.0 - keep, keep]))
        return accepted, 0.0 if accepted else 1.0

    def _answer(self, chances: list[float]) -> int:
        possible = [i for i, chance in enumerate(chances) if chance > 0.0 or math.isnan(chance)]
        if self._asked < len(self.script):
            answer, rest = self.script[self._asked], []
        else:
            answer, *rest = possible
            self.script.append(answer)
        if self._asked == len(self.open):
            self.open.append(rest)
        self.probability *= chances[answer]
        self._asked += 1
        return answer


def paths(run: Callable[[Chooser], Outcome], limit: int) -> Iterator[tuple[Outcome, float]]:
    """Every random path of `run`, as (outcome, probability). Depth first; TooManyPaths beyond `limit`."""
    script: list[int] = []
    opened: list[list[int]] = []
    for _ in range(limit):
        chooser = EnumeratingChooser(script)
        chooser.open = opened
        outcome = run(chooser)
        yield outcome, chooser.probability
        script, opened = chooser.script, chooser.open
        while opened and not opened[-1]:
            opened.pop()
            script.pop()
        if not opened:
            return
        script[-1] = opened[-1].pop(0)
    raise TooManyPaths(f"more than {limit} paths")


def output_law(run: Callable[[Chooser], tuple[int, ...]], limit: int = 100_000) -> tuple[Law, int]:
    """The exact law of what `run` returns, and the number of paths."""
    law: Law = {}
    count = 0
    for outcome, probability in paths(run, limit):
        law[outcome] = law.get(outcome, 0.0) + probability
        count += 1
    return law, count


def total_variation(a: Law, b: Law) -> float:
    """Half the sum of absolute differences; nan counts as 1."""
    distance = 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())
    return 1.0 if math.isnan(distance) else distance


@dataclass
class TokenList:
    """The cache of a table model: the tokens themselves."""

    tokens: list[int]

    @property
    def length(self) -> int:
        return len(self.tokens)

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        self.tokens = self.tokens[:length] + [self.tokens[length + i] for i in path]


class ByPrefix:
    """A model that is a function of the text before a token: a subclass gives the logits. Knows trees."""

    vocabulary: int
    context: int

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        """[V]"""
        raise NotImplementedError

    def new_cache(self, capacity: int) -> TokenList:
        return TokenList([])

    def forward(self, tokens: Sequence[int], cache: TokenList, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        first = len(tokens) - len(parents)
        prefixes: list[tuple[int, ...]] = []
        for i, token in enumerate(tokens):
            if i < first:
                before = tuple(cache.tokens) if i == 0 else prefixes[-1]
            else:
                before = prefixes[first + parents[i - first]]
            prefixes.append((*before, token))
        cache.tokens += tokens
        return torch.stack([self.logits(prefix) for prefix in prefixes[len(prefixes) - rows :]])


class TableModel(ByPrefix):
    """A toy language model: random float64 logits for every context, drawn once."""

    def __init__(self, vocabulary: int, seed: int, base: TableModel | None = None, context: int = 64) -> None:
        self.vocabulary, self.seed, self.base, self.context = vocabulary, seed, base, context
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        """A draft resembles its base: 0.6 of the base's logits plus noise.  # [V]"""
        if prefix not in self._rows:
            rng = random.Random(f"{self.seed}:{prefix}")
            noise = torch.tensor([rng.gauss(0.0, 1.2) for _ in range(self.vocabulary)], dtype=torch.float64)
            self._rows[prefix] = noise if self.base is None else 0.6 * self.base.logits(prefix) + 0.75 * noise
        return self._rows[prefix]


class TreeDrafter:
    """A small tree of drafts for the proof: `width` siblings a level, the first of which has children.

    `how` is "sampled" (i.i.d. siblings), "without replacement" (q conditional on the elder siblings) or
    "top" (deterministic top candidates: point masses).
    """

    name = "tree"

    def __init__(self, model: TableModel, width: int = 2, how: str = "sampled") -> None:
        self.model, self.width, self.how = model, width, how

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        drafted: list[int] = []
        parents: list[int] = []
        laws: list[Tensor] = []
        node, prefix = -1, tuple(tokens)
        for level in range(k):
            law = probabilities(self.model.logits(prefix)[None], params)[0]
            width, first = min(self.width, int((law > 0).sum())), len(drafted)
            if self.how == "without replacement":
                children = list(siblings(law, width, chooser, level))
            elif self.how == "top":
                children = [(token, law) for token in law.argsort(descending=True)[:width].tolist()]
            else:
                children = [(chooser.categorical(law, ("draft", level)), law) for _ in range(width)]
            for token, q in children:
                drafted.append(token)
                parents.append(node)
                laws.append(q)
            node, prefix = first, (*prefix, drafted[first])
        probs = torch.stack(laws) if laws and self.how != "top" else None
        return Proposal(tuple(drafted), tuple(parents), probs)


class LookupToy:
    """Deterministic point-mass chain: always the same guesses."""

    name = "point"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        return Proposal.chain([tokens[-1]] * k)


FULL_LAW = SamplingParams(temperature=1.0)


@dataclass(frozen=True)
class Case:
    """A toy on which a loop can be enumerated. `length` tokens come behind the prefill's, so drafts may have them."""

    vocabulary: int = 3
    k: int = 2
    length: int = 3
    params: SamplingParams = FULL_LAW
    drafter: str = "model"  # model | point | sampled | without replacement | top
    seed: int = 0
    end: bool = False  # whether token V - 1 ends the text

    def models(self) -> tuple[TableModel, TableModel]:
        target = TableModel(self.vocabulary, self.seed)
        return target, TableModel(self.vocabulary, self.seed + 10_000, base=target)

    def make_drafter(self, draft: TableModel) -> Drafter:
        if self.drafter == "model":
            return DraftModelDrafter(draft)
        if self.drafter == "point":
            return LookupToy()
        return TreeDrafter(draft, how=self.drafter)

    def task(self, rule: Rule | None = None, drafter: Drafter | None = None) -> Task:
        target, draft = self.models()
        ends = frozenset({self.vocabulary - 1} if self.end else ())
        params = replace(self.params, max_tokens=self.length + 1)
        return Task(
            target, PROMPT, params, drafter or self.make_drafter(draft), self.k,
            rule or RejectionSampling(), ends, details=False,
        )  # fmt: skip

    def exact_law(self) -> Law:
        """The target's own law of the text, by multiplying its rows."""
        target, _ = self.models()
        law: Law = {}

        def extend(tokens: tuple[int, ...], probability: float) -> None:
            ended = self.end and tokens and tokens[-1] == self.vocabulary - 1
            if ended or len(tokens) == self.length + 1:
                law[tokens] = probability
                return
            for token, chance in enumerate(
                probabilities(target.logits((*PROMPT, *tokens))[None], self.params)[0].tolist()
            ):
                if chance > 0.0:
                    extend((*tokens, token), probability * chance)

        extend((), 1.0)
        return law


def run_loop(task_of: Callable[[], Task]) -> Callable[[Chooser], tuple[int, ...]]:
    """The shipped loop as a function of its randomness alone. Drafters are made anew for every path."""

    def run(chooser: Chooser) -> tuple[int, ...]:
        tokens: list[int] = []
        for event in generate(task_of(), chooser):
            if isinstance(event, Committed):
                tokens += event.tokens
            elif isinstance(event, Failed):  # a drafter that crashes would prove nothing but plain decoding
                return (-1,)
        return tuple(tokens)

    return run


def shipped_error(case: Case, limit: int = 100_000, rule: str = "rejection") -> tuple[float, int]:
    """Largest difference between the shipped loop's law and the target's, and the number of paths."""
    law, count = output_law(run_loop(lambda: case.task(RULES[rule]())), limit)
    exact = case.exact_law()
    return max(abs(law.get(key, 0.0) - exact.get(key, 0.0)) for key in law.keys() | exact.keys()), count


PARAMS = (
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.5),
    SamplingParams(temperature=2.0),
    SamplingParams(temperature=1.0, top_k=2),
    SamplingParams(temperature=0.8, top_p=0.8),
    SamplingParams(temperature=1.3, top_k=3, top_p=0.9),
)
CHAINS = ("model", "point")
DRAFTERS = (*CHAINS, "sampled", "without replacement", "top")


def cases(rule: str = "rejection") -> list[Case]:
    """The grid that the tests and `specdec prove` walk; in a third of it a token ends the text.

    Trees are left out where the rule judges none.
    """
    return [
        Case(vocabulary, k, length, PARAMS[p], drafter, seed=index, end=(vocabulary + k + length + p) % 3 == 0)
        for index, (vocabulary, k, length, p, drafter) in enumerate(
            product((2, 3, 4, 5), (0, 1, 2, 3), (1, 2, 3, 4), range(len(PARAMS)), DRAFTERS)
        )
        if k <= length and (RULES[rule].trees or drafter in CHAINS)
    ]


class UserRule(Rule):
    """A verifier from somebody's file, run by the shipped loop."""

    lossless = True

    def __init__(self, verify: Callable[[list[int], Tensor, Tensor, Chooser], Sequence[int]], name: str) -> None:
        self._verify, self.name = verify, name
        self.error: Exception | None = None

    def verify(self, proposal: Proposal, rows: Tensor, chooser: Chooser) -> Verdict:
        if not proposal.tokens:
            return Verdict((), chooser.categorical(rows[0], ("own", -1)), "bonus", ())
        try:
            out = [int(t) for t in self._verify(list(proposal.tokens), rows, proposal.laws(rows), chooser)]
            if not out:
                raise ValueError("verify returned no token")
        except Exception as error:
            self.error = error
            raise
        accepted = 0
        while accepted < min(len(out) - 1, len(proposal)) and out[accepted] == proposal.tokens[accepted]:
            accepted += 1
        kind: Kind = "bonus" if accepted == len(proposal) else "resampled"
        return Verdict(tuple(range(accepted)), out[accepted], kind, (), tuple(out[accepted + 1 :]))


def judge(path: Path) -> int:
    """Print the exact distance of a verifier's output law from the target's; 0 if it is lossless."""
    spec = importlib.util.spec_from_file_location("verifier", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"cannot read {path}: there is no such file of Python")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, "verify", None)):
        raise ValueError(f"{path} defines no function verify(tokens, p, q, chooser)")
    rule, worst = UserRule(module.verify, path.name), 0.0
    print(f"{'V':>2} {'K':>2} {'length':>6} {'temperature':>11} {'paths':>7}  exact total variation")
    # Greedy and top-k laws hold zeros; three drafts deep, a verifier shows what it does behind its first decision.
    warps = (PARAMS[0], PARAMS[1], PARAMS[4], PARAMS[5])
    shapes = ((3, 1, 1), (3, 2, 2), (3, 2, 3), (2, 3, 3), (2, 3, 4))
    for seed, ((vocabulary, k, length), params) in enumerate(product(shapes, warps)):
        case = Case(vocabulary, k, length, params, seed=seed)
        law, count = output_law(run_loop(partial(case.task, rule)))
        if rule.error is not None:
            raise ValueError(f"{path.name} raised {type(rule.error).__name__}: {rule.error}")
        distance = total_variation(law, case.exact_law())
        worst = max(worst, distance)
        print(f"{vocabulary:>2} {k:>2} {length:>6} {params.temperature:>11} {count:>7}  {distance:.3g}")
    lossless = worst <= 1e-12
    print(f"{path.name}: {'lossless' if lossless else 'NOT lossless'}; largest total variation {worst:.3g}")
    return 0 if lossless else 1


def prove_rule(rule: str = "rejection", paths: int = 500) -> int:
    """Print the largest error of a shipped rule over the toys of at most so many paths; 0 if it is lossless."""
    proved, left_out, total, worst = 0, 0, 0, 0.0
    for case in cases(rule):
        try:
            error, count = shipped_error(case, paths, rule)
        except TooManyPaths:
            left_out += 1
            continue
        proved, total, worst = proved + 1, total + count, max(worst, error)
    if not proved:
        raise ValueError(f"no toy has as few as {paths} random paths, so nothing was proved; allow more")
    name = RULES[rule].name
    print(f"{name}: {proved} toys, {total} random paths, largest error {worst:.2g} ({left_out} larger toys left out)")
    return 0 if worst <= 1e-12 else 1
