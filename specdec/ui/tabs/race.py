"""The tab Race: a recorded run plays at once, and the bar above it starts a live run."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr
from markdown_it import MarkdownIt

from ...messages import Refused
from ...methods import DEFAULT_DRAFTER
from .. import recorded
from ..api import add_endpoint
from ..components.drawn import ended, ENGINE, INSTANT, player, PRIVATE, tell
from ..components.examples import add_examples
from ..components.form import add_form, BROWSER, Form
from ..request import check
from ..session import chosen_sentence, session
from ..text import paragraph, strings, translated

# Enables Run and disables Stop at once, in the browser, after a run that is over for any reason.
ENABLE_RUN = "() => [true, false].map((interactive) => ({ __type__: 'update', interactive }))"


def build(tab: gr.Tab) -> tuple[Form, gr.HTML]:
    """Return the form and the player."""
    with gr.Column(elem_classes="sd-race"):
        screen = player(log := recorded.recorded(next(iter(recorded.recorded_names()), "")))
        with gr.Column(elem_classes="sd-console"):
            form = add_form(recorded.without_choices(recorded.settings_of(log)))
            add_examples(screen, form)
        screen.render()
        with gr.Accordion(strings("page")["reading"], open=False, elem_classes="sd-reading"):
            gr.HTML(MarkdownIt().render(paragraph("reading")))  # Gradio's own Markdown comes with 75 kB of scripts
    connect(screen, form)
    add_endpoint()
    return form, screen


def connect(screen: gr.HTML, form: Form) -> None:
    inputs, outputs = [form.engines, *form.fields.values()], [screen, form.notice, form.run, form.stop]
    target, drafter, k = (form.fields[name] for name in ("target", "drafter", "k"))
    advised = screen.tried(take_advice, None, [drafter, k], **INSTANT)
    running = [event(begin, inputs, outputs, **ENGINE, **PRIVATE) for event in (form.run.click, advised.then)]
    for live_run in running:
        live_run.then(partial(ended, preparing=False), None, screen, **INSTANT)
        live_run.then(None, None, [form.run, form.stop], js=ENABLE_RUN, **PRIVATE)
        live_run.then(name_chosen, [target, drafter], drafter, **INSTANT)
    form.stop.click(None, None, None, cancels=running, **INSTANT)


def take_advice(event: gr.EventData) -> tuple[Any, Any]:
    """Set drafter and K after a click on the advice below a slow run."""
    return (gr.skip(), event.k) if event.k else (DEFAULT_DRAFTER, 0)


def begin(engine: Any, *fields: Any) -> Iterator[tuple[Any, ...]]:
    """Yield updates of the page for one live run. A refused input only changes the notice."""
    try:
        if engine == BROWSER:  # the script of that engine did not handle the click
            raise Refused(strings("page")["errors"]["browser"])
        request = check(*fields)
    except Refused as error:
        yield gr.skip(), tell(translated(error.sentence), wrong=True), gr.skip(), gr.skip()
        return
    log, words = "", strings("page")["notice"]
    dim = gr.update(preparing=True)  # the run on screen dims until the new one begins
    yield dim, tell(words["starting"]), gr.update(interactive=False), gr.update(interactive=True)
    if_stopped = {"waiting": words["left"], "fetch": words["kept"], "prepare": words["stopped"]}
    if_stopped |= {"running": words["again"], "read": words["again"]}  # the player says that it was stopped
    with contextlib.closing(session.run(request)) as items:
        for item in items:
            if item.name == "lines":
                log += item.text
                update = gr.update(value=log, preparing=False) if item.text else gr.skip()
                yield update, gr.skip(), gr.skip(), gr.skip()
            else:
                news = tell(item.text, item.name == "error", if_stopped.get(item.name, ""), item.share)
                dim = gr.update(preparing=item.name != "waiting")  # who waits can watch the recording
                yield gr.skip() if log else dim, news, gr.skip(), gr.skip()


def name_chosen(target: Any, drafter: Any) -> Any:
    sentence = chosen_sentence(session.choices.get(str(target)))
    return gr.update(info=sentence) if drafter == DEFAULT_DRAFTER else gr.skip()
