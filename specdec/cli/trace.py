"""`specdec trace FILE`: the decisions that the audit recomputed, its faults, and what it could not check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..events import Committed
from ..traces.audit import audit, holds, LaneAudit, shown
from ..traces.file import Trace, TraceError
from .render import strip_control_characters, tell

MAX_SHOWN = 10  # faults of a lane
VERDICTS = {
    True: "lossless",
    False: "LOSSY, judged by its own rule",
    None: "nobody knows whether this rule is lossless",
}


def examine(path: Path) -> int:
    """Print the audit of a trace. Return 0 if it holds, else 1."""
    try:
        trace = Trace.load(path)
        if not any(isinstance(event, Committed) for event in trace.events):
            raise TraceError("it holds no cycle")
    except (OSError, TraceError) as error:
        tell(f"{path}: {getattr(error, 'strerror', None) or error}")
        return 1
    accounts = audit(trace.header.lanes, trace.events)
    print(f"{strip_control_characters(' '.join(str(path).split()))}: {verdict(accounts)}")
    print(audit_lines(accounts))
    return 0 if holds(accounts) else 1


def verdict(accounts: Sequence[LaneAudit]) -> str:
    if not holds(accounts):
        return "THE AUDIT FAILS"
    return "the audit holds, as far as the trace tells" if any(one.unchecked for one in accounts) else "the audit holds"


def audit_lines(accounts: Sequence[LaneAudit]) -> str:
    """Write the audit, a few lines for each lane."""
    lines = []
    for account in accounts:
        done = f"{account.decisions} decisions and {account.draws} draws done again"
        outcome = f"{len(account.faults)} do not hold" if account.faults else "all hold"
        rule = f"{shown(account.rule)}, {VERDICTS[account.lossless]}" if account.rule else "no rule told"
        rule = f"{shown(account.server)}, watched from outside" if account.server else rule
        lines.append(f"  {shown(account.lane):<14}{account.tokens} tokens: {done}, {outcome} ({rule})")
        lines += [f"    {fault}" for fault in account.faults[:MAX_SHOWN]]
        if len(account.faults) > MAX_SHOWN:
            lines.append(f"    and {len(account.faults) - MAX_SHOWN} more")
        lines += [f"    not checked: {count} {what}" for what, count in account.unchecked.items()]
    return "\n".join(lines)
