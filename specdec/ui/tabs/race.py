"""The tab Race: a recorded run plays at once; the bar above it starts a live one, whose settings fold away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import gradio as gr
from markdown_it import MarkdownIt

from ...families import presets
from ...methods import EMBEDDED, OPEN, ROUNDED, RULES
from ...settings import Setting, SETTINGS, taking
from .. import browser, menu, session, watch
from ..components.drawn import drawn, handler
from ..components.engine import BROWSER, check_server, Engine, engine, SERVER
from ..components.player import pack, player
from ..components.section import ended, notice, tell
from ..components.traces import traces
from ..request import check, from_link, InputError, known_family, sent
from ..text import ENGLISH, kind_of, language, of_drafters, paragraph, prompts, strings

UPDATES_PER_SECOND = 8
# No limit of Gradio's: whoever waits in its line is told nothing. `session` has a line of its own.
ENGINE: dict[str, Any] = {"concurrency_id": "engine", "concurrency_limit": None}
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def build(tab: gr.Tab) -> tuple[dict[str, Any], Engine, gr.HTML]:
    """The settings by name, whose engine runs them, and the player."""
    with gr.Column(elem_classes="sd-race"):
        screen = player(shown := session.first_recorded(), render=False)
        with gr.Column(elem_classes="sd-console"):
            fields, who, run_button, stop_button, line = bar(screen, settings_of(shown))
        screen.render()
        with gr.Accordion(strings("page")["reading"], open=False, elem_classes="sd-reading"):
            gr.HTML(MarkdownIt().render(paragraph("reading")))  # Gradio's own Markdown comes with 75 kB of scripts
    connect(screen, line, [*who.fields, *fields], run_button, stop_button)
    gr.api(run, api_name="run" if language() == ENGLISH else f"run_{language()}", **ENGINE)
    return dict(zip(SETTINGS, fields, strict=True)), who, screen


def bar(screen: gr.HTML, shown: dict[str, Any]) -> tuple[list[Any], Engine, gr.Button, gr.Button, gr.HTML]:
    """The settings, in the order of their table; those of the run on show to begin with."""
    words, first, chosen = strings("page")["settings"], shown.get("family", EMBEDDED), presets.hosts()
    shown = without_choices(shown)
    if chosen == EMBEDDED and first in menu.families():
        chosen = first
    text = shown.get("prompt", prompts()["story"][0])
    if chosen != first and menu.answers(chosen):  # the run on show is another model's
        text = prompts()["qa"][0]
    prompt = gr.Textbox(
        text, label=words["prompt"], placeholder=words["prompt_placeholder"],
        info=words["prompt_note"] or None, lines=1, max_lines=8, elem_id="prompt",
    )  # fmt: skip
    with gr.Row(elem_classes="sd-go"):
        run_button = gr.Button(words["run"], variant="primary", elem_id="run")
        stop_button = gr.Button(words["stop"], interactive=False, elem_id="stop")
    pills = gr.Row(elem_classes="sd-pills"), gr.Row(elem_classes="sd-pills")
    line = notice()
    place_of_lids = gr.Column(elem_classes="sd-lidrow")
    with gr.Column(elem_classes="sd-rail sd-fold", elem_id="settings"):
        family = pairs(words, chosen)
        drafters = [OPEN, *menu.drafters(chosen)]
        drafter = dropdown("drafter", drafters, menu.drafter_lines("rejection", chosen))
        fields = {one.name: field(one, shown) for one in SETTINGS.values() if one.main and one.type_ is not str}
        with gr.Accordion(words["advanced"], open=False, elem_classes="sd-advanced"):
            place = gr.Column()
            rule = dropdown("rule", RULES, words["rule_lines"])
            peer = gr.Checkbox(False, label=words["peer"], info=menu.peer_lines()[OPEN])
            fields |= {"prompt": prompt, "drafter": drafter, "rule": rule, "family": family, "peer": peer}
            rest = [one for one in SETTINGS.values() if one.name not in fields]
            fields |= {one.name: field(one, shown) for one in rest}
        with place:
            own = [one.name for one in SETTINGS.values() if not one.served]
            who = engine({name: fields[name] for name in own}, PRIVATE)
    with gr.Column(elem_classes="sd-fold", elem_id="deeds"):
        traces()
    explain(drafter, rule, family, peer)
    # By hand alone: who fills in a target fills in its drafter, which a change of the target would take back.
    by_hand = [family.input, family.select, family.blur]
    gr.on(by_hand, switch, [family, drafter, rule], [family, drafter], queue=False, **PRIVATE)
    ordered = [fields[name] for name in SETTINGS]
    with place_of_lids:
        texts = {name: words[name] for name in ("lid", "more")} | {"open": words["chosen"]["k"]}
        values = [one.value for one in ordered]
        drawn("shared/lids", words=texts, names=names_of_drafters(), order=list(SETTINGS), values=values)
    recordings(screen, line, pills, list(SETTINGS), ordered)
    return ordered, who, run_button, stop_button, line


def in_browser(values: list[Any], chosen: str) -> None:
    """The script of the engine in the visitor's browser: it takes the presses that are meant for it. It is no part of
    the tab: even what shows nothing has a gap around it."""
    if not browser.offered():
        return
    words = {name: text for name, text in strings("site")["own"].items() if name not in ("about", "disk")}
    drawn(
        "shared/here", words=words, template="<span hidden></span>", here=BROWSER,
        chosen=chosen, order=list(SETTINGS), values=values, **browser.asked(browser.offered()),
    )  # fmt: skip


def field(setting: Setting, shown: dict[str, Any]) -> Any:
    """A slider where there is a step, else a number, a switch or lines of text."""
    label = strings("page")["settings"][setting.label or setting.name]
    value = shown.get(setting.name, setting.default)
    if setting.type_ is bool:
        return gr.Checkbox(value, label=label)
    if setting.type_ is str:
        return gr.Textbox(value, label=label, lines=2, max_lines=4)
    if not setting.step:
        return gr.Number(value, label=label, elem_classes="sd-inline-number")
    low = setting.step if setting.above else setting.low
    return gr.Slider(low, setting.high, value=value, step=setting.step, label=label, buttons=[])


def pairs(words: dict[str, Any], chosen: str) -> gr.Dropdown:
    """The menu of targets with their drafts. Where the host allows it, any other pair can be typed."""
    own = presets.allowed() is None
    return gr.Dropdown(
        [(menu.family_name(name), name) for name in menu.families()], value=chosen, label=words["target"],
        info=menu.family_line(chosen), filterable=own, allow_custom_value=own, visible=own or len(menu.families()) > 1,
    )  # fmt: skip


def dropdown(name: str, choices: Sequence[str], lines: dict[str, str]) -> gr.Dropdown:
    """A menu whose first entry is the default, with a line below it about the chosen one."""
    named, first = labels(name, choices), choices[0]
    label = strings("page")["settings"][name]
    return gr.Dropdown(named, value=first, label=label, info=lines[first], filterable=False)


def labels(name: str, choices: Sequence[str]) -> list[tuple[str, str]]:
    words = names_of_drafters() if name == "drafter" else strings("page")["settings"][f"{name}s"]
    return [(words[choice], choice) for choice in choices]


def names_of_drafters() -> dict[str, str]:
    return {OPEN: strings("page")["settings"]["chosen"]["name"]} | of_drafters("name")


def explain(drafter: gr.Dropdown, rule: gr.Dropdown, family: gr.Dropdown, peer: gr.Checkbox) -> None:
    """The lines follow the choices, in the browser: whether a drafter is lossless depends on the rule, too."""
    drafters = {
        one: {name: menu.drafter_lines(name, one) for name in RULES}
        for one in (*menu.families(), "")
        if one not in ROUNDED
    }
    rules, same = strings("page")["settings"]["rule_lines"], dict.fromkeys(ROUNDED, EMBEDDED)
    tell = handler("choices", drafters=drafters, rules=rules, peers=menu.peer_lines(), same=same)
    for chosen in (drafter, rule):
        chosen.change(None, [drafter, rule, family], [drafter, rule, peer], js=tell, **PRIVATE)


def switch(family: str, drafter: str, rule: str) -> tuple[Any, Any]:
    """Another target has other drafters; the one that was chosen stays if it can."""
    try:
        known_family(family)
    except InputError as error:
        return gr.update(info=str(error)), gr.skip()
    names = [OPEN, *menu.drafters(family)]
    chosen = drafter if drafter in names else names[0]
    line = menu.drafter_lines(rule, family)[chosen]
    drafters = gr.update(choices=labels("drafter", names), value=chosen, info=line)
    return gr.update(info=menu.family_line(family)), drafters


def filled_in(names: Sequence[str], settings: dict[str, Any]) -> list[Any]:
    """Updates of the fields of these names; another target brings its drafters."""
    updates = {name: gr.update(value=value) for name, value in settings.items()}
    if "family" in settings:
        drafter, rule = settings.get("drafter", OPEN), settings.get("rule", "rejection")
        line, updates["drafter"] = switch(settings["family"], drafter, rule)
        updates["family"] |= line
    return [updates.get(name, gr.skip()) for name in names]


def recordings(
    screen: gr.HTML,
    line: gr.HTML,
    rows: tuple[gr.Row, gr.Row],
    names: Sequence[str],
    fields: list[Any],
) -> None:
    """A row of examples, texts to continue or questions as the target wants them: a press plays its recording. The
    rail always shows the settings of the run on show."""
    prompt, drafter, family = (fields[names.index(name)] for name in ("prompt", "drafter", "family"))
    inputs, places = [prompt, drafter, family], [screen, line, *fields]
    for answers, row in enumerate(rows):
        row.visible = menu.answers(family.value) == bool(answers)
        with row:
            for kind in menu.kinds(bool(answers)):
                pill = gr.Button(strings("page")["settings"]["examples"][kind], size="sm", elem_classes="sd-pill")
                pill.click(partial(show, names, kind), inputs, places, queue=False, **PRIVATE)
    family.change(fitting, family, list(rows), queue=False, **PRIVATE)

    def opened(event: gr.EventData) -> list[Any]:
        """Of a file of the visitor's, the settings that can be chosen here."""
        settings = settings_of(str(sent(event, "head") or ""))
        return filled_in(names, from_link({name: str(value) for name, value in settings.items()})[0])

    drafter.input(partial(show_drafter, names), inputs, places, queue=False, **PRIVATE)
    screen.opened(opened, None, fields, queue=False, **PRIVATE)


