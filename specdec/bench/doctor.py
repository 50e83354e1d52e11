"""`specdec doctor`: measure what a pair, or a server, does with its drafts, and say what to change.

Each finding answers one question of the list that the page's Guide gives under “Why do I gain nothing?”, in that order.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from ..events import Failed
from ..families import zoo
from ..families.zoo import Family
from ..figures.stats import judged_by_position, LaneStats, passing_rates
from ..figures.theory import growing, tokens_by_position
from ..lanes.interleave import PLAIN, SPECULATIVE
from ..lanes.probe import DEPTHS, probe
from ..lanes.race import race
from ..methods import EMBEDDED
from ..servers import lane
from ..servers.base import Server
from ..servers.connect import connect_pair
from ..servers.stream import Limits
from ..types import SamplingParams

Lanes = Sequence[LaneStats]
PROMPTS = (
    "Why is the sky blue?",
    "Write a Python function that checks whether a word is a palindrome.",
    "Give me three tips for learning a language.",
)
TOKENS = 64  # of a text
WARM_UP_TOKENS = 8  # of the texts before the measured ones
TOTAL_S = 1_800.0  # for all requests to a server
MIN_ACCEPTANCE = 0.1  # accepted / drafted: below it draft and target do not belong together
MIN_JUDGED = 20  # drafts judged at a place; with fewer nothing is said of it
MIN_SAMPLED_SHARE = 0.25  # acceptance sampled / greedy: a lossless rule loses less on ordinary text
MIN_TEMPLATE_SHARE = 0.5  # acceptance inside the chat template / without it
MIN_DRAFTING_SHARE = 0.5  # passes with a draft / all passes
MIN_GAIN = 1.1  # speed at another K / speed now: below it a change is not worth it
MARKS = {"ok": "✓", "wrong": "✗", "unknown": "–"}
SAMPLED = (
    "Sampling alone fails, so look at q: it must be what the draft was really drawn from, after temperature, "
    "top-k and top-p. `specdec certify --server` tells whether the text is still right."
)
OURS = {"active": "Name a --draft, or another --drafter.", "k": "-k"}
OPTIONS = {  # of the engines that `servers` knows, in November 2026
    "vLLM": {
        "active": "Start it with --speculative-config; a plain model has none by itself.",
        "count": "Start it with --per-request-spec-decode-metrics detailed.",
        "k": "num_speculative_tokens",
    },
    "llama.cpp": {
        "active": "Name --spec-type: without it a draft model is loaded and not used. If it is named, read its log: "
        "it goes on without a draft of another vocabulary.",
        "k": "--spec-draft-n-max",
        "sampled": "It keeps a draft only where the target's own draw is the same token, which a high temperature "
        "makes rare: ask at a lower one, or a server without speculation.",
    },
}


@dataclass(frozen=True)
class Finding:
    """The answer to one question, and what to change."""

    question: str
    state: Literal["ok", "wrong", "unknown"]
    answer: str
    advice: str = ""


def finding(question: str, answer: str, advice: str = "") -> Finding:
    """Return a finding: "wrong" if there is advice, else "ok"."""
    return Finding(question, "wrong" if advice else "ok", answer, advice)


@dataclass(frozen=True)
class Measured:
    """Lanes of the same prompts: greedy, sampled, greedy without the chat template (empty without one), and plain."""

    greedy: Lanes
    sampled: Lanes
    bare: Lanes
    plain: Lanes
    k: int


def examine_pair(family: Family, drafter: str, k: int, temperature: float) -> Iterator[Finding]:
    """Examine a drafter of ours. ValueError where the pair has no such drafter."""

    def lanes(params: SamplingParams, family: Family = family) -> tuple[Lanes, Lanes]:
        events = [list(race(family, prompt, drafter, k, params, details=False)) for prompt in PROMPTS]
        speculative, plain = ([LaneStats.from_events(one, name) for one in events] for name in (SPECULATIVE, PLAIN))
        return speculative, plain

    params = SamplingParams(max_tokens=TOKENS)
    lanes(replace(params, max_tokens=WARM_UP_TOKENS))
    greedy, plain = lanes(params)
    sampled = lanes(replace(params, temperature=temperature, seed=1))[0] if temperature else ()
    bare: Lanes = ()
    if family.chat is not None:
        without_template = copy.copy(family)
        without_template.chat = None
        bare = lanes(params, without_template)[0]
    measured = Measured(greedy, sampled, bare, plain, k)
    yield from acceptance(measured, temperature, OURS)
    if not sum(one.drafted for one in greedy):
        return
    costs = probe(family, drafter)
    rows = ", ".join(f"{n + 1} rows {costs.passes[n]:.2f}" for n in (1, 3, 7) if n < len(costs.passes))
    text = f"In plain steps: a pass over {rows}; one draft {costs.draft:.3f}; the rest of a cycle {costs.overhead:.3f}."
    yield finding("What does one more row cost?", text)
    yield from lengths(measured, costs.cycle, max(DEPTHS), "-k")
    yield measured_gain(measured)


def examine_server(server: Server, plain: Server | None, temperature: float) -> Iterator[Finding]:
    """Examine a server from outside. ServerError where it cannot be asked; ValueError where it breaks off."""

    def lanes(one: Server, params: SamplingParams, chat: bool = True) -> list[LaneStats]:
        tokenize = one.tokenize_chat if chat else one.tokenize
        return [watched(one, tokenize(prompt), params) for prompt in PROMPTS]

    params, facts = SamplingParams(max_tokens=TOKENS), server.facts
    for one in filter(None, (server, plain)):
        lanes(one, replace(params, max_tokens=WARM_UP_TOKENS))
    greedy = lanes(server, params)
    sampled = lanes(server, replace(params, temperature=temperature, seed=1)) if temperature else []
    has_template = server.tokenize_chat(PROMPTS[0]) != server.tokenize(PROMPTS[0])
    bare = lanes(server, params, chat=False) if has_template else []
    k, options = facts.k or longest_draft(greedy), OPTIONS[facts.kind]
    measured = Measured(greedy, sampled, bare, lanes(plain, params) if plain else [], k)
    if facts.speculates is False and counts(greedy) is None:
        yield finding("Is it active?", "No token was drafted.", options["active"])
        return
    yield from acceptance(measured, temperature, options)
    if not sum(one.drafted for one in greedy):
        return
    step, cycle = seconds_a_cycle(measured.plain), seconds_a_cycle(greedy)
    question = "What does a cycle cost?"
    if not step or not cycle or not k:
        advice = "Too little is reported." if plain else "Give --plain, a server of the same model without speculation."
        yield Finding(question, "unknown", "It is not known what a plain step takes.", advice)
        return
    yield finding(question, f"A cycle takes {cycle / step:.2f} plain steps.")
    if not rarely(greedy):  # else a cycle with a draft costs something else than the mean
        yield from lengths(measured, growing(cycle / step, k), k, options["k"])
    yield measured_gain(measured)


def watched(server: Server, prompt: Sequence[int], params: SamplingParams) -> LaneStats:
    """Return the figures of one text as the server counts it at the end."""
    *_, last = lane.race(server, None, prompt, params, top=0)
    assert isinstance(last, lane.FinalTrace)
    for event in last.events:
        if isinstance(event, Failed):
            raise ValueError(f"the server failed in the middle of a text: {event.reason}")
    stats = LaneStats.from_events(last.events, SPECULATIVE)
    if stats.sums is not None:  # its steps cannot be told apart: any of them may have had a draft
        stats.drafting_cycles = stats.cycles
    return stats


def acceptance(measured: Measured, temperature: float, options: dict[str, str]) -> Iterator[Finding]:
    """Tell whether it drafts, and what is accepted of it: greedily, sampled, and inside the chat template."""
    greedy, sampled, bare = (counts(lanes) for lanes in (measured.greedy, measured.sampled, measured.bare))
    if greedy is None:
        text = "The server does not tell what it drafted."
        yield Finding("Is it active?", "unknown", text, options.get("count", ""))
        return
    drafted, accepted = greedy
    if not drafted:
        yield finding("Is it active?", "No token was drafted.", options["active"])
        return
    passes = sum(one.cycles for one in measured.greedy)
    drafting = sum(one.drafting_cycles for one in measured.greedy)
    yield finding("Is it active?", f"{drafted} tokens were drafted in {passes} passes.")
    rate = accepted / drafted
    if rarely(measured.greedy):  # what so few passes accepted says nothing of draft and target
        text = f"Only {drafting} of {passes} passes had a draft, of which {rate:.0%} was kept."
        advice = "A lookup finds nothing in text that does not repeat itself: take a draft model or a head for that."
        yield finding("Does it draft in every cycle?", text, advice)
        return
    without = bare[1] / bare[0] if bare and bare[0] else None
    unread = without is not None and without >= MIN_ACCEPTANCE and rate < MIN_TEMPLATE_SHARE * without
    advice = ""
    if rate < MIN_ACCEPTANCE:
        fits = "Draft and target do not belong together: compare tokenizer, exact weights, precision and chat template."
        advice = "Without the chat template more is: see below." if unread else fits
    yield finding("Is anything kept at T = 0?", f"{rate:.0%} of the drafted tokens.", advice)
    if rate >= MIN_ACCEPTANCE and sampled and sampled[0]:
        share = sampled[1] / sampled[0]
        place, wrong = failing_place(measured.sampled, measured.greedy), share < MIN_SAMPLED_SHARE * rate
        text = f"{share:.0%} of the drafted tokens."
        if place:
            number, ours, theirs, wrong = place
            text = f"{share:.0%} of the drafted tokens; at place {number}, {ours:.0%} against {theirs:.0%} at T = 0."
        yield finding(f"And at T = {temperature:g}?", text, options.get("sampled", SAMPLED) if wrong else "")
    if unread or (rate >= MIN_ACCEPTANCE and without is not None):
        train = "Train the draft on such dialogues, or take one that was; check that the template is the target's own."
        text = f"{rate:.0%} inside the template, {without or 0.0:.0%} of the same prompts without it."
        yield finding("Has the draft read the chat template?", text, train if unread else "")


def failing_place(sampled: Lanes, greedy: Lanes) -> tuple[int, float, float, bool] | None:
    """Return the place of a draft (from 1) where sampling loses most, both shares accepted there, and whether the
    first is two standard deviations below what a lossless rule loses at most; None where too few drafts were judged.

    All K in a row are seldom accepted, even where each has a fair chance: the share of all drafts would blame a long K.
    """
    places = list[tuple[int, float, float, bool]]()
    pairs = zip(judged_by_position(sampled), judged_by_position(greedy), strict=False)
    for number, ((accepted, judged), (best, of)) in enumerate(pairs, 1):
        if min(judged, of) >= MIN_JUDGED and best:
            fails = accepted + 2.0 * math.sqrt(accepted) < MIN_SAMPLED_SHARE * best / of * judged
            places.append((number, accepted / judged, best / of, fails))
    return min(places, key=lambda place: place[1] / place[2], default=None)


def lengths(measured: Measured, cost: Callable[[int], float], most: int, option: str) -> Iterator[Finding]:
    """Tell which K is best by what was accepted at each place and what a cycle costs, and the most any draft gains."""
    rates, k = passing_rates(measured.greedy), measured.k
    if rates and not rarely(measured.greedy):  # of few passes with a draft, those rates are not the text's
        reach = min(max(most, k), len(rates))  # what no draft reached is not known
        gains = {n: tokens_by_position(rates[:n], n) / cost(n) for n in range(1, reach + 1)}
        best, now = max(gains, key=gains.__getitem__), gains[min(k, reach)]
        text = f"{now:.2f} times as fast as plain decoding at K = {k}"
        if gains[best] < 1.0:
            yield finding("Which K?", f"{text}, and no K pays.", "Turn it off, or take a cheaper or better draft.")
        elif gains[best] > MIN_GAIN * now:
            text = f"{text}; at K = {best} it would be {gains[best]:.2f}."
            yield finding("Which K?", text, f"Set {option} to {best}.")
        else:
            yield finding("Which K?", f"{text}, which is near the best.")
    top = max(range(1, max(most, k) + 1), key=lambda n: (n + 1) / cost(n))
    text = f"A draft that is always right would give {(top + 1) / cost(top):.2f} times, at K = {top}."
    yield finding("What could any draft gain here?", text)


def measured_gain(measured: Measured) -> Finding:
    pairs = zip(measured.greedy, measured.plain, strict=True)
    times = [(one.seconds_per_token, other.seconds_per_token) for one, other in pairs]
    gains = [slow / fast for fast, slow in times if fast and slow]
    if not gains:
        return Finding("Is it faster?", "unknown", "The texts were too short.")
    text = f"Measured at T = 0: {median(gains):.2f} times plain decoding."
    return finding("Is it faster?", text, "" if median(gains) > 1.0 else "The lines above say why.")


def counts(lanes: Lanes) -> tuple[int, int] | None:
    """Return the tokens drafted, and accepted; None where nothing tells."""
    if not lanes or all(one.server and one.counted is None and not one.drafted for one in lanes):
        return None
    return sum(one.drafted for one in lanes), sum(one.accepted for one in lanes)


def rarely(lanes: Lanes) -> bool:
    """Whether most passes had no draft."""
    return 0 < sum(one.drafting_cycles for one in lanes) < MIN_DRAFTING_SHARE * sum(one.cycles for one in lanes)


def longest_draft(lanes: Lanes) -> int:
    """Estimate K of a server that does not report it: the longest draft judged, or the mean length if that is more."""
    means = (math.ceil(one.drafted / one.drafting_cycles) for one in lanes if one.drafting_cycles)
    return max((*means, *(len(one.judged_at) for one in lanes)), default=0)


def seconds_a_cycle(lanes: Lanes) -> float | None:
    passes = sum(one.cycles for one in lanes)
    return sum(one.decode_seconds for one in lanes) / passes if passes else None


def examined(
    server: str, plain: str, target: str, draft: Sequence[str], drafter: str, k: int, temperature: float
) -> int:
    """Print each finding as it comes; return the exit status."""
    if server:
        key = os.environ.get("SPECDEC_SERVER_KEY", "")
        findings = examine_server(*connect_pair(server, plain, key, Limits(total_s=TOTAL_S)), temperature)
    else:
        family = zoo.load(target) if target == EMBEDDED and not draft else zoo.load_pair(target, *draft)
        findings = examine_pair(family, drafter or family.default_drafter, k, temperature)
    states = set()
    for one in findings:
        states.add(one.state)
        advice = f"\n  → {one.advice}" if one.advice else ""
        print(f"{MARKS[one.state]} {one.question} {one.answer}{advice}", flush=True)
    return 1 if "wrong" in states else 2 if "unknown" in states else 0
