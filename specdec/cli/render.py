"""A run in a terminal: coloured text, figures below, or one JSON object per line."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from ..events import Committed, Event, Failed, Started, Verified
from ..figures import machine
from ..figures.stats import Comparison, LaneStats
from ..traces.cycle import AuditedCycle
from ..traces.file import Header

if TYPE_CHECKING:
    from ..servers.base import Server

BUSY = " (the machine was busy: measure again)"
PARTED = "tokens/s, with another text than plain decoding's"
ABOUT = {
    "float32": "float32",
    "bfloat16": "bfloat16: greedy texts may part at near-ties",
    "gguf": "gguf: the file's own codes, inputs in 8 bits: another target than float32's; greedy texts may part",
    "int8": "int8: another target than float32's; greedy texts may part at near-ties",
}
EXIT, UNTRAINED = "early_exit", 0.3  # below that acceptance rate nobody trained the layer for it
BADLY = "few early exits were kept: a model that was not trained to be left at that layer (LayerSkip) drafts badly"
# Background colours of the page's palette, always with a mark: colour is never the only sign.
STYLES = {
    "accepted": ("48;5;151;38;5;16", "✓"),
    "rejected": ("48;5;216;38;5;16;9", "✗"),
    "discarded": ("48;5;252;38;5;16;2", "·"),
    "resampled": ("48;5;153;38;5;16;4", "↻"),
    "bonus": ("48;5;222;38;5;16", "+1"),
}
COUNTED = {
    "exact": "exact: the server's own count of each agrees with what arrived",
    "merged": "merged: the server's own list was laid over what arrived together",
    "totals": "totals only: what arrived together is taken for one",
    None: "none: the server drafted nothing",
}
# Control characters but for tabs and line ends, and what turns a line round.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def as_lines(header: Header, events: Iterable[Event]) -> list[Event]:
    from ..traces import file as trace

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # which is what JSON is written in
    sys.stdout.write(header.line())
    kept = []
    for event in events:
        kept.append(event)
        sys.stdout.write(trace.line(event))
        sys.stdout.flush()
    return kept


def tell(sentence: str) -> None:
    """Print an error on one line of the error stream. Files, models and servers may have written parts of it."""
    if sys.stderr is not None:
        if os.environ.get("SPECDEC_DEBUG") and sys.exc_info()[0]:
            traceback.print_exc()
        print("specdec:", strip_control_characters(" ".join(sentence.split())), file=sys.stderr)


def as_text(
    prompt: str, events: Iterable[Event], target: str = "", precision: str = "", answers: bool = False
) -> list[Event]:
    """Print a run as it comes, then its figures. `answers`: the text does not continue the prompt's line."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sys.stdout.write(prompt + "\n\n" * answers)
    kept: list[Event] = []
    for event in events:
        kept.append(event)
        if getattr(event, "lane", "") == "speculative":
            sys.stdout.write(render(event, kept, colour))
        sys.stdout.flush()
    print("\n\n" + report(kept, target, precision))
    return kept


def render(event: Event, before: Sequence[Event], colour: bool) -> str:
    """A cycle's tokens once it is committed: drafts in their order, then the target's own."""
    if isinstance(event, Failed):
        return f"\n[{event.where}: {strip_control_characters(event.reason)}]\n"
    if not isinstance(event, Committed):
        return ""
    verified = next((e for e in reversed(before) if isinstance(e, Verified) and e.lane == event.lane), None)
    shown = AuditedCycle(None, verified, event).shown()
    told = ((strip_control_characters(piece), status) for piece, status, _ in shown)
    return "".join(styled(piece, status, colour) if status else piece for piece, status in told)


def strip_control_characters(text: str) -> str:
    """What would steer a terminal, or turn a line round, is named instead: models write it, and servers of others."""
    return STEERING.sub(lambda found: f"⟨{ord(found[0]):04X}⟩", text)


def styled(piece: str, status: str, colour: bool) -> str:
    codes, mark = STYLES[status]
    # Discarded and rejected tokens are not part of the text: their line breaks must not break lines.
    piece = piece or "□"  # a server does not tell which token it was
    text = piece if status in ("accepted", "resampled", "bonus") else piece.replace("\n", "↵")
    return f"\033[{codes}m{text}{mark}\033[0m" if colour else f"{text}{mark}"


