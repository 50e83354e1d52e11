"""Add the examples of the tab Race: a click plays the recorded run of one, or fills in a text that has none."""

from functools import partial
from html import escape
from typing import Any

import gradio as gr

from ...families import presets
from ...methods import DEFAULT_DRAFTER, EMBEDDED
from ...settings import SETTINGS
from ...traces.file import escaped
from .. import menu, recorded
from ..request import from_link
from ..text import example_name, kind_of, of_drafters, prompts, questions, strings
from .drawn import INSTANT, tell
from .form import filled_in, Form


def add_examples(screen: gr.HTML, form: Form) -> None:
    """Fill a row of texts to continue and one of questions. That which fits the target is visible."""
    fields, rows = form.fields, form.pills
    target, drafter = fields["target"], fields["drafter"]
    inputs, outputs = [fields["prompt"], drafter, target], [screen, form.notice, *fields.values()]
    label = escape(strings("page")["settings"]["try"])
    for answers, row in enumerate(rows):
        row.visible = menu.answers(target.value) == bool(answers)
        with row:
            gr.HTML(html_template=f'<span class="sd-sub">{label}</span>', apply_default_css=False)
            for kind in (name for name in prompts() if (name in questions()) == bool(answers)):
                pill = gr.Button(example_name(kind), size="sm", elem_classes="sd-pill")
                pill.click(partial(show, kind), inputs, outputs, **INSTANT)
    target.change(fitting, target, list(rows), **INSTANT)
    drafter.input(show_drafter, inputs, outputs, **INSTANT)
    screen.opened(fill_in_opened, None, list(fields.values()), **INSTANT)


def fill_in_opened(event: gr.EventData) -> list[Any]:
    """Fill in the settings of a visitor's file, if they are allowed here."""
    settings = recorded.settings_of(event.head)
    return filled_in(from_link({name: str(value) for name, value in settings.items()})[0])


def fitting(target: Any) -> list[Any]:
    answers = isinstance(target, str) and menu.answers(target)
    return [gr.update(visible=not answers), gr.update(visible=answers)]


def show(kind: str, prompt: str, drafter: str, target: str = EMBEDDED) -> list[Any]:
    """Play the recorded run of this kind's first example. If there is none, or it is on show, fill in an example."""
    texts, recorded_with, ours = prompts()[kind], menu.target_of(kind), presets.parse(target).kind == "embedded"
    other_model = not ours and target != recorded_with and menu.answers(target) == menu.answers(recorded_with)
    shown = prompt == texts[0] and len(texts) > 1
    if not other_model and kind in recorded.recorded_names() and not shown:
        return played(kind, drafter)
    settings = {"prompt": texts[(texts.index(prompt) + 1) % len(texts)] if prompt in texts else texts[0]}
    if menu.answers(target) != menu.answers(recorded_with):
        settings |= {"target": recorded_with, "drafter": DEFAULT_DRAFTER}
    return [gr.update(preparing="unrecorded"), tell(strings("page")["notice"]["not_recorded"]), *filled_in(settings)]


def show_drafter(prompt: str, drafter: str, target: str) -> list[Any]:
    """Play another drafter's recording of a recorded prompt, if there is one."""
    kind = kind_of(prompt)
    is_recorded = kind in recorded.recorded_names() and prompt == prompts()[kind][0] and target == menu.target_of(kind)
    if is_recorded and recorded.recorded(kind, drafter):
        return played(kind, drafter)
    return [gr.skip()] * (2 + len(SETTINGS))


def played(kind: str, drafter: str) -> list[Any]:
    """Play the drafter's recording, or else the usual one's, and say so."""
    words, names, log = strings("page")["notice"], of_drafters("name"), recorded.recorded(kind, drafter)
    remark = ""
    if not log and drafter != DEFAULT_DRAFTER:
        usual = names[menu.drafter_of(kind)]
        remark = words["other_trace"].format(drafter=names.get(drafter, drafter), shown=usual)
    log = log or recorded.recorded(kind)
    if not log:
        return [gr.skip(), tell(words["no_trace"], wrong=True), *filled_in({})]
    settings = recorded.settings_of(log)
    return [
        gr.update(value=escaped(log), preparing=False),
        tell(remark),
        *filled_in(recorded.without_choices(settings) if drafter == DEFAULT_DRAFTER else settings),
    ]
