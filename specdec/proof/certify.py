"""Is this decoding lossless? Three checks of one pair of models at one place of a text.

1. In closed form: the exact law of the next token, over every draft, kept or not, against the target's row.
2. By sampling: the joint law of the next one to three tokens, drawn by the shipped loop, against the target's own.
3. Greedily: token by token beside plain decoding.

Each holds for the shipped rule, and each can be made to fail: any mistake of `mistakes.py` is planted in that same
loop. `specdec certify` prints all of them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..drafters import DraftModelDrafter, NoDrafter
from ..engine import generate, Task
from ..events import Committed
from ..families import zoo
from ..models.base import LanguageModel
from ..models.transformer import Transformer
from ..paths import ASSETS
from ..sampling import Chooser, favourites, overlap, probabilities
from ..types import Said, SamplingParams
from .mistakes import Mistake, MISTAKES
from .prove import ByPrefix, Law, output_law, paths, run_loop, TableModel, total_variation

LENGTH = 3  # tokens of the joint law
DRAWS = (100, 1_000, 5_000, 10_000, 20_000)  # where a sample is looked at
SIGMAS, FALSE_ALARM = 6.0, 1e-9  # red beyond it; plain decoding would be as rarely
MOST_DRAWS = 1e12  # beyond it, a mistake is no more than rounding
LOSSLESS = 1e-9  # the largest error that closed form forgives
NEWS = 0.25  # seconds between two words about a growing sample
LONGEST = 120.0  # seconds of a recorded sample that is red: texts that are none of the target's ask for ever new rows
SHOWN = 6  # tokens in the closed form, all others in one
GREEDY_K, TOY_GREEDY, GREEDY, WINDOW = 4, 24, 48, 14
TOY_WORDS = (" sun", " sea", " sky", " fog", " ice")
RECORDED, PROMPTS = ASSETS / "certificates.json", ASSETS / "prompts.json"


class Memory(ByPrefix):
    """A model that computes the row behind a text once, and gives it in float64 ever after."""

    def __init__(self, model: LanguageModel[Any], capacity: int) -> None:
        self.vocabulary, self.context = model.vocabulary, model.context
        self._model, self._cache = model, model.new_cache(capacity)
        self._cached: tuple[int, ...] = ()
        self._rows: dict[tuple[int, ...], Tensor] = {}

    @torch.inference_mode()
    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._rows:
            same, most = 0, min(len(self._cached), len(prefix) - 1)
            while same < most and self._cached[same] == prefix[same]:
                same += 1
            self._cache.keep(same)
            self._rows[prefix] = self._model.forward(prefix[same:], self._cache)[-1].double()
            self._cached = prefix
        return self._rows[prefix]


class PointDraft(DraftModelDrafter):
    """The draft model's favourite as a point mass, which is lossless under sampling, too."""

    def draw(self, logits: Tensor, params: SamplingParams, chooser: Chooser, index: int) -> tuple[int, Tensor | None]:
        return int(favourites(logits)), None


