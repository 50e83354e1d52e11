"""Predict the speed-up of runs that were not measured: acceptance from other prompts, costs from a probe."""

from collections.abc import Sequence

from ..types import Costs
from .stats import LaneStats


def predict(seen: Sequence[LaneStats], costs: Costs, k: int) -> tuple[float, float] | None:
    """Predict τ, and K·c + v + o in plain steps, of other prompts of the same kind; None if `seen` drafted nothing.

    `seen` are speculative runs that asked for drafts of depth `k`. They say how often each position of a draft is
    accepted, how many cycles have a draft, and how deep drafts are. `costs` come from `lanes/probe.py`, at the
    temperature of the runs. A cycle without a draft costs a plain step. Returns None if `seen` drafted nothing.
    """
    cycles, drafting = sum(lane.cycles for lane in seen), sum(lane.drafting_cycles for lane in seen)
    if not drafting:
        return None
    accepted = sum(sum(lane.accepted_at[:k]) for lane in seen)
    depth = min(float(k), sum(lane.drafted for lane in seen) / drafting)  # a tree has more nodes than levels
    shallow, deep = costs.cycle(int(depth)), costs.cycle(int(depth) + 1)
    share = drafting / cycles
    cycle = shallow + (depth - int(depth)) * (deep - shallow)
    return 1.0 + accepted / cycles, share * cycle + 1.0 - share
