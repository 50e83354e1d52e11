"""Answer `assets/page/traces/traces.js`, which saves, shares and opens runs."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gradio as gr

from ...events import Started
from ...exposure import limits
from ...settings import REQUIRED, SETTINGS
from ...traces.audit import audit
from ...traces.file import escaped, Trace, TraceError
from .. import menu
from ..browser import inline_modules
from ..gateway.gradio_private import fonts
from ..text import as_json, asset, bind_language, filled, language, sentences, strings, TAGS, translated
from .drawn import drawn, player_words

MAX_SHOWN = 3  # how many faults of an audit are listed
TITLE = 80  # characters of the prompt in the title of a page that plays a run
ADDRESS = re.compile(r"https?://[^\s\"'<>]{1,500}")


def traces() -> gr.HTML:
    return drawn(
        "traces/traces",
        elem_id="traces",
        server_functions=[bind_language(answer) for answer in (open_trace, audit_trace, make_page)],
        rules=menu.RULE_KEYS,
        settings=for_links(),
        limit=limits().body // 2,  # half, because JSON escapes each quote of a trace
    )


def for_links() -> list[dict[str, Any]]:
    usual = {name: None if setting.default is REQUIRED else setting.default for name, setting in SETTINGS.items()}
    return [{"name": name, "usual": usual[name], "main": setting.main} for name, setting in SETTINGS.items()]


def answer_trace_errors(question: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    @functools.wraps(question)
    def answer(sent: Any) -> dict[str, Any]:
        try:
            return question(sent)
        except TraceError as error:
            return {"wrong": True, "said": strings("traces")["refused"].format(reason=translated(error.sentence))}

    return answer


@answer_trace_errors
def open_trace(text: Any) -> dict[str, Any]:
    """Return the run of a file as a log to play, with its audit, which it may fail."""
    trace = parse(text)
    return {"log": escaped(trace.dumps()), **audit_answer(trace)}


@answer_trace_errors
def audit_trace(text: Any) -> dict[str, Any]:
    return audit_answer(parse(text))


@answer_trace_errors
def make_page(sent: Any) -> dict[str, Any]:
    """Make a page that plays a run. `sent` is the run, and the address of the sender's page."""
    if not isinstance(sent, list) or len(sent) != 2 or not isinstance(sent[1], str):
        raise TraceError("it is not text")
    text, home = sent
    return {"page": standalone(parse(text), home), "said": strings("traces")["saved_page"]}


def standalone(trace: Trace, home: str = "") -> str:
    """Write one HTML file that plays the run without any request, and links to `home`, if that is a web address."""
    data = {
        "player": {"value": trace.dumps(), "words": as_json(player_words())},
        "step": {"words": as_json(strings("step"))},
    }
    return filled(
        "traces/standalone.html",
        words=strings("page"),
        language=TAGS[language()],
        heading=" ".join(trace.header.prompt[:TITLE].split()),
        home=home if ADDRESS.fullmatch(home) else "",
        style=fonts() + asset("shared/style.css") + asset("race/race.css") + asset("step/step.css"),
        data=escaped(as_json(data)),  # a token `</script>` cannot become markup
        modules=inline_modules("race/", "step/", "shared/arrival"),
    )


def parse(text: Any) -> Trace:
    """Read a run of at least one cycle, and mark it as recorded. Raises TraceError."""
    if not isinstance(text, str):
        raise TraceError("it is not text")
    trace = Trace.loads(text)
    trace.check_not_empty()
    return replace(trace, header=replace(trace.header, source="recorded"))


def audit_answer(trace: Trace) -> dict[str, Any]:
    words, accounts = strings("traces")["audit"], audit(trace.header.lanes, trace.events)
    faults = [translated(str(fault)) for account in accounts for fault in account.faults]
    counts = {
        "decisions": sum(account.decisions for account in accounts),
        "draws": sum(account.draws for account in accounts),
        "n": sum(sum(account.unchecked.values()) for account in accounts),
    }
    notes = {
        "unchecked": counts["n"] > 0,
        "guided": any(isinstance(event, Started) and event.guided for event in trace.events),
        "lossy": not faults and any(account.lossless is False for account in accounts),
    }
    verdict = ["fails" if faults else "holds", *(name for name, holds in notes.items() if holds)]
    more = [words["more"].format(n=len(faults) - MAX_SHOWN)] if len(faults) > MAX_SHOWN else []
    said = sentences(*(words[name].format(**counts) for name in verdict))
    return {"said": said, "wrong": bool(faults), "list": faults[:MAX_SHOWN] + more}
