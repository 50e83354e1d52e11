"""Build the page: the head, the tabs, and what a link to the page opens and fills in."""

import html
from importlib import import_module
from typing import Any

import gradio as gr

from ..exposure import limits
from . import browser, menu, recorded
from .components import form
from .components.drawn import drawn, handler, INSTANT, notice, tell
from .gateway import gradio_private
from .request import from_link
from .session import session
from .tabs import labels, TABS
from .tabs.guide import tour
from .text import bind_language, ENGLISH, filled, language, LANGUAGES, sentences, speaking, strings, TAGS


def build(teaching: bool = False) -> gr.Blocks:
    """Build a page for each language. `teaching` adds the teacher's panel."""
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
        tag, title = TAGS[language()], words["title"]
        template = filled("shared/head.html", words=words, languages=LANGUAGES, tags=TAGS, here=language())
        drawn("shared/head", words={}, template=template, elem_id="head", language=tag, title=title)
        if teaching:
            lesson: dict[str, Any] = {"quiz": strings("guide")["quiz"], "server_functions": [recorded.sampled_run]}
            drawn("class/teacher", words=strings("class"), elem_id="class", **lesson)
        link_notice = notice("link-notice")  # above all tabs, because a link can open any tab
        with gr.Tabs(elem_classes="sd-tabs", overflow_behavior="wrap") as tabs:
            for name, label in labels().items():
                with gr.Tab(label, id=name, elem_id=name) as tab:
                    built[name] = import_module(f".tabs.{name}", __package__).build(tab)
        tour()
        api_link = f'<a href="?view=api">{html.escape(words["api"])}</a>'
        drawn("shared/foot", words={}, template=f'<footer class="sd-end">{api_link}</footer>')
        live, screen = built["race"]
        keep(demo, live.fields, screen)
        if browser.offered():
            compute_in_browser(live)
        follow_links(demo, tabs, live, link_notice)


def keep(demo: gr.Blocks, fields: dict[str, Any], screen: gr.HTML) -> None:
    """Keep settings and tab in the page's address, and the shown run in the browser's storage."""
    usual = {name: field.value for name, field in fields.items()}
    drawn("shared/keep", words={}, names=list(fields), usual=usual, tabs=list(TABS), rules=menu.RULE_KEYS)
    changes = [field.change for field in fields.values()]
    gr.on(changes, None, [*fields.values()], None, js=handler("changed", event="sd-settings"), **INSTANT)
    demo.load(None, None, [fields["prompt"], screen], js=handler("restore"), **INSTANT)


def compute_in_browser(live: form.Form) -> None:
    """Add the browser's engine, outside of the tab, where it would leave a gap."""
    drawn(
        "shared/local",
        words={name: text for name, text in strings("site")["own"].items() if name not in ("about", "disk")},
        template="<span hidden></span>",
        here=form.BROWSER,
        chosen=live.engines.value,
        order=list(live.fields),
        values=[field.value for field in live.fields.values()],
        offer=browser.settings_there(browser.offered()),
    )


def follow_links(demo: gr.Blocks, tabs: gr.Tabs, live: form.Form, link_notice: gr.HTML) -> None:
    """Let `?tab=step` open a tab and `?drafter=…` fill in a setting. `link_notice` names wrong values."""

    def follow(request: gr.Request) -> list[Any]:
        session.warm_up()
        query = request.query_params
        opened = query.get("tab", "")
        no_tab = "" if opened in ("", *TABS) else strings("traces")["link"]["tab"].format(names=", ".join(TABS))
        settings, trouble = from_link(query, live.fields["target"].value)
        wrong = sentences(no_tab, trouble)
        return [
            gr.update(selected=opened) if opened in TABS else gr.skip(),
            tell(wrong, wrong=True) if wrong else gr.skip(),
            form.engine_for_visitor(),
            *form.filled_in(settings),
        ]

    done = demo.load(follow, None, [tabs, link_notice, live.engines, *live.fields.values()], **INSTANT)
    if limits().in_browser:  # sent again: Gradio loses updates while it first draws a field
        done = done.then(form.engine_for_visitor, None, live.engines, **INSTANT)
    done.then(None, live.engines, None, js=form.ENGINE_CHOSEN, **INSTANT)