class Pair:
    """A target and its draft model behind `text` of two tokens or more.

    `coarse` gives both in bfloat16; the first `control` tokens of the text are nobody's words. K = 2 is the shortest
    draft that has a middle, a last token and a bonus.
    """

    def __init__(
        self,
        name: str,
        target: LanguageModel[Any],
        draft: LanguageModel[Any],
        text: Sequence[int],
        params: SamplingParams,
        piece: Callable[[int], str],
        greedy: int,
        coarse: Callable[[], tuple[LanguageModel[Any], LanguageModel[Any]]] | None = None,
        control: int = 0,
    ) -> None:
        self.name, self.text, self.params, self.piece, self.greedy = name, tuple(text), params, piece, greedy
        self.k, self.models, self.coarse = 2, (target, draft), coarse
        self.words = self.text[control:]
        self.target, self.draft = (Memory(model, len(self.text) + LENGTH + self.k) for model in self.models)

    def task(self, mistake: Mistake | None, k: int, length: int) -> Task:
        """The shipped loop for `length` tokens behind the text, whose last token is left to the prefill."""
        params = replace(self.params, max_tokens=1 + length, ignore_end=True)
        task = Task(
            self.target, self.text[:-1], params, drafter_of(mistake, self.draft), k, piece=self.piece, details=False
        )
        return mistake.apply(task, self.draft) if mistake else task

    def row(self, tokens: tuple[int, ...] = ()) -> Tensor:
        """The target's law behind the text and `tokens`.  # [V]"""
        return probabilities(self.target.logits(self.text + tokens)[None], self.params)[0]

    @functools.cached_property
    def exact(self) -> list[Law]:
        """The target's own joint laws of the next 1, 2, … tokens, by multiplying its rows."""
        laws: list[Law] = [{(): 1.0}]
        for _ in range(LENGTH):
            longer: Law = {}
            for tokens, chance in laws[-1].items():
                row = self.row(tokens)
                longer |= {(*tokens, token): chance * float(row[token]) for token in row.nonzero().flatten().tolist()}
            laws.append(longer)
        return laws[1:]


def drafter_of(mistake: Mistake | None, draft: LanguageModel[Any]) -> DraftModelDrafter:
    return PointDraft(draft) if mistake and mistake.needs_point_mass else DraftModelDrafter(draft)


@functools.lru_cache(1)
def toy() -> Pair:
    """Five words and a random table: small enough to walk every random path."""
    target = TableModel(len(TOY_WORDS), seed=1262)
    draft = TableModel(len(TOY_WORDS), seed=11_262, base=target)
    return Pair("toy", target, draft, (0, 1), SamplingParams(temperature=0.8), TOY_WORDS.__getitem__, TOY_GREEDY)


@functools.lru_cache(2)
def embedded(text: str) -> Pair:
    """The embedded family behind `text`. Top-k 20 leaves 8,000 texts of three tokens, so that their law can be listed.

    ValueError says what is wrong with the text.
    """
    family = zoo.load("embedded")
    if family.draft is None:
        raise ValueError(Said("The embedded family has no draft model."))
    tokens, most = family.encode(text), family.target.context - GREEDY - GREEDY_K
    if not 2 <= len(tokens) <= most:
        raise ValueError(Said("The text has {n} tokens; it must have between 2 and {most}.", n=len(tokens), most=most))
    params = SamplingParams(temperature=0.8, top_k=20)
    control, piece = len(family.prefix), family.pieces.piece
    return Pair("embedded", family.target, family.draft, tokens, params, piece, GREEDY, coarse, control)


@functools.cache
def coarse() -> tuple[Transformer, Transformer]:
    target, draft = (Transformer.load(zoo.EMBEDDED / name, torch.bfloat16) for name in ("target", "draft_model"))
    return target, draft


class Given(Chooser):
    """Asks `inner`, but for the first token, which is given."""

    def __init__(self, inner: Chooser, token: int) -> None:
        self.inner, self.token = inner, token
        self.begun = False

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        if self.begun:
            return self.inner.categorical(probs, key)
        self.begun = True
        return self.token

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        return self.inner.accept(p, q, key)


# In closed form.


class Watching(Given):
    """Of the target's own tokens only the law is kept: that of the first behind the given one."""

    law: Tensor | None = None

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        if not self.begun or key[0] != "own":
            return super().categorical(probs, key)
        if self.law is None:
            self.law = probs
        return self.token


