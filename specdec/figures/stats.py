"""Compute α, τ and costs from the events of runs. The unit of costs is one plain step.

Letters follow Leviathan et al. 2022 (arXiv 2211.17192); v, of a pass, and o, of the rest of a cycle, are added.

In a tree, `alpha` counts levels, not nodes: levels passed / levels judged. A level is judged if at least one of its
nodes is judged, and passed if one is accepted. `draft_acceptance_rate` counts nodes: tokens accepted / tokens drafted.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import fmean, median
from typing import Any

from ..events import Committed, Counted, Drafted, Event, Finished, PLAIN, SPECULATIVE, Started, Verified
from ..types import Tree

MAX_SPEEDUP_OVER_TAU = 1.05  # τ bounds the speed-up; if speed-up / τ is larger, plain decoding was slowed down
MAX_MEAN_OVER_MEDIAN = 1.5  # of the times of passes; a larger ratio means that some passes were slowed down
MIN_PASSES = 8  # with fewer passes, mean and median are not compared


@dataclass
class LaneStats:
    """The sums of one lane's run. Cycles, drafts and passes are counted without cycle 0, the prefill."""

    cycles: int = 0
    tokens: int = 0
    first: int = 1  # tokens of cycle 0; can be more only in lanes of the library transformers
    drafted: int = 0
    depths: list[int] = field(default_factory=list)  # of each draft; in a chain, its length
    accepted_at: list[int] = field(default_factory=list)  # levels passed, by depth in the draft
    judged_at: list[int] = field(default_factory=list)
    prefill_seconds: float = 0.0
    draft_seconds: float = 0.0
    verify_seconds: list[float] = field(default_factory=list)  # of passes with a draft
    step_seconds: list[float] = field(default_factory=list)  # of passes without a draft
    seconds: float = 0.0  # on the lane's clock, to the last token
    eager: str | None = None  # why the lane ran on a GPU without captured graphs
    server: str = ""  # the server that computed the lane, if any
    counted: Counted | None = None  # how a server's cycles were counted
    sums: tuple[int, int] | None = None  # (drafted, accepted) of a server that does not report each cycle
    ids: list[int] = field(default_factory=list)

    @classmethod
    def from_events(cls, events: Iterable[Event], lane: str) -> "LaneStats":
        stats = cls()
        parents: tuple[int, ...] = ()
        verified: Verified | None = None
        for event in events:
            if event.lane != lane:
                continue
            if isinstance(event, Drafted):
                parents = event.parents
                if event.cycle == 0:
                    continue
                stats.drafted += len(event.tokens)
                stats.depths.append(Tree(parents).max_depth)
                stats.draft_seconds += event.end - event.start
            elif isinstance(event, Verified):
                verified = event
                if event.cycle > 0:
                    passes = stats.verify_seconds if parents else stats.step_seconds
                    passes.append(event.end - event.start)
            elif isinstance(event, Committed):
                if verified is not None and event.cycle > 0:
                    stats._judge(verified, event, parents)
                stats.ids += event.tokens
                stats.tokens, stats.seconds = event.total, event.at
                if event.cycle == 0:
                    stats.prefill_seconds, stats.first = event.at, event.total
                else:
                    stats.cycles += 1
                parents, verified = (), None
            elif isinstance(event, Started):
                stats.server = event.server
            elif isinstance(event, Finished):
                stats.eager, stats.counted = event.eager, event.counted
                if stats.server and event.counted not in ("exact", "merged"):
                    stats.drafted = event.drafted or 0
                    stats.sums, stats.accepted_at, stats.judged_at = (stats.drafted, event.accepted or 0), [], []
        return stats

    def _judge(self, verified: Verified, committed: Committed, parents: tuple[int, ...]) -> None:
        """Count the levels of the draft that were judged, and those that were passed, up to the end of the text."""
        passed: list[bool] = []
        depths = Tree(parents).depths()
        for position in verified.positions:
            ended = sum(passed) == committed.accepted and len(committed.tokens) == committed.accepted
            if position.status == "discarded" or ended:
                continue
            level = depths[position.node] - 1
            passed += [False] * (level + 1 - len(passed))
            passed[level] |= position.status == "accepted"
        self.judged_at = added(self.judged_at, [1] * len(passed))
        self.accepted_at = added(self.accepted_at, passed)

    @property
    def judged(self) -> int:
        return sum(self.judged_at)

    @property
    def accepted(self) -> int:
        return sum(self.accepted_at) if self.sums is None else self.sums[1]

    @property
    def alpha(self) -> float | None:
        """Levels passed / levels judged; in a chain, tokens accepted / tokens judged."""
        return self.accepted / self.judged if self.judged else None

    @property
    def draft_acceptance_rate(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    @property
    def tau(self) -> float | None:
        """Tokens per cycle, including the target's own. The prefill and its tokens are not counted."""
        return (self.tokens - self.first) / self.cycles if self.cycles else None

    @property
    def decode_seconds(self) -> float:
        return self.seconds - self.prefill_seconds

    @property
    def seconds_per_token(self) -> float | None:
        """TPOT: time per output token after the first."""
        return self.decode_seconds / (self.tokens - self.first) if self.tokens > self.first else None

    @property
    def tokens_per_second(self) -> float | None:
        return 1.0 / self.seconds_per_token if self.seconds_per_token else None


@dataclass(frozen=True)
class Comparison:
    """A speculative lane, and plain decoding of the same prompt (in the bench, the faster run of two beside it)."""

    speculative: LaneStats
    plain: LaneStats

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> "Comparison":
        events = list(events)
        return cls(LaneStats.from_events(events, SPECULATIVE), LaneStats.from_events(events, PLAIN))

    @property
    def step(self) -> float | None:
        """Seconds of one plain step, the engine's own time included; None for a server, which reports no costs."""
        return None if self.speculative.server else self.plain.seconds_per_token

    @property
    def measured_speedup(self) -> float | None:
        fast, slow = self.speculative.seconds_per_token, self.plain.seconds_per_token
        return slow / fast if fast and slow else None

    @property
    def is_measured_here(self) -> bool:
        """Whether our engine measured the speed-up, with no server in either lane."""
        return self.measured_speedup is not None and not (self.speculative.server or self.plain.server)

    @property
    def machine_busy(self) -> bool:
        """Return whether a speed-up cannot be trusted: it exceeds its bound τ, or pass times vary too much."""
        spec, plain, speedup = self.speculative, self.plain, self.measured_speedup
        if speedup is None or not self.is_measured_here:
            return False
        scattered = any(
            len(passes) >= MIN_PASSES and fmean(passes) > MAX_MEAN_OVER_MEDIAN * median(passes)
            for passes in (spec.verify_seconds, plain.step_seconds)
        )
        return scattered or speedup > MAX_SPEEDUP_OVER_TAU * (spec.tau or 1.0)

    @property
    def draft_cost(self) -> float | None:
        """c, the mean time of drafting one token."""
        spec = self.speculative
        return spec.draft_seconds / spec.drafted / self.step if self.step and spec.drafted else None

    @property
    def verify_cost(self) -> float | None:
        """v, the mean time of a verification pass."""
        passes = self.speculative.verify_seconds
        return fmean(passes) / self.step if self.step and passes else None

    @property
    def overhead(self) -> float | None:
        """o, the mean time of a cycle outside drafting and the target's pass: the engine's own time."""
        spec = self.speculative
        if not self.step or not spec.depths or not spec.cycles:
            return None
        passes = sum(spec.verify_seconds) + sum(spec.step_seconds)
        return max(0.0, spec.decode_seconds - spec.draft_seconds - passes) / spec.cycles / self.step

    @property
    def accounted_speedup(self) -> float | None:
        """The speed-up that follows from this run's own τ, costs and overhead."""
        spec = self.speculative
        if not self.step or spec.tau is None or not spec.drafted:
            return None
        c, v, o = self.draft_cost or 0.0, self.verify_cost or 0.0, self.overhead or 0.0
        if min(c, v) < 0.0 or c + v + o == 0.0:  # the times in a trace file may be wrong
            return None
        step_cost = fmean(spec.step_seconds) / self.step if spec.step_seconds else 1.0  # of passes without a draft
        share = len(spec.depths) / spec.cycles
        return accounted_speedup(spec.tau, spec.drafted / len(spec.depths), c, v, o, share, step_cost)


def accounted_speedup(tau: float, drafted: float, c: float, v: float, o: float, share: float, step: float) -> float:
    """Return the speed-up at `tau` tokens a cycle. A `share` of cycles drafts `drafted` tokens; others cost `step`."""
    return tau / (share * (drafted * c + v) + (1.0 - share) * step + o)


def pooled_tau(lanes: Sequence[LaneStats]) -> float:
    """Return tokens per cycle over all runs. At least one run must have a cycle after the prefill."""
    return sum(lane.tokens - lane.first for lane in lanes) / sum(lane.cycles for lane in lanes)


def pooled_alpha(lanes: Sequence[LaneStats]) -> list[float]:
    """Return accepted / judged by position over all runs."""
    accepted, judged = added(*(lane.accepted_at for lane in lanes)), added(*(lane.judged_at for lane in lanes))
    return [a / n for a, n in zip(accepted, judged, strict=True)]


def added(*counts: Sequence[int]) -> list[int]:
    """Add up lists of counts place by place; a missing place counts 0."""
    return list(map(sum, zip_longest(*counts, fillvalue=0)))


def summary(runs: Sequence[Comparison]) -> dict[str, Any]:
    """Summarise several races: acceptance pooled over all cycles, and medians of the rest; None for what is unknown."""
    lanes = [run.speculative for run in runs]
    accepted = sum(lane.accepted for lane in lanes)
    return {
        "alpha": rounded_ratio(sum(sum(lane.accepted_at) for lane in lanes), sum(lane.judged for lane in lanes)),
        "alpha_by_position": [round(rate, 4) for rate in pooled_alpha(lanes)],
        "draft_acceptance_rate": rounded_ratio(accepted, sum(lane.drafted for lane in lanes)),
        "tau": round(pooled_tau(lanes), 4) if any(lane.cycles for lane in lanes) else None,
        "draft_cost": rounded_median(run.draft_cost for run in runs),
        "verify_cost": rounded_median(run.verify_cost for run in runs),
        "overhead": rounded_median(run.overhead for run in runs),
        "plain_tokens_per_second": rounded_median(run.plain.tokens_per_second for run in runs),
        "tokens_per_second": rounded_median(lane.tokens_per_second for lane in lanes),
        "plain_first_token_seconds": rounded_median(run.plain.prefill_seconds or None for run in runs),
        "first_token_seconds": rounded_median(lane.prefill_seconds or None for lane in lanes),
        "measured_speedup": rounded_median(run.measured_speedup for run in runs),
        "accounted_speedup": rounded_median(run.accounted_speedup for run in runs),
    }


def rounded_median(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return round(median(numbers), 4) if numbers else None


def interval(values: Iterable[float | None]) -> list[float] | None:
    """Return the 95 % interval of the median by order statistics; for fewer than six values, return their range."""
    ordered = sorted(value for value in values if value is not None)
    n, outside, beyond = len(ordered), 0.0, 0  # outside = P(median < ordered[beyond])
    while (outside := outside + math.comb(n, beyond) / 2**n) <= 0.025:
        beyond += 1
    beyond = max(0, beyond - 1)
    return [round(ordered[beyond], 4), round(ordered[-1 - beyond], 4)] if ordered else None


def rounded_ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def repetition(ids: Sequence[int], n: int = 8) -> float:
    """Return the share of n-grams that occurred before. On a text that repeats itself, most drafters look good."""
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0
