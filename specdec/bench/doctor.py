"""Why is nothing gained? What a pair, or a server of others, does with its drafts, measured, and what to change.

Each finding is one question of the list that the page's Guide gives under “Why do I gain nothing?”, in that order. In a
terminal: `specdec doctor`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from json import dumps
from statistics import median
from typing import Any, cast, Literal

from ..events import Event
from ..families import presets, zoo
from ..families.zoo import Family
from ..figures.stats import judged_by_position, LaneStats, passing_rates
from ..figures.theory import growing, tokens_by_position
from ..lanes.interleave import PLAIN, SPECULATIVE
from ..lanes.oracle import perfect
from ..lanes.probe import DEPTHS, probe
from ..lanes.race import race
from ..methods import EMBEDDED
from ..servers import lane
from ..servers.base import Chunk, Ending, Server
from ..servers.connect import connect_pair
from ..servers.stream import Limits
from ..types import SamplingParams
from .servers import sound

State = Literal["ok", "wrong", "unknown"]
PROMPTS = (
    "Why is the sky blue?",
    "Write a Python function that checks whether a word is a palindrome.",
    "Give me three tips for learning a language.",
)
TOKENS, WARM_UP = 64, 8  # of a text, and of one before the clock counts
TOTAL_S = 1_800.0  # that all requests to a server may take
FEW = 0.1  # kept of the drafted tokens: so few that something does not fit
MANY = 20  # drafts judged at a place, before it is spoken of
FAULTY = 0.25  # kept while sampling against kept at T = 0: a lossless rule loses less on ordinary text
UNREAD = 0.5  # kept inside the chat template against kept without it
RARELY = 0.5  # of the passes that had a draft
NARROW_K, NARROW_P = 5, 0.5  # a top-k and a top-p below which a server leaves next to nothing to chance
BETTER = 1.1  # what another K must gain to be worth a change


@dataclass(frozen=True)
class Finding:
    """The answer to one question, and what to change. `figures` are those behind it."""

    question: str
    state: State
    told: str
    advice: str = ""
    figures: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True)
class Measured:
    """Lanes of the same prompts: greedy, sampled, greedy without the chat template (empty without one), and plain."""

    greedy: Sequence[LaneStats]
    sampled: Sequence[LaneStats]
    bare: Sequence[LaneStats]
    plain: Sequence[LaneStats]
    k: int


def of_pair(family: Family, drafter: str, k: int, temperature: float) -> Iterator[Finding]:
    """Of a drafter of ours. ValueError where the pair has no such drafter."""

    def lanes(params: SamplingParams) -> tuple[list[LaneStats], list[LaneStats]]:
        events = [list(race(family, prompt, drafter, k, params, details=False)) for prompt in PROMPTS]
        speculative, plain = ([LaneStats.of(one, name) for one in events] for name in (SPECULATIVE, PLAIN))
        return speculative, plain

    params = SamplingParams(max_tokens=TOKENS)
    lanes(replace(params, max_tokens=WARM_UP))
    greedy, plain = lanes(params)
    sampled, _ = lanes(replace(params, temperature=temperature, seed=1)) if temperature else ([], [])
    bare: list[LaneStats] = []
    if family.chat is not None:
        around, family.chat = family.chat, None
        try:
            bare = lanes(params)[0]
        finally:
            family.chat = around
    measured = Measured(greedy, sampled, bare, plain, k)
    yield from kept(measured, temperature, OURS)
    if not sum(one.drafted for one in greedy):
        return
    costs = probe(family, drafter)
    rows = ", ".join(f"{n + 1} rows {costs.passes[n]:.2f}" for n in (1, 3, 7) if n < len(costs.passes))
    yield Finding(
        "What does one more row cost?", "ok",
        f"In plain steps: a pass over {rows}; one draft {costs.draft:.3f}; the rest of a cycle {costs.overhead:.3f}.",
        figures=(("c", costs.draft), ("v", costs.passes[min(k, len(costs.passes) - 1)]), ("o", costs.overhead)),
    )  # fmt: skip
    yield from lengths(measured, costs.cycle, max(DEPTHS), "-k")
    yield perfect_gain(family, k)
    yield measured_gain(measured)


def of_server(server: Server, plain: Server | None, temperature: float) -> Iterator[Finding]:
    """Of a server, from outside. ServerError where it cannot be asked; ValueError where it breaks off."""

    def lanes(asked: Server, params: SamplingParams, read: Callable[[str], Sequence[int]]) -> list[LaneStats]:
        return [watched(asked, read(prompt), params) for prompt in PROMPTS]

    params, facts = SamplingParams(max_tokens=TOKENS), server.facts
    for one in filter(None, (server, plain)):
        lanes(one, replace(params, max_tokens=WARM_UP), one.tokenize_chat)
    greedy = lanes(server, params, server.tokenize_chat)
    warm = replace(params, temperature=temperature, seed=1)
    sampled = lanes(server, warm, server.tokenize_chat) if temperature else []
    has_template = server.tokenize_chat(PROMPTS[0]) != server.tokenize(PROMPTS[0])
    bare = lanes(server, params, server.tokenize) if has_template else []
    beside = lanes(plain, params, plain.tokenize_chat) if plain else []
    k = facts.k or asked_for(greedy)
    measured, options = Measured(greedy, sampled, bare, beside, k), OPTIONS.get(facts.kind, OPTIONS[""])
    if facts.speculates is False and counts(greedy) is None:
        yield inactive(options)
        return
    yield from kept(measured, temperature, options)
    if usual := getattr(server, "usual", {}):
        yield narrowed(usual)
    if not sum(one.drafted for one in greedy):
        return
    step, cycle = seconds_a_cycle(beside), seconds_a_cycle(greedy)
    if not step or not cycle or not k:
        missing = (
            "Give --plain, a server of the same model without speculation." if not plain else "Too little is told."
        )
        yield Finding("What does a cycle cost?", "unknown", "It is not known what a plain step takes.", missing)
        return
    cost = cycle / step
    yield Finding("What does a cycle cost?", "ok", f"A cycle takes {cost:.2f} plain steps.", figures=(("cost", cost),))
    if not rarely(greedy):  # else a cycle with a draft costs something else than the mean
        yield from lengths(measured, growing(cost, k), k, options["k"])
    yield measured_gain(measured)


def narrowed(usual: dict[str, float]) -> Finding:
    """Of the sampling that a request gets which names none. What is measured here names its own."""
    told = ", ".join(f"{name} {value:g}" for name, value in usual.items())
    few = 0 < usual.get("top_k", 0) < NARROW_K or 0 < usual.get("top_p", 1.0) < NARROW_P
    advice = "Send top_k and top_p with every request, or start it without --top-k and --top-p." if few else ""
    said = f"Requests that name none get {told}" + (": hardly any text is left to chance." if few else ".")
    return Finding("What does it sample by itself?", "wrong" if few else "ok", said, advice)


class Overheard:
    """A server whose last word is kept: its sums hold also where its steps cannot be told apart."""

    def __init__(self, server: Server) -> None:
        self.server, self.facts = server, server.facts
        self.ending: Ending | None = None

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        for part in self.server.stream(prompt, params, top):
            if isinstance(part, Ending):
                self.ending = part
            yield part


def watched(server: Server, prompt: Sequence[int], params: SamplingParams) -> LaneStats:
    heard = Overheard(server)
    watching = lane.watch(cast(Server, heard), prompt, params, SPECULATIVE, top=0)
    events: list[Event] = []
    while not events:  # those on the way know only what was kept; those returned are recounted
        try:
            next(watching)
        except StopIteration as ended:
            events = ended.value
    stats, told = LaneStats.of(sound(events), SPECULATIVE), heard.ending
    if stats.sums is not None and told:  # its steps cannot be told apart; all of them together are known
        stats.drafting_cycles = len(told.step_drafted or ()) or sum(told.histogram or ()) or stats.cycles
    return stats


SAMPLED = (
    "Sampling alone fails, so look at q: it must be what the draft was really drawn from, after temperature, "
    "top-k and top-p. `specdec certify --server` tells whether the text is still right."
)
OURS = {"active": "Name a --draft, or another --drafter.", "count": "", "k": "-k"}
OPTIONS = {  # of the engines that `servers` knows, in November 2026
    "vLLM": {
        "active": "Start it with --speculative-config; a plain model has none by itself.",
        "count": "Start it with --per-request-spec-decode-metrics detailed.", "k": "num_speculative_tokens",
    },
    "llama.cpp": {
        "active": "Name --spec-type: without it a draft model is loaded and not used. If it is named, read its log: "
        "it goes on without a draft of another vocabulary.", "count": "",
        "k": "--spec-draft-n-max",
        "sampled": "It keeps a draft only where the target's own draw is the same token, which a high temperature "
        "makes rare: ask at a lower one, or a server without speculation.",
    },
    "": {"active": "Look up the engine's option for speculation.", "count": "", "k": "K"},
}  # fmt: skip


def inactive(options: dict[str, str]) -> Finding:
    return Finding("Is it active?", "wrong", "No token was drafted.", options["active"])


def kept(measured: Measured, temperature: float, options: dict[str, str]) -> Iterator[Finding]:
    """Whether it drafts, and what is kept of it: greedily, sampled, and inside the chat template."""
    greedy, sampled = counts(measured.greedy), counts(measured.sampled)
    if greedy is None:
        yield Finding("Is it active?", "unknown", "The server does not tell what it drafted.", options["count"])
        return
    drafted, accepted = greedy
    if not drafted:
        yield inactive(options)
        return
    passes = sum(one.cycles for one in measured.greedy)
    drafting = sum(one.drafting_cycles for one in measured.greedy)
    yield Finding("Is it active?", "ok", f"{drafted} tokens were drafted in {passes} passes.")
    rate = accepted / drafted
    if rarely(measured.greedy):  # what so few passes kept says nothing of draft and target
        yield Finding(
            "Does it draft in every cycle?", "wrong",
            f"Only {drafting} of {passes} passes had a draft, of which {rate:.0%} was kept.",
            "A lookup finds nothing in text that does not repeat itself: take a draft model or a head for such text.",
            (("share", drafting / passes), ("rate", rate)),
        )  # fmt: skip
        return
    bare = counts(measured.bare)
    without = bare[1] / bare[0] if bare and bare[0] else None
    unread = without is not None and without >= FEW and rate < UNREAD * without
    read = "Has the draft read the chat template?"
    inside = f"{rate:.0%} inside the template, {without or 0.0:.0%} of the same prompts without it."
    train = "Train the draft on such dialogues, or take one that was; check that the template is the target's own."
    pair = (("inside", rate), ("without", without))
    few = rate < FEW
    fits = "Draft and target do not belong together: compare tokenizer, exact weights, precision and chat template."
    yield Finding(
        "Is anything kept at T = 0?", "wrong" if few else "ok", f"{rate:.0%} of the drafted tokens.",
        "" if not few else "Without the chat template more is: see below." if unread else fits, (("rate", rate),),
    )  # fmt: skip
    if few:
        if unread:
            yield Finding(read, "wrong", inside, train, pair)
        return
    if sampled and sampled[0]:
        share = sampled[1] / sampled[0]
        place = worst_place(measured.sampled, measured.greedy)
        wrong = place.fails if place else share < FAULTY * rate
        at = f"; at place {place.number}, {place.sampled:.0%} against {place.greedy:.0%} at T = 0" if place else ""
        yield Finding(
            f"And at T = {temperature:g}?", "wrong" if wrong else "ok", f"{share:.0%} of the drafted tokens{at}.",
            options.get("sampled", SAMPLED) if wrong else "", (("rate", share),),
        )  # fmt: skip
    if without is not None:
        yield Finding(read, "wrong" if unread else "ok", inside, train if unread else "", pair)


def lengths(measured: Measured, cost: Callable[[int], float], most: int, option: str) -> Iterator[Finding]:
    """Which K is best by what was kept at each place and what a cycle costs, and the most that any draft could gain."""
    rates, k = passing_rates(measured.greedy), measured.k
    if rates and not rarely(measured.greedy):  # of few passes with a draft, those rates are not the text's
        reach = min(max(most, k), len(rates))  # what no draft reached is not known
        gains = {n: tokens_by_position(rates[:n], n) / cost(n) for n in range(1, reach + 1)}
        best, now = max(gains, key=gains.__getitem__), gains[min(k, reach)]
        gain = f"{now:.2f} times as fast as plain decoding at K = {k}"
        if max(gains.values()) < 1.0:
            yield Finding(
                "Which K?", "wrong", f"{gain}, and no K pays.", "Turn it off, or take a cheaper or better draft."
            )
        elif gains[best] > BETTER * now:
            told = f"{gain}; at K = {best} it would be {gains[best]:.2f}."
            yield Finding("Which K?", "wrong", told, f"Set {option} to {best}.", (("best", best), ("now", now)))
        else:
            yield Finding("Which K?", "ok", f"{gain}, which is near the best.", figures=(("best", best), ("now", now)))
    top = max((n for n in range(1, max(most, k) + 1)), key=lambda n: (n + 1) / cost(n))
    told = f"A draft that is always right would give {(top + 1) / cost(top):.2f} times, at K = {top}."
    yield Finding("What could any draft gain here?", "ok", told, figures=(("ceiling", (top + 1) / cost(top)),))


def perfect_gain(family: Family, k: int) -> Finding:
    """With plain decoding's own text as the draft, which costs nothing and is kept whole."""
    runs = [perfect(family, prompt, k, SamplingParams(max_tokens=TOKENS)) for prompt in PROMPTS]
    lanes = [(LaneStats.of(one, SPECULATIVE), LaneStats.of(other, PLAIN)) for one, other in runs]
    gain = by_the_clock(lanes)
    if gain is None:
        return Finding("What would a perfect draft give?", "unknown", "The texts were too short.")
    told = f"Measured, with the text of plain decoding as its draft: {gain:.2f} times plain decoding at K = {k}."
    return Finding("What would a perfect draft give?", "ok", told, figures=(("oracle", gain),))