def next_token_law(pair: Pair, mistake: Mistake | None) -> Tensor:
    """The exact law of the token that one draft leads to: draft × keep + what is left × the law behind a rejection.

    From the shipped loop: over every draft, kept and not, what it commits or draws from; nan where that is no law.
    [V]
    """

    def run(chooser: Chooser) -> Tensor:
        watching = Watching(chooser, pair.text[-1])
        with contextlib.closing(generate(pair.task(mistake, 1, 2), watching)) as events:
            cycle = next((event for event in events if isinstance(event, Committed) and event.cycle == 1), None)
        if cycle is not None and cycle.accepted:
            return torch.nn.functional.one_hot(torch.tensor(cycle.tokens[0]), pair.target.vocabulary).double()
        return torch.full((pair.target.vocabulary,), math.nan) if watching.law is None else watching.law

    return torch.stack([chance * law for law, chance in paths(run, 100_000)]).sum(0)


def closed_form(pair: Pair, mistake: Mistake | None) -> dict[str, Any]:
    p, law = pair.row(), next_token_law(pair, mistake)
    q = probabilities(pair.draft.logits(pair.text)[None], pair.params)[0]
    error = float((law - p).abs().max())
    shown = torch.maximum(p, law.nan_to_num()).topk(min(SHOWN, len(p))).indices.tolist()
    shown.sort(key=lambda token: -float(p[token]))
    rows = [[pair.piece(token), brief(p[token]), brief(law[token])] for token in shown]
    rest = [brief((values.sum() - values[shown].sum()).clamp(min=0.0)) for values in (p, law)]
    wrong: Law = {(token,): chance for token, chance in enumerate(law.tolist()) if chance != 0.0}
    needed = None if error <= LOSSLESS else draws_needed(wrong, pair.exact[0])
    return {"error": brief(error), "overlap": brief(overlap(p, q)), "rows": rows, "rest": rest, "needed": needed}


def brief(value: float | Tensor) -> float | None:
    """Four digits; None for what is no number, which JSON cannot say."""
    return float(f"{float(value):.4g}") if math.isfinite(float(value)) else None


# By sampling.


def behind(pair: Pair, mistake: Mistake | None) -> Callable[[Chooser], tuple[int, ...]]:
    """The shipped loop behind the text, as a function of its randomness: the next three tokens, none if it failed."""
    run = run_loop(lambda: pair.task(mistake, pair.k, LENGTH))
    return lambda chooser: run(Given(chooser, pair.text[-1]))[1:]


class Crowd(Chooser):
    """Many draws at once, each as `RandomChooser` draws: at a question they part, and who answers alike walks on.

    `script` is what this group of `count` has answered so far, `left` the groups that it parted from.
    """

    def __init__(self, dice: torch.Generator, count: int, script: tuple[int, ...] = ()) -> None:
        self.dice, self.count, self.script = dice, count, script
        self.left: list[tuple[tuple[int, ...], int]] = []
        self._asked = 0

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        cumulative = probs.double().cumsum(0)
        last = int(probs.nonzero()[-1])
        return self._answer(lambda u: torch.searchsorted(cumulative, u * cumulative[-1], right=True).clamp(max=last))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        accepted = bool(self._answer(lambda u: (u * q < p).long()))
        return accepted, 0.0 if accepted else 1.0

    def _answer(self, answers: Callable[[Tensor], Tensor]) -> int:
        if self._asked == len(self.script):
            u = torch.rand(self.count, dtype=torch.float64, generator=self.dice)
            groups = [(answer, n) for answer, n in enumerate(answers(u).bincount().tolist()) if n]
            answer, self.count = groups.pop()
            self.left += [((*self.script, other), n) for other, n in groups]
            self.script += (answer,)
        self._asked += 1
        return self.script[self._asked - 1]


