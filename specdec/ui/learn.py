"""The section *Learn here* of the tab Methods: a draft model trains on the rejections of its own runs, for a minute."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from ..exposure import limits
from . import charts, results, session
from .components.section import choice, lines, notice, plot, table, tell
from .request import check_learning, InputError, pupils
from .tabs.race import ENGINE, over, PRIVATE
from .text import prompts, strings, teaching

SECONDS_A_CHART = 1.5  # each is drawn by the browser anew
SMOOTH = 5  # runs whose α the line puts together
DIGITS = (None, 2, None, 2, 2, 0)  # of the table's columns
State = dict[str, Any]


def section() -> Callable[[gr.State], None]:
    """What is in it. Who knows which prompts the visitor ran calls what this returns, and it can be pressed."""
    words = strings("learn")
    with gr.Row(elem_classes="sd-settings"):
        with gr.Column(elem_classes="sd-rail", scale=2, min_width=280):
            kind = choice(words["kind"], [(results.domain(name), name) for name in first("code", teaching())])
        with gr.Column(elem_classes="sd-rail", scale=3, min_width=280):
            drafter = choice(words["drafter"], [(results.method(name), name) for name in pupils()])
    with gr.Row(elem_classes="sd-go"):
        run = gr.Button(words["run"], variant="primary", elem_id="learn")
        stop = gr.Button(words["stop"], interactive=False, elem_id="unlearn")
    line = notice("learn-notice", words["empty"])
    badge = lines(elem_classes="sd-live-badge")
    with gr.Row(elem_classes="sd-beside"):
        with gr.Column(scale=3, min_width=300):
            chart = plot("learn")
        with gr.Column(scale=2, min_width=280):
            told = lines(elem_classes="sd-findings", elem_id="learnt")
    figures = table(words["table"], words["columns"], DIGITS, [], elem_id="learn-table")

    def connect(ran: gr.State) -> None:
        places = [line, badge, chart, told, figures, run, stop]
        running = run.click(learned, [kind, drafter, ran], places, **ENGINE, **PRIVATE)
        running.then(over, None, [line, run, stop], queue=False, **PRIVATE)
        stop.click(None, None, None, cancels=running, queue=False, **PRIVATE)

    return connect


def lead() -> str:
    """What it is, and how long it takes at most."""
    allowed = limits()
    return strings("learn")["lead"].format(seconds=round(allowed.learning), after=round(allowed.after_learning))


def first(name: str, names: Any) -> list[str]:
    """All of them, that one before the others."""
    return sorted(names, key=lambda one: one != name)


def learned(kind: Any, drafter: Any, ran: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of the page for one minute of learning, its examination and its certificate."""
    same, words = gr.skip(), strings("learn")
    try:
        request = check_learning(kind, drafter, unasked(ran, kind))
    except InputError as error:
        yield tell(str(error), wrong=True), *[same] * 6
        return
    badge = [words["badge"], sources(len(request.own), kind)]
    yield tell(""), badge, None, [], [], gr.update(interactive=False), gr.update(interactive=True)
    drawn, state, began = 0.0, State(), time.monotonic()
    for item in session.learn(request):
        if item.kind in ("error", "cut"):
            yield tell(item.text, wrong=item.kind == "error"), *[same] * 6
            return
        if item.kind == "done":
            said = words["done"].format(seconds=round(time.monotonic() - began))
            yield tell(said), same, chart(state), conclusion(state), rows(state), same, same
        elif item.kind != "lines":
            yield tell(item.text, stopped=words["stopped"]), *[same] * 6
        elif not item.text:
            yield (same,) * 7  # a place where a visitor who left is noticed
        else:
            state = json.loads(item.text)
            if state["phase"] == "done":  # its news follows
                continue
            due = time.monotonic() - drawn > SECONDS_A_CHART
            drawn = time.monotonic() if due else drawn
            news = chart(state) if due and state["rounds"] else same
            yield progress(state), same, news, same, rows(state) if due else same, same, same


