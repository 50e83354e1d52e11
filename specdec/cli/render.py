"""Show a run in a terminal: coloured text, and figures below."""

import os
import sys
import traceback
from collections.abc import Sequence

from ..events import Committed, Event, Failed, PLAIN, SPECULATIVE, Started, Verified
from ..figures import machine
from ..figures.stats import Comparison, LaneStats
from ..messages import Step
from ..servers.answers import Facts
from ..traces.cycle import CycleEvents, is_lossless, lost_drafts, start_of
from ..traces.file import MARKS, printable

BUSY = " (the machine was busy: measure again)"
TEXT_DIFFERS = "tokens/s, but its text differs from plain decoding's"
OTHER_TARGET = ": not the same target as float32; greedy texts can differ at near-ties"
Row = tuple[str, str]  # name and value; a row without a value is left out
# The page's colours as terminal codes.
CODES = {
    "accepted": "48;5;151;38;5;16",
    "rejected": "48;5;216;38;5;16;9",
    "discarded": "48;5;252;38;5;16;2",
    "resampled": "48;5;153;38;5;16;4",
    "bonus": "48;5;222;38;5;16",
}
COUNTED = {
    "exact": "exact: the server's own count of each cycle agrees with the tokens that arrived",
    "merged": "merged: cycles that arrived together were separated by the server's own list",
    "totals": "totals only: tokens that arrived together are taken for one cycle",
    None: "none: the server drafted nothing",
}


