"""Run `specdec trace FILE`: print the audit of a trace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument

from ..events import Committed
from ..traces.audit import audit, faultless, LaneAudit, shown
from ..traces.drawn import printable
from ..traces.file import Trace, TraceError
from .render import tell

MAX_SHOWN = 10  # how many faults of a lane are printed
VERDICTS = {
    True: "lossless",
    False: "LOSSY, judged by its own rule",
    None: "it is unknown whether it is lossless",
}


def trace(file: Annotated[Path, Argument(help="a saved run (.jsonl)", show_default=False)]) -> int:
    """Audit a trace: recompute its decisions, and compare them with the recorded ones.

    The exit code is 0 if all hold, 1 if one does not, and 2 if the file cannot be audited.
    """
    try:
        recorded = Trace.load(file)
        if not any(isinstance(event, Committed) for event in recorded.events):
            raise TraceError("it holds no cycle")
    except (OSError, TraceError) as error:
        tell(f"{file}: {getattr(error, 'strerror', None) or error}")
        return 2
    lanes = audit(recorded.header.lanes, recorded.events)
    print(f"{printable(' '.join(str(file).split()))}: {verdict(lanes)}")
    print(audit_lines(lanes))
    return 0 if faultless(lanes) else 1


def verdict(lanes: Sequence[LaneAudit]) -> str:
    if not faultless(lanes):
        return "THE AUDIT FAILS"
    return "the audit holds, as far as the data go" if any(lane.unchecked for lane in lanes) else "the audit holds"


def audit_lines(lanes: Sequence[LaneAudit]) -> str:
    """Write the audit, a few lines for each lane."""
    lines = []
    for lane in lanes:
        work = f"{lane.decisions} decisions and {lane.draws} draws checked"
        outcome = f"{len(lane.faults)} do not hold" if lane.faults else "all hold"
        rule = f"{shown(lane.rule)}, {VERDICTS[lane.lossless]}" if lane.rule else "no rule recorded"
        rule = f"{shown(lane.server)}, watched from outside" if lane.server else rule
        lines.append(f"  {shown(lane.lane):<14}{lane.tokens} tokens: {work}, {outcome} ({rule})")
        lines += [f"    {fault}" for fault in lane.faults[:MAX_SHOWN]]
        if len(lane.faults) > MAX_SHOWN:
            lines.append(f"    and {len(lane.faults) - MAX_SHOWN} more")
        lines += [f"    not checked: {count} {what}" for what, count in lane.unchecked.items()]
    return "\n".join(lines)
