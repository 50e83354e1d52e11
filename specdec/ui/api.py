"""Ways in for programs: endpoints beside `run`, and the tools of the MCP server. They speak English.

Whatever is refused is answered with {"error": one sentence that says what to do}. What needs the engine waits for its
turn like a visitor: {} is sent until there is something to tell, and the last answer is the whole one.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gradio as gr

from ..figures import theory as closed
from ..settings import RunRequest, taking, TOOL
from ..traces import audit as auditing
from ..traces import explain as explaining
from ..traces.cycle import cycles
from ..traces.file import Trace, TraceError
from . import gradio_private, session
from .components.traces import desk, read
from .request import check, check_certificate, InputError, is_number
from .tabs.race import batches, ENGINE

MAX_K, MAX_COST, MAX_FAULTS = 64, 100.0, 20
MAX_PLACE = 10_000  # of a cycle, or of a draft in it: a trace may be longer than a run of this page
LENGTH = 48  # tokens of a race that somebody asks for without saying how many
TOOLS = ("compare", "explain", "theory")  # of the MCP server
Answer = dict[str, Any]


def endpoints() -> None:
    """On the page that is being built."""
    for quick in (theory, summarise, audit):
        gr.api(answering(quick))
    for slow in (compare, explain, certify):
        gr.api(answering(slow), **ENGINE)


def answer_only_tools(app: Any) -> None:
    """No model calls anything else; and the MCP server's log has no word of what it was sent."""
    if gradio_private.answer_only_tools(gradio_private.demo_of(app), TOOLS):
        # A handler there comes before those of the root, and sees what is logged below; the filter what has no name.
        logging.getLogger("mcp").addHandler(Wordless())
        logging.getLogger().addFilter(Wordless().filter)


class Wordless(logging.Handler):
    """Leaves of a record where the MCP library made it, and not what it says: whole requests are written there."""

    def emit(self, record: logging.LogRecord) -> None:
        self.filter(record)
        if logging.lastResort and not logging.getLogger().handlers:  # which Python takes where there is no other
            logging.lastResort.handle(record)

    def filter(self, record: logging.LogRecord) -> bool:
        if "mcp" in Path(record.pathname).parts:
            failed = record.exc_info and record.exc_info[0]
            record.msg = f"MCP, {record.module}, line {record.lineno}: {failed.__name__ if failed else 'see there'}"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


def has_mcp() -> bool:
    """Whether `gradio[mcp]` is installed: the page is then an MCP server, too, at /gradio_api/mcp/."""
    return importlib.util.find_spec("mcp") is not None