def report(events: Sequence[Event], target: str = "", precision: str = "") -> str:
    """Return what ran and its figures, one per line, with their units."""
    comparison = Comparison.of(events)
    busy = BUSY if comparison.machine_busy or machine.busy() else ""
    spec, plain = comparison.speculative, comparison.plain
    rows = [
        ("speculative", spec.tokens_per_second, "tokens/s", 0),
        ("plain decoding", plain.tokens_per_second, "tokens/s", 0),
        ("measured speed-up", comparison.measured_speedup, f"×{busy}", 2),
        ("acceptance rate α", spec.alpha, f"{spec.accepted} of {spec.judged} judged", 2),
        ("draft acceptance rate", spec.draft_acceptance_rate, f"{spec.accepted} of {spec.drafted} drafted", 2),
        ("block efficiency τ", spec.tau, "tokens per cycle", 2),
        ("cost of one draft token c", comparison.draft_cost, "plain steps", 2),
        ("cost of one verification v", comparison.verify_cost, "plain steps", 2),
        ("accounted speed-up", comparison.accounted_speedup, "×", 2),
        ("time per token", None if spec.seconds_per_token is None else spec.seconds_per_token * 1e3, "ms", 2),
        ("time to first token", spec.prefill_seconds * 1e3, f"ms (plain {plain.prefill_seconds * 1e3:.1f})", 1),
    ]
    if peer := next((e.lane for e in events if e.lane not in ("speculative", "plain")), None):
        third = LaneStats.of(events, peer)
        rate, unit = third.tokens_per_second, "tokens/s" if third.ids == plain.ids else PARTED
        failure = next((f"failed: {e.reason}" for e in events if isinstance(e, Failed) and e.lane == peer), unit)
        against = rate / plain.tokens_per_second if rate and plain.tokens_per_second else None
        rows[2:2] = [(f"{peer}, assisted", rate, failure, 0), ("  against plain decoding", against, "×", 2)]
    lines = [
        f"{name:<28}{'–' if value is None else f'{value:.{digits}f}'} {unit}" for name, value, unit, digits in rows
    ]
    started = next((e for e in events if isinstance(e, Started) and e.lane == "speculative"), None)
    head = [("target", target), ("target in", ABOUT.get(precision, precision))]
    if started is not None:
        params = f"K = {started.k}, T = {started.params.temperature:g}, seed {started.params.seed}"
        kept = "lossless" if started.lossless else "LOSSY: the text no longer follows the target's distribution"
        head += [("drafter", f"{started.drafter}, {params}"), ("verification", f"{started.rule}, {kept}")]
    lines = [*(f"{name:<28}{value}" for name, value in head if value), *lines]
    if started and started.drafter.endswith(EXIT) and spec.alpha is not None and spec.alpha < UNTRAINED:
        lines.append(BADLY)
    legend = "  ".join(f"{mark} {name}" for name, (_, mark) in STYLES.items())
    return "\n".join([*lines, "", legend])


def report_of_server(events: Sequence[Event], server: Server) -> str:
    """The figures, one per line, with their units; last what this server does not report."""
    comparison = Comparison.of(events)
    spec, plain = comparison.speculative, comparison.plain
    beside = any(isinstance(event, Started) and event.lane == "plain" for event in events)
    facts, unknown = server.facts, "not reported"
    depth = f", at most {facts.k} tokens drafted a cycle" if facts.k else ""
    totals = spec.counted not in ("exact", "merged")
    rows = [
        ("server", f"{facts.kind} {facts.version}, model {facts.model}{depth}"),
        ("cycles", COUNTED[spec.counted]),
        ("speculative", figure(spec.tokens_per_second, 1, "tokens/s")),
        ("plain decoding", figure(plain.tokens_per_second, 1, "tokens/s") if beside else "– no --plain server given"),
        *([("measured speed-up", figure(comparison.measured_speedup, 2, "×"))] if beside else []),
        ("acceptance rate α", figure(spec.alpha, 2, unknown if totals else f"{spec.accepted} of {spec.judged} judged")),
        ("draft acceptance rate", figure(spec.draft_acceptance_rate, 2, f"{spec.accepted} of {spec.drafted} drafted")),
        ("block efficiency τ", figure(spec.tau, 2, "tokens per cycle")),
        ("time to first token", figure(1e3 * spec.prefill_seconds, 1, against(plain.prefill_seconds, beside))),
        ("time per token", figure(ms(spec.seconds_per_token), 2, against(plain.seconds_per_token, beside, 2))),
    ]
    for name in ("speculative", "plain") if beside else ("speculative",):
        if found := gaps(events, name):
            longest = f"median {1e3 * median(found):.1f}, longest {1e3 * max(found):.1f} ms"
            rows.append((f"gaps, {name}", longest))
    rows += [(f"{event.lane} failed", " ".join(event.reason.split())) for event in events if isinstance(event, Failed)]
    told = any(isinstance(event, Verified) and event.p is not None for event in events)
    probabilities = "the drafter's probabilities" if told else "both models' probabilities under these settings"
    rows.append(("not reported", f"which tokens were rejected, {probabilities}, coins, the time of drafting"))
    legend = "  ".join(f"{mark} {name}" for name, (_, mark) in STYLES.items())
    return "\n".join([*(f"{name:<28}{value}" for name, value in rows), "", legend])


def figure(value: float | None, digits: int, unit: str) -> str:
    return f"– {unit}".rstrip() if value is None else f"{value:.{digits}f} {unit}"


def ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def against(plain: float | None, beside: bool, digits: int = 1) -> str:
    return f"ms (plain {figure(ms(plain), digits, 'ms')})" if beside else "ms"


def gaps(events: Sequence[Event], name: str) -> list[float]:
    """Seconds between arrivals: tokens that came together are one."""
    times = sorted({event.at for event in events if isinstance(event, Committed) and event.lane == name})
    return [later - sooner for sooner, later in pairwise(times)]
