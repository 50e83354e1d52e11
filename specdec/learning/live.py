"""A minute of live learning: the draft runs, and trains on what the target said of its drafts, in turn.

Then two questions, which other prompts answer: does it draft better, and is the text still the target's? The first is
answered by the same seeds before and after, the second by the certificate of `proof/`. Nothing is kept.

As in Online Speculative Decoding (Liu et al., arXiv 2310.07177) and Aurora (Wang et al., arXiv 2602.06932); there the
traffic of many users teaches, for hours.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeVar

from ..families.zoo import Family
from ..figures.stats import Comparison, LaneStats, summary
from ..figures.theory import wilson
from ..models.transformer import Transformer
from ..paths import ASSETS
from ..proof.certify import certify, passed
from ..proof.mistakes import Mistake
from ..proof.pair import after
from ..types import has_lone_surrogate, SamplingParams
from .experience import Example, run, Student

FILES = "learning.json", "prompts.json"  # what is learned from, and what is asked, by kind
K, TEMPERATURE = 4, 0.8
TEXT, STEPS, AT_ONCE = 96, 4, 8  # tokens of a run, steps of training after it, texts in a step
MOST_RUNS = 120  # however fast the machine: the logits of each take nearly a megabyte
STEADY, FINAL_RATE = 0.5, 0.05  # from that share of the time on the rate falls to that share of the highest
HELD_OUT_TEXT, SEEDS = 48, 4  # tokens, runs of a prompt
DRAWS = 5_000  # of the certificate
# Of the time after learning: until when is measured, and until when draws are begun. The rest is for what began.
MEASURED, DRAWN = 0.4, 0.8

State = dict[str, Any]
Done = TypeVar("Done")
News = Generator["State | None", None, None]


@dataclass(frozen=True)
class TrainingSet:
    """What to learn from, what to be examined with, and for how long: `seconds` to learn, then `after` to measure and
    to certify. A slow machine measures fewer runs and certifies by fewer draws, and says how many.

    `sources` are lists of prompts that take turns, and `place` is the text after which it is certified. `seed` is that
    of the first run, and of the choice of texts.
    """

    sources: Sequence[Sequence[str]]
    held_out: Sequence[str]
    place: str
    seconds: float = 60.0
    after: float = 60.0
    runs: int = MOST_RUNS
    seed: int = 0


def of_kind(kind: str, own: Sequence[str] = (), **limits: Any) -> TrainingSet:
    """The page's prompts of a kind, and in turn with them a visitor's `own`; none that it is examined with.

    It is certified where the tab Lossless? certifies: many words may follow there, which makes the test sharp.

    ValueError for another kind, and for a prompt that cannot be run.
    """
    for prompt in own:
        if not prompt.strip() or has_lone_surrogate(prompt):
            raise ValueError("a prompt is empty, or holds half of a character (a lone surrogate)")
    taught, asked = (json.loads((ASSETS / name).read_text(encoding="utf-8")) for name in FILES)
    if kind not in taught:
        raise ValueError(f"there are no examples of the kind {kind!r}; choose from {', '.join(taught)}")
    teaching, held_out = taught[kind], asked[kind]
    own = [prompt for prompt in own if prompt.strip() not in {one.strip() for one in held_out}]
    return TrainingSet([source for source in (own, teaching) if source], held_out, asked["story"][0], **limits)


def learn(family: Family, name: str, training_set: TrainingSet) -> News:
    """States, JSON-ready, the last one whole; between them None, wherever it may be left.

    `name` is a draft model of the family; the family itself stays as it is. ValueError where it has no such.
    """
    before = family.drafts.get(name)
    if not isinstance(before, Transformer) or before.source is None:
        raise ValueError(f"there is no draft model {name!r} to teach; choose from {', '.join(family.drafts)}")
    family.use_threads()
    student = Student(before, TEMPERATURE)
    state: State = {"phase": "learning", "left": training_set.seconds, "rounds": [], "judged": 0, "rejected": 0}
    yield dict(state)
    taught = yield from _train(family, student, training_set, state)
    began = time.monotonic()
    state |= {"phase": "measuring", "left": MEASURED * training_set.after}
    yield dict(state)
    yield from _examine(family, before, taught, training_set, state)
    state |= {"phase": "certifying", "left": 0.0}
    yield dict(state)
    for told in certificate(family, taught, training_set.place, draws=DRAWS):
        state["certificate"] = told
        yield None
        if told["tests"] and time.monotonic() - began > DRAWN * training_set.after:
            break
    yield state | {"phase": "done"}


def _train(
    family: Family, student: Student, training_set: TrainingSet, state: State
) -> Generator[State | None, None, Transformer]:
    """Runs and steps in turn until the time or the runs are over; the draft that came of it.

    A run's own α is of the draft as it was then. A run that the end cuts teaches nothing.
    """
    draft, examples, dice = student.draft, list[Example](), random.Random(training_set.seed)
    prompts = [cycle(family.encode(prompt) for prompt in source) for source in training_set.sources]
    began = time.monotonic()

    def spent() -> float:
        return max((time.monotonic() - began) / training_set.seconds, len(examples) / training_set.runs)

    while spent() < 1.0:
        prompt = next(prompts[len(examples) % len(prompts)])[-family.target.context // 2 :]
        params = SamplingParams(TEMPERATURE, max_tokens=TEXT, seed=training_set.seed + len(examples), ignore_end=True)
        done = yield from run_until(run(family, draft, prompt, K, params), lambda: spent() >= 1.0)
        if done is None:
            break
        stats, example = done
        examples.append(example)
        losses = []
        for _ in range(STEPS):
            rate = max(FINAL_RATE, min(1.0, (1.0 - spent()) / (1.0 - STEADY)))
            losses.append(student.step([example, *dice.sample(examples[:-1], min(AT_ONCE, len(examples)) - 1)], rate))
            yield None
        draft = student.exported()
        seconds = time.monotonic() - began
        taught = [round(seconds, 2), stats.accepted, stats.judged, round(sum(losses) / STEPS, 4)]
        state["rounds"] = [*state["rounds"], taught]
        state["judged"] += stats.judged
        state["rejected"] += stats.judged - stats.accepted
        state["left"] = max(0.0, training_set.seconds - seconds)
        yield dict(state)
    return draft


def run_until(work: Generator[None, None, Done], over: Callable[[], bool]) -> Generator[None, None, Done | None]:
    """What `work` returns; None if it is over before."""
    with contextlib.closing(work):
        while not over():
            try:
                yield next(work)
            except StopIteration as ended:
                done: Done = ended.value
                return done
    return None


def _examine(family: Family, before: Transformer, taught: Transformer, training_set: TrainingSet, state: State) -> News:
    """Held-out prompts, each run plainly, by the draft before and by the one after, with the same seed, in turn."""
    runs: dict[str, list[Comparison]] = {"before": [], "after": []}
    drafts = {"plain": None, "before": before, "after": taught}
    began, seconds = time.monotonic(), MEASURED * training_set.after
    asked = [(prompt, seed) for seed in range(SEEDS) for prompt in training_set.held_out]
    for i, (prompt, seed) in enumerate(asked):
        params = SamplingParams(TEMPERATURE, max_tokens=HELD_OUT_TEXT, seed=seed, ignore_end=True)
        lanes: dict[str, LaneStats] = {}
        for lane in sorted(drafts, reverse=bool(i % 2)):  # no lane is always the first
            lanes[lane], _ = yield from run(family, drafts[lane], family.encode(prompt), K, params)
        for lane, told in runs.items():
            told.append(Comparison(lanes[lane], lanes["plain"]))
        spent = time.monotonic() - began
        state["left"] = max(0.0, min(seconds - spent, spent / (i + 1) * (len(asked) - i - 1)))
        state["figures"] = {lane: figures(told) for lane, told in runs.items()}
        state["verdict"] = verdict(state["figures"])
        yield dict(state)
        if spent > seconds:
            break


def figures(runs: Sequence[Comparison]) -> State:
    """Of several runs: α with its interval (Wilson, 95 %), τ and the measured speed-up; how many were judged."""
    judged, accepted = (sum(getattr(run.speculative, name) for run in runs) for name in ("judged", "accepted"))
    told = summary(runs)
    kept = {name: told[name] for name in ("alpha", "tau", "measured_speedup")}
    return kept | {"interval": [round(end, 4) for end in wilson(accepted, judged)], "judged": judged, "runs": len(runs)}


def verdict(told: dict[str, State]) -> str:
    """Whether α is "better" or "worse", its two intervals apart, or the "same" as far as they tell."""
    (low, high), (lowest, highest) = told["before"]["interval"], told["after"]["interval"]
    return "better" if lowest > high else "worse" if highest < low else "same"


def certificate(
    family: Family, draft: Transformer, text: str, mistake: Mistake | None = None, *, draws: int
) -> Generator[State, None, None]:
    """The three checks of `proof/certify.py` with this draft after `text`, as the sample grows."""
    for told in certify(after(family, draft, text), mistake, draws, seed=11):
        kept = {name: told[name] for name in ("closed", "draws", "temperature", "top_k", "k")}
        greedy = {name: told["greedy"][name] for name in ("equal", "of")}
        done, tests = told["sampled"][-1] if told["sampled"] else (told["done"], [])  # the sample that was looked at
        judged = passed(told) if tests else []
        yield kept | {"done": done, "text": text, "greedy": greedy, "tests": tests, "passed": judged}