def by_the_clock(lanes: Iterable[tuple[LaneStats, LaneStats]]) -> float | None:
    """A text at a time; the median."""
    times = [(one.seconds_per_token, other.seconds_per_token) for one, other in lanes]
    gains = [other / one for one, other in times if one and other]
    return median(gains) if gains else None


def measured_gain(measured: Measured) -> Finding:
    gain = by_the_clock(zip(measured.greedy, measured.plain, strict=True))
    if gain is None:
        return Finding("Is it faster?", "unknown", "The texts were too short.")
    return Finding(
        "Is it faster?", "ok" if gain > 1.0 else "wrong", f"Measured at T = 0: {gain:.2f} times plain decoding.",
        "" if gain > 1.0 else "The lines above say why.", (("speedup", gain),),
    )  # fmt: skip


def counts(lanes: Sequence[LaneStats]) -> tuple[int, int] | None:
    """Tokens drafted, and accepted; None where nothing tells."""
    if not lanes or all(one.server and one.counted is None and not one.drafted for one in lanes):
        return None
    return sum(one.drafted for one in lanes), sum(one.accepted for one in lanes)


@dataclass(frozen=True)
class Place:
    """A place in the draft, from 1, and the shares kept there of the drafts judged."""

    number: int
    sampled: float
    greedy: float
    judged: int

    @property
    def fails(self) -> bool:
        """Two standard deviations below what a lossless rule would lose at most."""
        found = self.sampled * self.judged
        return found + 2.0 * math.sqrt(found) < FAULTY * self.greedy * self.judged