def sample(
    pair: Pair, mistake: Mistake | None, draws: int, dice: torch.Generator
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Texts and how many of `draws` independent draws gave them. The shipped loop walks each path once, for all."""
    run = behind(pair, mistake)
    groups: list[tuple[tuple[int, ...], int]] = [((), draws)]
    while groups:
        script, count = groups.pop()
        crowd = Crowd(dice, count, script)
        yield run(crowd), crowd.count
        groups += crowd.left


def distances(pair: Pair, counts: Counter[tuple[int, ...]]) -> list[list[float | None]]:
    """How far the drawn texts lie from the exact laws of the next 1, 2, … tokens.

    Of each: total variation, what plain decoding stays below (mean + 4 deviations), χ², its degrees of freedom, the
    chance that plain decoding gives no less, and how many draws the target rules out. χ² is None where it is infinite.
    """
    found = []
    for length, exact in enumerate(pair.exact, start=1):
        seen: Counter[tuple[int, ...]] = Counter()
        for tokens, count in counts.items():
            seen[tokens[:length]] += count
        draws = seen.total()
        statistic, degrees = chi_square(seen, exact)
        mean, deviation = plain_distance(exact, draws)
        tv = total_variation({tokens: count / draws for tokens, count in seen.items()}, exact)
        tail = 0.5 * math.erfc(sigmas(statistic, degrees) / math.sqrt(2.0))
        ruled_out = sum(count for tokens, count in seen.items() if tokens not in exact)
        found.append([*map(brief, (tv, mean + 4 * deviation, statistic, degrees, tail)), ruled_out])
    return found


def is_red(distance: Sequence[float | None]) -> bool:
    """Beyond six sigma."""
    return distance[4] is not None and distance[4] < FALSE_ALARM


def chi_square(counts: dict[tuple[int, ...], int], exact: Law) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom, cells below five expected pooled.

    Infinite if an impossible outcome occurred.
    """
    draws = sum(counts.values())
    if any(tokens not in exact for tokens in counts):
        return math.inf, 1
    cells = [(counts.get(tokens, 0), draws * chance) for tokens, chance in exact.items()]
    pooled = [sum(values) for values in zip(*[cell for cell in cells if cell[1] < 5], strict=True)]
    large = [cell for cell in cells if cell[1] >= 5] + ([tuple(pooled)] if pooled and pooled[1] > 0 else [])
    return sum((seen - wanted) ** 2 / wanted for seen, wanted in large), len(large) - 1


def limit(degrees: int) -> float:
    """Exceeded by chance about once in 1e9: Wilson and Hilferty's cube at 6 sigma."""
    return degrees * (1 - 2 / (9 * degrees) + SIGMAS * math.sqrt(2 / (9 * degrees))) ** 3


def sigmas(statistic: float, degrees: int) -> float:
    """The same cube, read the other way: how many standard deviations from what chance gives."""
    if degrees < 1 or math.isinf(statistic):
        return math.inf if math.isinf(statistic) else 0.0
    return float((statistic / degrees) ** (1 / 3) - 1 + 2 / (9 * degrees)) / math.sqrt(2 / (9 * degrees))


def plain_distance(exact: Law, draws: int) -> tuple[float, float]:
    """Mean and standard deviation of the total variation that draws from `exact` itself would show.

    The mean is exact: a cell's is De Moivre's mean absolute deviation, 2 m C(n, m) p^m (1 - p)^(n - m + 1) with
    m = ⌊np⌋ + 1. The deviation takes cells as independent, which makes it too small where they are few.
    """
    mean = variance = 0.0
    for p in exact.values():
        if not 0.0 < p < 1.0:
            continue
        m = math.floor(draws * p) + 1
        ways = math.lgamma(draws + 1) - math.lgamma(m + 1) - math.lgamma(draws - m + 1)
        cell = 2 * m * math.exp(ways + m * math.log(p) + (draws - m + 1) * math.log1p(-p)) / draws
        mean += cell / 2
        variance += max(0.0, p * (1 - p) / draws - cell * cell) / 4
    return mean, math.sqrt(variance)


def draws_needed(wrong: Law, right: Law) -> int | None:
    """About how many draws make the chi-square red in 999 of 1,000 tries; None where there is none.

    Over n draws, cells pooled as there, the statistic grows by n δ, δ = Σ (wrong - right)² / right, with variance
    2 df + 4 n δ; so it takes the least n for which df + n δ lies three deviations above the limit. An outcome that is
    impossible shows at once.
    """
    if any(math.isnan(chance) for chance in wrong.values()):
        return None
    impossible = sum(chance for tokens, chance in wrong.items() if tokens not in right)
    most = math.log(1_000) / impossible if impossible > 0 else MOST_DRAWS
    order = sorted(((chance, wrong.get(tokens, 0.0)) for tokens, chance in right.items()), reverse=True)
    n = 10.0
    while n < most:
        large = [cell for cell in order if cell[0] * n >= 5]
        p, q = (sum(values) for values in zip(*order[len(large) :], (0.0, 0.0), strict=True))
        cells = large + ([(p, q)] if p > 0 else [])
        growth, degrees = n * sum((q - p) ** 2 / p for p, q in cells), len(cells) - 1
        if degrees > 0 and degrees + growth - 3 * math.sqrt(2 * degrees + 4 * growth) > limit(degrees):
            return math.ceil(n)
        n *= 1.02
    return math.ceil(most) if impossible > 0 else None


def draws_beyond(draws: int, distances: Sequence[Sequence[float | None]]) -> int | None:
    """A sample that is not red: so many draws, at least, would take what it may have missed.

    It hides no growth of χ² beyond δ = (χ² - df + 3 √(2 df)) / n. None where it says nothing: fewer than two cells.
    """
    fewest = None
    for _, _, statistic, degrees, _, _ in distances:
        if statistic is None or not degrees:
            continue
        growth = max(statistic - degrees, 0.0) + 3 * math.sqrt(2 * degrees)
        wanted = limit(int(degrees)) - degrees
        x = wanted + 18 + 3 * math.sqrt(2 * degrees + 4 * wanted + 36)  # x - wanted = 3 √(2 df + 4 x)
        needed = math.ceil(draws * x / growth)
        fewest = needed if fewest is None else min(fewest, needed)
    return fewest


def enumerated(pair: Pair, mistake: Mistake | None) -> dict[str, Any]:
    """The exact total variation of the next 1, 2, … tokens over every random path, and the draws that would show it."""
    law, count = output_law(behind(pair, mistake))
    found: list[float] = []
    for length, exact in enumerate(pair.exact, start=1):
        marginal: Law = {}
        for tokens, chance in law.items():
            marginal[tokens[:length]] = marginal.get(tokens[:length], 0.0) + chance
        found.append(total_variation(marginal, exact))
    needed = None if found[-1] <= LOSSLESS else draws_needed(law, pair.exact[-1])
    return {"tv": [brief(tv) for tv in found], "paths": count, "needed": needed}


# Greedily.


def greedy(pair: Pair, mistake: Mistake | None) -> dict[str, Any]:
    """Both texts at temperature 0 and where they part; in bfloat16 as well, where the pair has it."""
    told = beside_plain(pair, mistake, pair.models)
    return told | {"coarse": beside_plain(pair, mistake, pair.coarse()) if pair.coarse else None}


@torch.inference_mode()
def beside_plain(pair: Pair, mistake: Mistake | None, models: tuple[LanguageModel[Any], ...]) -> dict[str, Any]:
    """`equal` of `of` tokens; a window of both texts from token `start` on; where they part, the gap between the two
    best logits of the plain text: a near tie may fall either way, as a pass over five rows rounds unlike one over one.
    """
    target, draft = models
    params = SamplingParams(max_tokens=pair.greedy, ignore_end=True)
    plain_task = Task(target, pair.text, params, NoDrafter(), 0, details=False)
    task = replace(plain_task, drafter=drafter_of(mistake, draft), k=GREEDY_K)
    plain, speculative = (
        [token for event in generate(one) if isinstance(event, Committed) for token in event.tokens]
        for one in (plain_task, mistake.apply(task, draft) if mistake else task)
    )
    same = next((i for i in range(pair.greedy) if plain[i : i + 1] != speculative[i : i + 1]), pair.greedy)
    start = 0 if same == pair.greedy else max(0, same - WINDOW // 2)
    told: dict[str, Any] = {"equal": same, "of": pair.greedy, "start": start, "gap": None}
    for name, text in (("plain", plain), ("speculative", speculative)):
        told[name] = [pair.piece(token) for token in text[start : start + WINDOW]]
    if same < pair.greedy:
        text = [*pair.text, *plain[:same]]
        best = target.forward(text, target.new_cache(len(text)))[-1].double().topk(2).values
        told["gap"] = brief(best[0] - best[1])
    return told


# All of it.


def certify(pair: Pair, mistake: Mistake | None, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The certificate as it grows: JSON-ready, with the sample as it stood at each of `DRAWS` up to `draws`."""
    told: dict[str, Any] = {
        "pair": pair.name,
        "mistake": mistake.key if mistake else "",
        "draws": draws,
        "k": pair.k,
        "temperature": pair.params.temperature,
        "top_k": pair.params.top_k,
        "text": [pair.piece(token) for token in pair.words[-WINDOW:]],
        "closed": closed_form(pair, mistake),
        "greedy": greedy(pair, mistake),
        "sampled": [],
        "done": 0,
    }
    yield told
    dice, counts, last = torch.Generator().manual_seed(seed), Counter[tuple[int, ...]](), time.monotonic()
    for before, until in pairwise((0, *(n for n in DRAWS if n <= draws))):
        for text, n in sample(pair, mistake, until - before, dice):
            counts[text] += n
            if time.monotonic() - last > NEWS:
                last = time.monotonic()
                yield {**told, "done": counts.total()}
        found = distances(pair, counts)
        sampled = [*told["sampled"], [until, found]]
        told = {**told, "done": until, "sampled": sampled, "beyond": draws_beyond(until, found)}
        yield told


def record(pairs: Sequence[Pair], seed: int = 11) -> dict[str, Any]:
    """For a page that needs no model: the shipped rule and every mistake on every pair."""
    recorded: dict[str, Any] = {}
    for pair in pairs:
        recorded[pair.name] = {}
        for key in ("", *MISTAKES):
            mistake = MISTAKES.get(key)
            told, began = {}, time.monotonic()
            for state in certify(pair, mistake, max(DRAWS), seed):
                if state["sampled"] and state["done"] == state["sampled"][-1][0]:
                    told = state
                if told and time.monotonic() - began > LONGEST and any(map(is_red, told["sampled"][-1][1])):
                    break
            if pair.name == "toy":
                told["exact"] = enumerated(pair, mistake)
            recorded[pair.name][key] = told
            print(line(told), flush=True)
    return recorded


def line(told: dict[str, Any]) -> str:
    """One certificate for a terminal."""
    closed, sampled, same = told["closed"], told["sampled"][-1][1], told["greedy"]
    exact = told.get("exact")
    verdict = [closed["error"] is not None and closed["error"] <= LOSSLESS, not any(map(is_red, sampled))]
    verdict.append(same["equal"] == same["of"])
    marks = " ".join("✓" if passed else "✗" for passed in verdict)
    tv = " ".join(f"{one[0]:.3f}" for one in sampled)
    more = f"  exact {exact['tv'][-1]:.3g}, draws needed {exact['needed'] or '–'}" if exact else ""
    return f"{told['pair']:9} {told['mistake'] or 'none':18} {marks}  error {closed['error']}  {tv}{more}"


def print_all(text: str, write: bool) -> int:
    """Certificates of the toy pair and, after `text`, of the embedded models; `write` keeps them for the page."""
    text = text or (json.loads(PROMPTS.read_text(encoding="utf-8"))["story"][0] if write else "")
    recorded = record([toy(), *([embedded(text)] if text else [])])
    if write:
        RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0
