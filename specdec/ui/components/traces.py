"""What a visitor can do with a run: keep it, pass it on, open another, compare. See `assets/page/traces/traces.js`.

Files are checked here and nowhere else; the browser only carries them. What comes back is plain data: sentences, a log
to play, a page to save.
"""

from __future__ import annotations

import contextlib
import functools
import textwrap
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gradio as gr

from ...events import Committed, Started
from ...exposure import limits
from ...figures.stats import Comparison
from ...settings import REQUIRED, SETTINGS
from ...traces import compare as comparing
from ...traces.audit import audit, shown
from ...traces.file import Trace, TraceError
from .. import menu
from ..standalone import standalone
from ..text import bound, sentences, strings, translated
from .drawn import drawn
from .player import pack

MAX_SHOWN = 3  # faults
AROUND = 24  # tokens shown before the place where two texts part, and after it
LARGE = 1_000_000  # characters; a recorded run of this app has a third of that
_desk = threading.Lock()


def traces() -> gr.HTML:
    return drawn(
        "traces/traces",
        elem_id="traces",
        server_functions=[bound(answer) for answer in (open_trace, audit_trace, compare_traces, make_page)],
        rules={name: key for key, name in menu.RULE_NAMES.items()},
        settings=for_links(),
        limit=limits().body // 2,  # JSON escapes its quotes
    )


def for_links() -> list[dict[str, Any]]:
    """What a link to a run's settings holds."""
    usual = {name: None if one.default is REQUIRED else one.default for name, one in SETTINGS.items()}
    return [{"name": n, "usual": usual[n], "main": one.main, "served": one.served} for n, one in SETTINGS.items()]


def answering(question: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Large files one at a time, because they take much memory; others never wait for them.

    What is no trace gets one sentence.
    """

    @functools.wraps(question)
    def answer(sent: Any) -> dict[str, Any]:
        with desk(*(sent if isinstance(sent, list) else [sent])):
            try:
                return question(sent)
            except TraceError as error:
                return {"wrong": True, "said": strings("traces")["refused"].format(reason=translated(error.sentence))}

    return answer


def desk(*texts: Any) -> contextlib.AbstractContextManager[Any]:
    """Where texts are read: one large one at a time."""
    large = any(isinstance(text, str) and len(text) > LARGE for text in texts)
    return _desk if large else contextlib.nullcontext()


@answering
def open_trace(text: Any) -> dict[str, Any]:
    """The run of a file as a log to play, and its audit. A file that fails the audit opens, and says so."""
    trace = recorded(read(text))
    return {"log": pack(trace.dumps()), **audited(trace)}


@answering
def audit_trace(text: Any) -> dict[str, Any]:
    return audited(read(text))


@answering
def make_page(sent: Any) -> dict[str, Any]:
    """Of a run, or of a run and the address of the page that it was made on."""
    text, home = sent if isinstance(sent, list) and len(sent) == 2 else (sent, "")
    return {
        "page": standalone(recorded(read(text)), home if isinstance(home, str) else ""),
        "said": strings("traces")["saved_page"],
    }


@answering
def compare_traces(texts: Any) -> dict[str, Any]:
    """Where the second run first parts from the first one, and both runs' settings and figures."""
    one, other = map(read, texts if isinstance(texts, list) and len(texts) == 2 else ["", ""])
    words = strings("traces")
    parting = comparing.compare(one.events, other.events, one.header.lanes[0])
    start = max(0, (parting.token or 0) - AROUND)
    around = [pieces[start : start + 2 * AROUND] for pieces in parting.tokens]
    cycle = parting.cycles[0] if parting.cycles else 0
    told = {"n": len(parting.tokens[0]), "token": (parting.token or 0) + 1, "cycle": cycle}
    return {
        "said": words["parting"][parting.what].format(**told),
        "at": None if parting.token is None else parting.token - start,
        "cut": start > 0,
        "texts": around if parting.what == "words" else [],
        "rows": [row for row in zip(words["rows"].values(), facts(one), facts(other), strict=True) if differs(row)],
    }


def read(text: Any) -> Trace:
    """TraceError says why a text is no run."""
    if not isinstance(text, str):
        raise TraceError("it is not text")
    trace = Trace.loads(text)
    if not any(isinstance(event, Committed) for event in trace.events):
        raise TraceError("it holds no cycle")
    return trace


def recorded(trace: Trace) -> Trace:
    """No more of it will come."""
    return replace(trace, header=replace(trace.header, source="recorded"))


def audited(trace: Trace) -> dict[str, Any]:
    """The audit in a sentence or two, and its first faults."""
    words, accounts = strings("traces")["audit"], audit(trace.header.lanes, trace.events)
    faults = [translated(str(fault)) for account in accounts for fault in account.faults]
    unchecked = sum(sum(account.unchecked.values()) for account in accounts)
    told = {
        "decisions": sum(account.decisions for account in accounts),
        "draws": sum(account.draws for account in accounts),
        "n": unchecked,
    }
    said = [words["fails" if faults else "holds"].format(**told)]
    said += [words["unchecked"].format(**told)] * (unchecked > 0)
    guided = any(isinstance(event, Started) and event.guided for event in trace.events)
    said += [words["guided"]] * guided
    said += [words["lossy"]] * (not faults and any(account.lossless is False for account in accounts))
    more = [words["more"].format(n=len(faults) - MAX_SHOWN)] * (len(faults) > MAX_SHOWN)
    return {"said": sentences(*said), "wrong": bool(faults), "list": faults[:MAX_SHOWN] + more}


def facts(trace: Trace) -> list[str]:
    """In the order of the words: how it was run, then what came of it."""
    lane, prompt = trace.header.lanes[0], textwrap.shorten(trace.header.prompt, 60, placeholder=" …")
    started = next((event for event in trace.events if isinstance(event, Started) and event.lane == lane), None)
    figures = Comparison.of(trace.events)
    measured = (figures.measured_speedup, figures.speculative.alpha, figures.speculative.tau)
    figured = ["–" if value is None else f"{value:.2f}" for value in measured]
    if started is None:
        return [prompt, *["–"] * 5, *figured]
    params = started.params
    drafter, rule = shown(started.drafter), shown(started.rule)
    return [prompt, drafter, str(started.k), rule, f"{params.temperature:g}", str(params.seed), *figured]


def differs(row: tuple[str, str, str]) -> bool:
    return row[1] != row[2]