def unasked(ran: Any, kind: Any) -> Any:
    """Without the prompts that it will be examined with."""
    asked = prompts().get(kind, []) if isinstance(kind, str) else []
    return [prompt for prompt in ran if prompt not in asked] if isinstance(ran, list) else ran


def sources(own: int, kind: str) -> str:
    words = strings("learn")
    named = {"own": own, "page": len(teaching()[kind]), "kind": results.domain(kind), "asked": len(prompts()[kind])}
    return words["own" if own else "page"].format(**named)


def progress(state: State) -> Any:
    words = strings("learn")
    runs, left = len(state["rounds"]), math.ceil(state["left"])
    said = words[state["phase"]].format(runs=runs, judged=state["judged"], rejected=state["rejected"], left=left)
    share = 1.0 - state["left"] / limits().learning if state["phase"] == "learning" else 1.0
    return tell(said, stopped=words["stopped"], share=min(0.999, max(0.0, share)))


def chart(state: State) -> Any:
    """α of every run by the draft as it was then, and of a few runs together."""
    rounds = state["rounds"]
    if not rounds:
        return gr.skip()
    seconds = [one[0] for one in rounds]
    together = [rounds[max(0, i - SMOOTH + 1) : i + 1] for i in range(len(rounds))]
    return charts.learning(seconds, [rate([one]) for one in rounds], list(map(rate, together)), strings("learn"))


def rate(rounds: list[list[float]]) -> float | None:
    judged = sum(one[2] for one in rounds)
    return sum(one[1] for one in rounds) / judged if judged else None


def rows(state: State) -> Any:
    """Before and after, on prompts that taught nothing."""
    words, figures = strings("learn"), state.get("figures")
    if not figures:
        return gr.skip()
    return [
        [words[lane], told["alpha"], words["interval"].format(low=f"{low:.2f}", high=f"{high:.2f}"), told["tau"],
         told["measured_speedup"], told["judged"]]
        for lane, told in figures.items() for low, high in [told["interval"]]
    ]  # fmt: skip


def conclusion(state: State) -> list[str]:
    """One sentence of what was gained, one of speed, the certificate, and that it is forgotten."""
    words, figures, certificate = strings("learn"), state.get("figures"), state.get("certificate")
    if not figures or not certificate:
        return []
    before, after = figures["before"], figures["after"]
    named = {f"{name}_{lane}": f"{told[name] or 0:.2f}" for lane, told in figures.items()
             for name in ("alpha", "tau", "measured_speedup")}  # fmt: skip
    faster = (after["measured_speedup"] or 0.0) >= 1.0
    gain = words[state["verdict"] if state["rounds"] else "nothing"]
    gained = gain.format(judged=before["judged"] + after["judged"], **named)
    return [
        gained,
        words["faster" if faster else "slower"].format(**named),
        *certified(certificate),
        words["forgotten"],
    ]


def certified(told: State) -> list[str]:
    """What the certificate says, and its three checks."""
    words = strings("learn")["law"]
    closed, greedy, (_, _, g, degrees, tail, _) = told["closed"], told["greedy"], told["tests"][-1]
    checks = [
        words["closed"].format(
            text=told["text"], error=words["no_law"] if closed["error"] is None else f"{closed['error']:.0e}"
        ),
        words["sampled"].format(
            draws=f"{told['done']:,}", g="∞" if g is None else f"{g:.0f}", degrees=f"{degrees:.0f}",
            chance=words["chance"].format(p=f"{tail:.2g}") if tail < 1.0 else words["usual"],
        ),
        words["greedy"].format(**greedy),
    ]  # fmt: skip
    marked = [f"{'✓' if passed else '✗'} {check}" for passed, check in zip(told["passed"], checks, strict=True)]
    return [words["good" if all(told["passed"]) else "bad"], *marked]
