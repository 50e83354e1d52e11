"""Live learning in a terminal: `specdec learn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..families import zoo
from .live import learn, of_kind


def report(kind: str, draft: str, prompts: Sequence[str], seconds: float, seed: int) -> int:
    """Teach a draft of the embedded family and print what came of it; 1 if the certificate fails, which it must not."""
    training_set = of_kind(kind, prompts, seconds=seconds, seed=seed)
    state: dict[str, Any] = {}
    for told in learn(zoo.load(), draft, training_set):
        if told is not None:
            for line in news(state, told):
                print(line, flush=True)
            state = told
    print("\n".join(conclusion(state)))
    return int(not all(state["certificate"]["passed"]))


def news(before: dict[str, Any], state: dict[str, Any]) -> list[str]:
    """A line a run, and one where another phase begins."""
    rounds = state["rounds"]
    lines = [f"{state['phase']} …"] if state["phase"] not in (before.get("phase"), "done") else []
    if len(rounds) > len(before.get("rounds", [])):
        seconds, accepted, judged, loss = rounds[-1]
        lines.append(f"{seconds:6.1f} s  α of this run {accepted / max(1, judged):.2f}  loss {loss:.3f}")
    return lines


def conclusion(state: dict[str, Any]) -> list[str]:
    distribution, figures = state["certificate"], state["figures"]
    _, _, g, degrees, tail, _ = distribution["tests"][-1]
    lines = [f"learned from {len(state['rounds'])} runs: {state['judged']} judged, {state['rejected']} rejected", ""]
    for lane, told in figures.items():
        low, high = told["interval"]
        lines.append(
            f"{lane:<8}α {told['alpha'] or 0:.3f} ({low:.3f} to {high:.3f}, {told['judged']} judged)  "
            f"τ {told['tau'] or 0:.2f}  speed-up {told['measured_speedup'] or 0:.2f}×"
        )
    verdicts = {"better": "it learned", "same": "no gain that can be told: the intervals meet", "worse": "it got worse"}
    said = verdicts[state["verdict"]] if state["rounds"] else "no run was finished in time, so nothing was learned"
    marks = ["✓" if passed else "✗" for passed in distribution["passed"]]
    return [
        *lines, f"on {figures['after']['runs']} runs of prompts that taught nothing: {said}", "",
        f"after {distribution['text']!r}:",
        f"{marks[0]} closed form, largest error {distribution['closed']['error']}",
        f"{marks[1]} {distribution['done']} samples of three tokens, G = {g} on {degrees}, chance below {tail:.2g}",
        f"{marks[2]} greedy, {distribution['greedy']['equal']} of {distribution['greedy']['of']} tokens equal",
    ]  # fmt: skip
