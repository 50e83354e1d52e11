"""Ways in for programs: endpoints beside `run`, and the tools of the MCP server. They speak English.

Whatever is refused is answered with {"error": one sentence that says what to do}. What needs the engine waits for its
turn like a visitor: {} is sent until there is something to tell, and the last answer is the whole one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from typing import Any

import gradio as gr

from ..figures import theory as closed
from ..settings import RunRequest, taking, TOOL
from ..traces import explain as explaining
from ..traces.cycle import cycles
from ..traces.file import Trace, TraceError
from . import session
from .components.traces import parse
from .request import check, InputError, is_number
from .tabs.race import batches, ENGINE

LENGTH = 48  # tokens of a race that somebody asks for without saying how many
TOOLS = ("compare", "explain", "theory")  # of the MCP server
Answers = Iterator[dict[str, Any]]


def endpoints() -> None:
    """Add the endpoints to the page that is being built."""
    gr.api(answering(theory))
    for slow in (compare, explain):
        gr.api(answering(slow), **ENGINE)


def answering(question: Callable[..., Answers]) -> Callable[..., Answers]:
    """Wrap the generator: whatever it refuses becomes an answer of one sentence."""

    @functools.wraps(question)
    def answers(*sent: Any, **named: Any) -> Answers:
        try:
            yield from question(*sent, **named)
        except TraceError as error:
            yield {"error": f"This is no run that can be read: {error}. Send the text of a saved run (.jsonl)."}
        except ValueError as error:
            yield {"error": str(error)}

    made: Any = answers
    # For Gradio's documentation, which knows no type by its name.
    made.__signature__ = inspect.signature(question).replace(return_annotation=dict[str, Any])
    return answers


def theory(alpha: float = 0.8, k: int = 4, c: float = 0.1, v: float = 1.0, o: float = 0.0) -> Answers:
    """What speculative decoding gains by its closed forms (Leviathan et al. 2022, arXiv 2211.17192), without any run.

    Parameters:
        alpha: acceptance rate, 0 to 1: of the drafted tokens that the target judges, the share that it keeps
        k: tokens drafted per cycle, 0 to 64
        c: cost of drafting one token, in plain decoding steps of the target, 0 to 100
        v: cost of the target's check of a whole draft, 0.01 to 100; 1 where a pass over a few tokens costs as one
        o: overhead of a cycle, 0 to 100

    Returns:
        expected_tokens per cycle, speedup, best_k (0: do not speculate), best_speedup, break_even_alpha above which
        one draft pays (above 1: never), accepted_distribution: the chances that 0 to k drafts are kept
    """
    alpha, k = within("alpha", alpha, 0, 1), within("k", k, 0, 64, int)
    c, v, o = within("c", c, 0, 100), within("v", v, 0.01, 100), within("o", o, 0, 100)
    best = closed.best_k(alpha, c, v, o)
    yield {
        "expected_tokens": round(closed.expected_tokens(alpha, k), 6),
        "speedup": round(closed.speedup(alpha, k, c, v, o), 6),
        "best_k": best,
        "best_speedup": round(closed.speedup(alpha, best, c, v, o), 6) if best else 1.0,
        "break_even_alpha": round(closed.break_even(c, v, o), 6),
        "accepted_distribution": [round(chance, 6) for chance in closed.accepted_distribution(alpha, k)],
    }


@taking(TOOL, max_tokens=LENGTH)
def compare(**settings: Any) -> Answers:
    """Run a short race now: speculative decoding of a prompt beside plain decoding, with small models on this machine.

    The models know old stories, Python code and simple facts, in English. The same settings give the same text again.

    Parameters:
        {settings}

    Returns:
        texts by lane, same_text (at temperature 0 it must be), figures, machine_busy, cycles: what became of drafts
    """
    run, cut = yield from raced(check(**settings))
    drafts = [
        {"cycle": one.number, "tokens": [f"{piece!r} {status}".rstrip() for piece, status in one.shown()]}
        for one in cycles(run.events, run.header.lanes[0])
    ]
    yield run.summary() | {"cycles": drafts} | ({"notice": cut} if cut else {})


@taking(TOOL, prompt="", max_tokens=LENGTH)
def explain(trace: str = "story", cycle: int = 0, position: int = 0, **settings: Any) -> Answers:
    """Explain one decision of a run: a drafted token, p, q, their ratio, the coin, what happened to it and why.

    Of a recorded run or a saved trace; where a prompt is given, of the run that `compare` makes with these settings.

    Parameters:
        trace: a recorded run (story, code or facts), or the NDJSON text of a saved one; unused where a prompt is given
        cycle: which cycle, from 1 on; 0 looks for the first rejection
        position: which draft of the cycle, from 1 on; 0 takes the first that was rejected, or else the first
        {settings}

    Returns:
        said: a paragraph; token, status, rule, p, q, ratio p/q, chance min(1, p/q), u: the coin, None where none was
    """
    cycle, position = within("cycle", cycle, 0, 10_000, int), within("position", position, 0, 10_000, int)
    if settings["prompt"] != "":
        run, _ = yield from raced(check(**settings))
        yield asdict(explaining.explain(run, cycle, position))
        return
    text = session.recorded(trace) if isinstance(trace, str) and trace in session.recorded_names() else trace
    yield asdict(explaining.explain(parse(text), cycle, position))


def raced(request: RunRequest) -> Generator[dict[str, Any], None, tuple[Trace, str]]:
    """Return the run and why it was cut, if it was. Yield {} meanwhile, so that a client that left is noticed."""
    log = cut = ""
    for news in batches(session.run(request)):
        if news.kind == "error" or (news.kind == "cut" and not log):
            raise InputError(news.text)
        cut = news.text if news.kind == "cut" else cut
        log += news.text if news.kind == "lines" else ""
        yield {}
    return Trace.loads(log), cut


def within(name: str, value: Any, low: float, most: float, type_: type = float) -> Any:
    """Return the number. InputError where it is none, or out of bounds."""
    if not is_number(value) or not low <= value <= most or value != type_(value):
        kind = "whole number" if type_ is int else "number"
        raise InputError(f"{name} must be a {kind} from {low:g} to {most:,g}.")
    return type_(value)