def fitting(family: Any) -> list[Any]:
    """Which of the two rows of examples is shown beside this target."""
    answers = isinstance(family, str) and menu.answers(family)
    return [gr.update(visible=not answers), gr.update(visible=answers)]


def show(names: Sequence[str], kind: str, prompt: str, drafter: str, family: str = EMBEDDED) -> list[Any]:
    """The recording of this kind. Its next example where there is none, its prompt stands there already, or another
    model is to take it: then the run on show stays, and the line says so."""
    examples, target, ours = prompts()[kind], menu.target_of(kind), menu.is_ours(family)
    another = not ours and family != target and menu.answers(family) == menu.answers(target)
    if not another and kind in session.recorded_names() and prompt != examples[0]:
        return played(names, kind, drafter)
    settings: dict[str, Any] = {"prompt": examples[0]}
    if prompt in examples:
        settings["prompt"] = examples[(examples.index(prompt) + 1) % len(examples)]
    if menu.answers(family) != menu.answers(target):
        settings |= {"family": target, "drafter": OPEN}
    return [gr.skip(), tell(strings("page")["notice"]["not_recorded"]), *filled_in(names, settings)]


def show_drafter(names: Sequence[str], prompt: str, drafter: str, family: str) -> list[Any]:
    """Another drafter on a recorded prompt plays its own recording; without one, or on a prompt of one's own, nothing
    changes: the rail keeps what was chosen."""
    kind = kind_of(prompt)
    known = kind in session.recorded_names() and prompt == prompts()[kind][0] and family == menu.target_of(kind)
    if not known or (drafter != menu.drafter_of(kind) and not session.recorded(kind, drafter)):
        return [gr.skip()] * (2 + len(names))
    return played(names, kind, drafter)