def worst_place(sampled: Sequence[LaneStats], greedy: Sequence[LaneStats]) -> Place | None:
    """Where sampling loses most; None where too few drafts were judged one by one.

    All K in a row are seldom kept, even where each has a fair chance: so the share of all drafts would blame a long K.
    """
    found = []
    for number, (ours, theirs) in enumerate(zip(*map(judged_by_position, (sampled, greedy)), strict=False), 1):
        if min(ours[1], theirs[1]) >= MANY and theirs[0]:
            found.append(Place(number, ours[0] / ours[1], theirs[0] / theirs[1], ours[1]))
    return min(found, key=lambda place: place.sampled / place.greedy, default=None)


def rarely(lanes: Sequence[LaneStats]) -> bool:
    """Whether most passes had no draft."""
    return 0 < sum(one.drafting_cycles for one in lanes) < RARELY * sum(one.cycles for one in lanes)


def asked_for(lanes: Sequence[LaneStats]) -> int:
    """K of a server that does not tell it: no draft is longer, and the drafts in mean are shorter at texts' ends alone.
    Where little is kept, few of a draft's places are ever judged."""
    means = (math.ceil(one.drafted / one.drafting_cycles) for one in lanes if one.drafting_cycles)
    return max((*means, *(len(one.judged_at) for one in lanes)), default=0)


