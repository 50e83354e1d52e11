"""Build the page: the head, the tabs, and what a link to the page opens and fills in."""

import html
from importlib import import_module
from typing import Any

import gradio as gr

from ..exposure import limits
from . import menu, recorded
from .components import engine
from .components.drawn import drawn, handler
from .components.section import notice, tell
from .gateway import gradio_private
from .gateway.visitors import has_queue_priority
from .request import from_link, tab_of_link
from .session import session
from .tabs import labels, race, TABS
from .tabs.guide import tour
from .text import bind_language, ENGLISH, filled, language, LANGUAGES, sentences, speaking, strings, TAGS


def build(teaching: bool = False) -> gr.Blocks:
    """Build a page for each language, at the paths of `gateway/language.py`.

    `teaching` adds the teacher's panel, which is shown only with the secret of the class (`classroom.py`).
    """
    demo = gr.Blocks(title=strings("page")["title"], analytics_enabled=False, delete_cache=(600, 1800))
    for name, label in LANGUAGES.items():
        with speaking(name):
            page(demo if name == ENGLISH else demo.route(label, name, show_in_navbar=False), teaching)
            gradio_private.wrap(demo, bind_language)
    demo.queue(max_size=64, default_concurrency_limit=1, api_open=False)
    gradio_private.guard_queue(demo)
    return demo


def page(demo: gr.Blocks, teaching: bool) -> None:
    words = strings("page")
    built: dict[str, Any] = {}
    with demo:
        drawn("shared/access", words=words["skip"], elem_id="access")
        head(words)
        if teaching:
            drawn(
                "class/teacher",
                words=strings("class"),
                elem_id="class",
                quiz=strings("guide")["quiz"],
                server_functions=[recorded.sampled_run],
            )
        link_notice = notice("link-notice")  # above all tabs, because a link can open any tab
        with gr.Tabs(elem_classes="sd-tabs", overflow_behavior="wrap") as tabs:
            for name, label in labels().items():
                with gr.Tab(label, id=name, elem_id=name) as tab:
                    built[name] = import_module(f".tabs.{name}", __package__).build(tab)
        tour()
        api_link = f'<a href="?view=api">{html.escape(words["api"])}</a>'
        drawn("shared/foot", words={}, template=f'<footer class="sd-end">{api_link}</footer>')
        fields, engines, screen = built["race"]
        keep(demo, fields, screen)
        race.in_browser([field.value for field in fields.values()], engines.value)
        follow_links(demo, tabs, fields, engines, link_notice)


def keep(demo: gr.Blocks, fields: dict[str, Any], screen: gr.HTML) -> None:
    """Keep settings and tab in the page's address, and the run that `screen` shows in the browser tab's storage."""
    usual = {name: field.value for name, field in fields.items()}
    drawn("shared/keep", words={}, names=list(fields), usual=usual, tabs=list(TABS), rules=menu.RULE_KEYS)
    changes = [field.change for field in fields.values()]
    gr.on(changes, None, [*fields.values()], None, js=handler("changed", event="sd-settings"), **race.INSTANT)
    demo.load(None, None, [fields["prompt"], screen], js=handler("restore"), **race.INSTANT)


def follow_links(demo: gr.Blocks, tabs: gr.Tabs, fields: dict[str, Any], engines: gr.Radio, line: gr.HTML) -> None:
    """Let `?tab=step` open a tab and `?drafter=…` fill in a setting. A notice above the tabs names wrong values."""

    def follow(request: gr.Request) -> list[Any]:
        session.warm_up()
        query = request.query_params
        opened, no_tab = tab_of_link(query, TABS)
        settings, trouble = from_link(query, fields["target"].value)
        wrong = sentences(no_tab, trouble)
        return [
            gr.update(selected=opened) if opened else gr.skip(),
            tell(wrong, wrong=True) if wrong else gr.skip(),
            engine.for_visitor(has_queue_priority()),
            *race.filled_in(settings),
        ]

    done = demo.load(follow, None, [tabs, line, engines, *fields.values()], **race.INSTANT)
    if limits().in_browser:  # sent again: Gradio loses updates while it first draws a field
        done = done.then(lambda: engine.for_visitor(has_queue_priority()), None, engines, **race.INSTANT)
    done.then(None, engines, None, js=engine.ENGINE_CHOSEN, **race.INSTANT)


def head(words: dict[str, Any]) -> None:
    template = filled("shared/head.html", words=words, languages=LANGUAGES, tags=TAGS, here=language())
    title, tag = words["title"], TAGS[language()]
    drawn("shared/head", words={}, template=template, elem_id="head", language=tag, title=title)