def show_progress(line: str) -> None:
    """Replace the line on stderr that says what is waited for, if stderr is a terminal; "" empties it."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def show_step(step: Step) -> None:
    size, unit = (1e6, " MB") if step.name == "fetch" else (1, "")
    share = f" {step.done / size:,.0f} of {step.total / size:,.0f}{unit}" if step.total > 1 else ""
    show_progress(f"{' '.join(filter(None, (step.name, step.text)))}{share}, {step.seconds:.0f} s")


def tell(sentence: str) -> None:
    """Print an error as one line on stderr, in place of the progress, without control characters."""
    if sys.stderr is not None:
        show_progress("")
        if os.environ.get("SPECDEC_DEBUG", "") not in ("", "0") and sys.exc_info()[0]:
            traceback.print_exc()
        print("specdec:", printable(" ".join(sentence.split())), file=sys.stderr)


def has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def render(event: Event, events_so_far: Sequence[Event], colour: bool) -> str:
    """Render a committed cycle or a failure. Other events give an empty text."""
    if isinstance(event, Failed):
        return f"\n[{event.where}: {printable(event.reason)}]\n"
    if not isinstance(event, Committed):
        return ""
    verified = next((e for e in reversed(events_so_far) if isinstance(e, Verified) and e.lane == event.lane), None)
    shown = CycleEvents(None, verified, event).shown()
    pieces = ((printable(piece), status) for piece, status in shown)
    return "".join(style(piece, status, colour) if status else piece for piece, status in pieces)


def style(piece: str, status: str, colour: bool) -> str:
    piece = piece or "□"  # a server does not report which token was rejected
    # Line breaks of discarded and rejected tokens are shown as ↵, since these tokens are not part of the text.
    text = piece if status in ("accepted", "resampled", "bonus") else piece.replace("\n", "↵")
    text += MARKS[status]
    return f"\033[{CODES[status]}m{text}\033[0m" if colour else text


def describe_run(
    events: Sequence[Event], target: str = "", precision: str = "", server: Facts | None = None, note: str = ""
) -> str:
    """Return the settings and figures of a run, one per line. For a server, list what it does not report."""
    comparison = Comparison.from_events(events)
    lanes = [event.lane for event in events if isinstance(event, Started)]
    peers = [lane for lane in lanes if lane not in (SPECULATIVE, PLAIN)]
    failed = {e.lane: " ".join(e.reason.split()) for e in events if isinstance(e, Failed) and e.fatal}
    has_plain = server is None or PLAIN in lanes
    plain_rate = figure(comparison.plain.tokens_per_second, 1, "tokens/s")
    depth = f", at most {server.k} tokens drafted a cycle" if server and server.k else ""
    rows = [
        ("target", target),
        ("target in", precision + OTHER_TARGET * (precision not in ("", "float32"))),
        ("server", f"{server.kind} {server.version}, model {server.model}{depth}" if server else ""),
        ("cycles", COUNTED[comparison.speculative.counted] if server else ""),
        *(describe_settings(events, note) if server is None else []),
        ("speculative", figure(comparison.speculative.tokens_per_second, 1, "tokens/s")),
        ("plain decoding", plain_rate if has_plain else "– no --plain server given"),
        *(row for peer in peers for row in describe_peer(events, peer, comparison.plain, failed.get(peer, ""))),
        *describe_figures(comparison, server is None, has_plain),
    ]
    if server is not None:
        has_p = any(isinstance(event, Verified) and event.p is not None for event in events)
        unknown = "the drafter's probabilities" if has_p else "both models' probabilities under these settings"
        rows += [("not reported", f"which tokens were rejected, {unknown}, coins, the time of drafting")]
    rows += [(f"{lane} failed", reason) for lane, reason in failed.items() if lane not in peers]
    lines = [f"{name:<28}{value}" for name, value in rows if value]
    return "\n".join([*lines, "", "  ".join(f"{mark} {name}" for name, mark in MARKS.items())])


def describe_settings(events: Sequence[Event], note: str) -> list[Row]:
    settings = start_of(events, SPECULATIVE)
    if settings is None:
        return []
    params = f"K = {settings.k}, T = {settings.params.temperature:g}, seed {settings.params.seed}"
    lossless = "lossless" if settings.lossless else "LOSSY: the text no longer follows the target's distribution"
    if is_lossless(events, SPECULATIVE) is None:
        lost = lost_drafts(events, SPECULATIVE)
        lossless = f"exactness unknown: the drafter failed in {lost} cycle{'s' * (lost > 1)}"
    return [
        ("drafter", f"{settings.drafter}, {params}"),
        ("by default", note),
        ("verification", f"{settings.rule}, {lossless}"),
    ]


def describe_peer(events: Sequence[Event], lane: str, plain: LaneStats, failure: str) -> list[Row]:
    peer = LaneStats.from_events(events, lane)
    unit = f"failed: {failure}" if failure else "tokens/s" if peer.ids == plain.ids else TEXT_DIFFERS
    rate, base = peer.tokens_per_second, plain.tokens_per_second
    return [
        (f"{lane}, assisted", figure(rate, 1, unit)),
        ("  against plain decoding", figure(rate / base if rate and base else None, 2, "×")),
    ]


def describe_figures(comparison: Comparison, is_ours: bool, has_plain: bool) -> list[Row]:
    """Describe the figures of both lanes. A server does not report costs, and can lack a plain lane."""
    spec, plain = comparison.speculative, comparison.plain
    busy = BUSY if comparison.machine_busy or (is_ours and machine.busy()) else ""
    judged = "not reported" if spec.sums is not None else f"{spec.accepted} of {spec.judged} judged"
    ms = f"ms (plain {1e3 * plain.prefill_seconds:.1f} ms)" if has_plain else "ms"
    return [
        ("measured speed-up", figure(comparison.measured_speedup, 2, f"×{busy}") if has_plain else ""),
        ("acceptance rate α", figure(spec.alpha, 2, judged)),
        ("draft acceptance rate", figure(spec.draft_acceptance_rate, 2, f"{spec.accepted} of {spec.drafted} drafted")),
        ("block efficiency τ", figure(spec.tau, 2, "tokens per cycle")),
        ("cost of one draft token c", figure(comparison.draft_cost, 2, "plain steps") if is_ours else ""),
        ("cost of one verification v", figure(comparison.verify_cost, 2, "plain steps") if is_ours else ""),
        ("accounted speed-up", figure(comparison.accounted_speedup, 2, "×") if is_ours else ""),
        ("time per token", figure(spec.seconds_per_token and 1e3 * spec.seconds_per_token, 2, "ms")),
        ("time to first token", figure(1e3 * spec.prefill_seconds, 1, ms)),
    ]


def figure(value: float | None, digits: int, unit: str) -> str:
    return f"– {unit}" if value is None else f"{value:.{digits}f} {unit}"
