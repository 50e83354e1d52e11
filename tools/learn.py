"""`python -m tools.learn`: *Learn here* in a terminal, with its figures and its certificate. Kept nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from specdec.families.zoo import load
from specdec.learning.live import learn, of_kind, State

from .options import option, run


@dataclass(frozen=True)
class Options:
    """A draft learns from its own runs; then α before and after, on other prompts, and a certificate."""

    kind: str = option("code", "of texts: story, code or facts")
    draft: str = option("draft_model:story", "who learns: a draft model of the embedded family")
    prompt: tuple[str, ...] = option((), "of yours to learn from, too")
    seconds: float = option(60.0, "to learn; measuring and certifying come on top")
    seed: int = option(0, "of the first run")


def report(options: Options) -> int:
    """1 if the certificate fails, which it must not."""
    training_set = of_kind(options.kind, options.prompt, seconds=options.seconds, seed=options.seed)
    state: State = {}
    for told in learn(load(), options.draft, training_set):
        if told is not None:
            for line in news(state, told):
                print(line, flush=True)
            state = told
    print("\n".join(conclusion(state)))
    return int(not all(state["certificate"]["passed"]))


def news(before: State, state: State) -> list[str]:
    """A line a run, and one where another phase begins."""
    rounds = state["rounds"]
    lines = [f"{state['phase']} …"] if state["phase"] not in (before.get("phase"), "done") else []
    if len(rounds) > len(before.get("rounds", [])):
        seconds, accepted, judged, loss = rounds[-1]
        lines.append(f"{seconds:6.1f} s  α of this run {accepted / max(1, judged):.2f}  loss {loss:.3f}")
    return lines


def conclusion(state: State) -> list[str]:
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


if __name__ == "__main__":
    raise SystemExit(run(report, Options, None, "tools.learn"))