def answering(question: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, or generator; whatever it refuses is an answer of one sentence."""

    @functools.wraps(question)
    def answer(*sent: Any, **named: Any) -> Answer:
        try:
            return question(*sent, **named)
        except ValueError as error:
            return refused(error)

    @functools.wraps(question)
    def answers(*sent: Any, **named: Any) -> Iterator[Answer]:
        try:
            yield from question(*sent, **named)
        except ValueError as error:
            yield refused(error)

    told: Any = answers if inspect.isgeneratorfunction(question) else answer
    # For Gradio's documentation, which knows no type by its name.
    told.__signature__ = inspect.signature(question).replace(return_annotation=Answer)
    return told


def refused(error: ValueError) -> Answer:
    if isinstance(error, TraceError):
        return {"error": f"This is no run that can be read: {error}. Send the text of a saved run (.jsonl)."}
    return {"error": str(error)}


def theory(alpha: float = 0.8, k: int = 4, c: float = 0.1, v: float = 1.0, o: float = 0.0) -> Answer:
    """What speculative decoding gains by its closed forms (Leviathan et al. 2022, arXiv 2211.17192), without any run.

    Costs are in units of one plain decoding step of the target. The forms take each draft as accepted with the same
    chance, on its own.

    Parameters:
        alpha: acceptance rate, 0 to 1: of the drafted tokens that the target judges, the share that it keeps
        k: tokens drafted per cycle, 0 to 64
        c: cost of drafting one token, 0 to 100
        v: cost of the target's check of a whole draft, 0.01 to 100; 1 where a pass over a few tokens costs as one
        o: overhead of a cycle, 0 to 100

    Returns:
        expected_tokens per cycle (the target's own included)
        speedup over plain decoding
        best_k (0: do not speculate) with its best_speedup
        break_even_alpha above which one draft pays (above 1: never)
        accepted_distribution: the chances that 0 to k drafts are kept
    """
    alpha, k = between("alpha", alpha, 0.0, 1.0), whole("k", k, 0, MAX_K)
    c, v, o = between("c", c, 0.0, MAX_COST), between("v", v, 0.01, MAX_COST), between("o", o, 0.0, MAX_COST)
    best = closed.best_k(alpha, c, v, o)
    told = {
        "expected_tokens": closed.expected_tokens(alpha, k),
        "speedup": closed.speedup(alpha, k, c, v, o),
        "best_k": best,
        "best_speedup": closed.speedup(alpha, best, c, v, o) if best else 1.0,
        "break_even_alpha": closed.break_even(c, v, o),
    }
    chances = closed.accepted_distribution(alpha, k)
    return {name: round(value, 6) for name, value in told.items()} | {
        "accepted_distribution": [round(chance, 6) for chance in chances]
    }


def summarise(trace: str) -> Answer:
    """The settings, texts and figures of a run, from its trace: what `run` streamed, or the text of a saved run.

    Parameters:
        trace: NDJSON text of at most 16 MB: a header, then one event a line

    Returns:
        settings
        texts by lane, and whether they are the same_text
        figures: alpha, tau, measured_speedup, tokens_per_second, draft_cost, verify_cost …; None where not reported
        machine_busy: whether the speed-up cannot be trusted and is to be measured again
    """
    with desk(trace):
        return read(trace).summary()


def audit(trace: str) -> Answer:
    """Whether a run is true to itself: every decision and every draw of its trace is done again.

    Parameters:
        trace: NDJSON text of at most 16 MB: a header, then one event a line

    Returns:
        holds
        lanes: of each, what was done again, its faults (20 at most; fault_count counts all), and what is not reported
    """
    with desk(trace):
        run = read(trace)
        accounts = auditing.audit(run.header.lanes, run.events)
        return {"holds": auditing.holds(accounts), "lanes": list(map(account, accounts))}


def account(one: auditing.LaneAudit) -> Answer:
    told = ("lane", "rule", "lossless", "cycles", "tokens", "decisions", "draws", "coins")
    return {name: getattr(one, name) for name in told} | {
        "fault_count": len(one.faults),
        "faults": [str(fault) for fault in one.faults[:MAX_FAULTS]],
        "unchecked": {str(what): n for what, n in one.unchecked.items()},
    }


@taking(TOOL, max_tokens=LENGTH)
def compare(**settings: Any) -> Iterator[Answer]:
    """Run a short race now: speculative decoding of a prompt beside plain decoding, with small models on this machine.

    The models know old stories, Python code and simple facts, in English. The same settings give the same text again.

    Parameters:
        {settings}

    Returns:
        texts by lane, and whether they are the same_text (at temperature 0 they must be)
        figures: alpha, tau, measured_speedup, tokens_per_second …
        machine_busy: whether the speed-up cannot be trusted and is to be measured again
        cycles: what became of every draft
    """
    run, cut = yield from raced(check(**settings))
    drafts = [
        {"cycle": one.number, "tokens": [f"{piece!r} {status}".rstrip() for piece, status, _ in one.shown()]}
        for one in cycles(run.events, run.header.lanes[0])
    ]
    yield run.summary() | {"cycles": drafts} | ({"notice": cut} if cut else {})


@taking(TOOL, prompt="", max_tokens=LENGTH)
def explain(trace: str = "story", cycle: int = 0, position: int = 0, **settings: Any) -> Iterator[Answer]:
    """Explain one decision of a run: a drafted token, p, q, their ratio, the coin, what happened to it and why.

    Of a recorded run or a saved trace; where a prompt is given, of the run that `compare` makes with these settings.

    Parameters:
        trace: a recorded run (story, code or facts), or the NDJSON text of a saved one; unused where a prompt is given
        cycle: which cycle, from 1 on; 0 looks for the first rejection
        position: which draft of the cycle, from 1 on; 0 takes the first that was rejected, or else the first
        {settings}

    Returns:
        said: the explanation, a paragraph
        token, status, rule, p, q, ratio p/q, chance min(1, p/q)
        u: the coin, None where none was tossed
    """
    cycle, position = whole("cycle", cycle, 0, MAX_PLACE), whole("position", position, 0, MAX_PLACE)
    if settings["prompt"] != "":
        run, _ = yield from raced(check(**settings))
        yield asdict(explaining.explain(run, cycle, position))
        return
    text = session.recorded(trace) if isinstance(trace, str) and trace in session.recorded_names() else trace
    with desk(text):
        yield asdict(explaining.explain(read(text), cycle, position))


def certify(
    pair: str = "toy", mistake: str = "", draws: int = 5_000, seed: int = 0, text: str = ""
) -> Iterator[Answer]:
    """A certificate that decoding is lossless, or that a planted mistake is not; each answer is the whole of it so far.

    Parameters:
        pair: toy (two small tables) or embedded (the models)
        mistake: empty for the shipped rule; a wrong name is answered with the list of the pair's known mistakes
        draws: texts to sample: 100, 1000, 5000, 10000 or 20000
        seed: of the sample
        text: where the embedded models are certified

    Returns:
        closed: the exact distribution of the next token against the target's; lossless if error is at most 1e-9
        greedy: how many tokens are equal to plain decoding's, of how many
        sampled: [draws, by length of text], each total variation, what plain decoding stays below, G, its degrees of
        freedom, the chance of such a G, and how many draws the target rules out
    """
    told: Answer = {}
    for news in session.certify(check_certificate(pair, mistake, draws, seed, text)):
        if news.kind == "error":
            raise InputError(news.text)
        if news.kind == "lines" and news.text:
            told = json.loads(news.text)
        yield told | ({"notice": news.text} if news.kind == "cut" else {})


def raced(request: RunRequest) -> Generator[Answer, None, tuple[Trace, str]]:
    """The run once it is over, and why it was cut, if it was; {} meanwhile, where a client that left is noticed."""
    log = cut = ""
    for news in batches(session.run(request)):
        if news.kind == "error":
            raise InputError(news.text)
        if news.kind == "cut":
            cut = news.text
        elif news.kind == "lines":
            log += news.text
        yield {}
    if cut and not log:
        raise InputError(cut)
    return Trace.loads(log), cut


def between(name: str, value: Any, low: float, high: float) -> float:
    if not is_number(value) or not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}.")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    if not is_number(value) or value != int(value) or not low <= value <= high:
        raise InputError(f"{name} must be a whole number from {low:,} to {high:,}.")
    return int(value)