def seconds_a_cycle(lanes: Sequence[LaneStats]) -> float | None:
    cycles = sum(one.cycles for one in lanes)
    return sum(one.decode_seconds for one in lanes) / cycles if cycles else None


MARKS = {"ok": "✓", "wrong": "✗", "unknown": "–"}


def examined(
    server: str, plain: str, target: str, draft: Sequence[str], drafter: str, k: int, temperature: float, json: bool
) -> int:
    """Prints each finding as it comes; the exit status."""
    if server:
        asked, beside = connect_pair(server, plain, os.environ.get("SPECDEC_SERVER_KEY", ""), Limits(total_s=TOTAL_S))
        findings = of_server(asked, beside, temperature)
    else:
        known = target in (EMBEDDED, *presets.PRESETS) and not draft
        family = zoo.load(target) if known else zoo.load_pair(target, *draft)
        findings = of_pair(family, drafter or family.usual, k, temperature)
    found = []
    for one in findings:
        found.append(one)
        if not json:
            print(
                f"{MARKS[one.state]} {one.question} {one.told}",
                *([f"  → {one.advice}"] if one.advice else []),
                sep="\n",
                flush=True,
            )
    if json:
        print(dumps(as_json(found), ensure_ascii=False))
    states = {one.state for one in found}
    return 1 if "wrong" in states else 2 if "unknown" in states else 0


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [
        {"question": one.question, "state": one.state, "told": one.told, "advice": one.advice, **dict(one.figures)}
        for one in findings
    ]