def played(names: Sequence[str], kind: str, drafter: str) -> list[Any]:
    """The chosen drafter's run; where it has none, the first one's, and a word about that."""
    words, named, first = strings("page")["notice"], of_drafters("name"), menu.drafter_of(kind)
    log = session.recorded(kind, drafter) if drafter != first else ""
    word = ""
    if not log:
        log = session.recorded(kind)
        if drafter not in (first, OPEN):
            word = words["other_trace"].format(drafter=named.get(drafter, drafter), shown=named[first])
    if not log:
        return [gr.skip(), tell(words["no_trace"], wrong=True), *filled_in(names, {})]
    settings = settings_of(log)
    return [pack(log), tell(word), *filled_in(names, without_choices(settings) if drafter == OPEN else settings)]


def without_choices(settings: dict[str, Any]) -> dict[str, Any]:
    """Of a recorded run without what a live one may leave open: a recording does not choose for its visitor."""
    return {name: value for name, value in settings.items() if name not in ("drafter", "k")}


def settings_of(log: str) -> dict[str, Any]:
    """What the rail says of a run: its header and its first lane's settings; nothing where they cannot be read."""
    try:
        header, started = (json.loads(text) for text in log.split("\n", 2)[:2])
        params = started["params"]
        values = {"prompt": header["prompt"], **params, "stop": "\n".join(params["stop"] or ())}
        if not started.get("server"):  # which decides the others by itself
            values["family"] = header["models"].get("family", EMBEDDED)
            values["rule"] = next(key for key, name in menu.RULE_NAMES.items() if name == started["rule"])
            values["peer"] = len(header["lanes"]) > 2
            values |= {name: started[name] for name in ("drafter", "k")}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration):
        return {}
    return {name: value for name, value in values.items() if name in SETTINGS}


def connect(screen: gr.HTML, line: gr.HTML, fields: list[Any], run_button: gr.Button, stop_button: gr.Button) -> None:
    """`fields` are the engine's and then the settings, as `begin` takes them."""
    places = [screen, line, run_button, stop_button]
    named = dict(zip(SETTINGS, fields[-len(SETTINGS) :], strict=True))
    family, drafter = named["family"], named["drafter"]
    running = [
        run_button.click(begin, fields, places, **ENGINE, **PRIVATE),
        screen.tried(tried, None, [drafter, named["k"]], queue=False, **PRIVATE).then(
            begin, fields, places, **ENGINE, **PRIVATE
        ),
    ]
    for one in running:
        one.then(ended, None, screen, queue=False, **PRIVATE)
        one.then(over, None, places[1:], queue=False, **PRIVATE)
        one.then(chosen, [family, drafter], drafter, queue=False, **PRIVATE)
    stop_button.click(None, None, None, cancels=running, queue=False, **PRIVATE)


def tried(event: gr.EventData) -> tuple[Any, Any]:
    """Drafter and K of the press below a run that lost: a depth for the same drafter, or the default."""
    k = sent(event, "k")
    return (gr.skip(), k) if isinstance(k, int) and k else (OPEN, 0)


def begin(engine: Any, address: Any, plain: Any, key: Any, *fields: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of the page for one live run, of our engine or of a server."""
    if engine == BROWSER:  # its script did not take the press
        yield gr.skip(), tell(strings("page")["errors"]["browser"], wrong=True), gr.skip(), gr.skip()
    elif engine == SERVER:
        settings = dict(zip(SETTINGS, fields, strict=True))
        yield from streamed(lambda: watch.run(check_server(settings, address, plain, key)))
    else:
        yield from start(*fields)


def start(*fields: Any) -> Iterator[tuple[Any, ...]]:
    return streamed(lambda: session.run(check(*fields)))


def streamed(run: Callable[[], Iterator[session.News]]) -> Iterator[tuple[Any, ...]]:
    """The log as it grows. A refused input leaves everything on the page as it was."""
    try:
        events = run()
    except InputError as error:
        yield gr.skip(), tell(str(error), wrong=True), gr.skip(), gr.skip()
        return
    yield gr.skip(), tell(""), gr.update(interactive=False), gr.update(interactive=True)
    log, words = "", strings("page")["notice"]
    stopped = {"waiting": words["left"], "notice": words["stopped"], "fetching": words["kept"]}
    for news in batches(events):
        if news.kind in ("lines", "whole"):
            log = pack(news.text) if news.kind == "whole" else log + pack(news.text)
            yield log or gr.skip(), gr.skip(), gr.skip(), gr.skip()  # what is on show stays until there is another run
        else:
            line = tell(news.text, news.kind == "error", stopped.get(news.kind, ""), news.share)
            yield gr.skip(), line, gr.skip(), gr.skip()


def batches(news: Iterator[session.News]) -> Iterator[session.News]:
    """The same with lines put together: few updates a second, whatever the engine's speed, but that many while lines
    come at all, for there a visitor who left is noticed."""
    text, last = "", time.monotonic()
    for item in news:
        if item.kind == "lines":
            text += item.text
            if time.monotonic() - last < 1 / UPDATES_PER_SECOND:
                continue
        if item.kind == "lines" or (text and item.kind != "whole"):
            yield session.News("lines", text)
            last = time.monotonic()
        text = ""
        if item.kind != "lines":
            yield item
    if text:
        yield session.News("lines", text)


def over() -> tuple[Any, ...]:
    """However it ended: the page learns that no more will come, and Run is there again."""
    return ended(), gr.update(interactive=True), gr.update(interactive=False)


def chosen(family: Any, drafter: Any) -> Any:
    """After a run, the menu's line says what the default is here."""
    return gr.update(info=session.chosen_line(family)) if drafter == OPEN else gr.skip()


@taking(list(SETTINGS.values()))
def run(**settings: Any) -> Iterator[str]:
    """Run a prompt live, speculatively and plainly; streams the run as NDJSON: a header, then one event a line.

    `peer` is a lane where transformers has such a drafter and k is 1 or more.
    The names of drafters, rules and families are those that a wrong name is answered with; `adaptive:NAME` adapts any
    drafter.
    Where others come first, empty strings arrive until it is this run's turn.
    A refused input gives the one line {"error": "what to do"}; a run cut at its deadline ends with {"notice": "why"}.

    Parameters:
        {settings}
    """
    try:
        request = check(**settings)
    except InputError as error:
        yield json.dumps({"error": str(error)})
        return
    for news in batches(session.run(request)):
        if news.kind == "error":
            yield json.dumps({"error": news.text})
        elif news.kind == "cut":
            yield json.dumps({"notice": news.text})
        elif news.kind == "lines":
            yield news.text
        elif news.kind in ("waiting", "fetching"):
            yield ""  # a place where a client that left is noticed
