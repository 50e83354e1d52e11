"""The tab Race: a recorded run plays at once, and the bar above it starts a live run."""

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from html import escape
from typing import Any

import gradio as gr
from markdown_it import MarkdownIt

from ...exposure import limits
from ...families import presets
from ...messages import Refused
from ...methods import DEFAULT_DRAFTER, DEFAULT_RULE, EMBEDDED, ROUNDED, RULE_FACTS
from ...settings import REQUIRED, Setting, SETTINGS
from ...traces.file import escaped
from .. import browser, menu, recorded
from ..components.drawn import drawn, ended, ENGINE, handler, INSTANT, notice, player, PRIVATE, tell
from ..components.traces import traces
from ..gateway.visitors import has_queue_priority
from ..request import check, check_target, from_link, SIGNATURE, stop_lines
from ..session import chosen_line, session
from ..text import ENGLISH, example_name, kind_of, language, of_drafters, paragraph, prompts, strings, translated

# Enables Run and disables Stop at once, in the browser, after a run that is over for any reason.
ENABLE_RUN = "() => [true, false].map((interactive) => ({ __type__: 'update', interactive }))"
ENDS = {"error": "error", "cut": "notice"}  # the last answer -> the key of the API's last line
SERVER = "own"  # the engines
BROWSER = "browser"
SERVER_ONLY = [one.name for one in SETTINGS.values() if not one.sampling and one.name not in ("prompt", "drafter", "k")]
ENGINE_CHOSEN = handler("changed", event="sd-engine")  # informs the script `shared/local.js`


def build(tab: gr.Tab) -> tuple[dict[str, Any], gr.Radio, gr.HTML]:
    """Return the fields of the settings by name, the choice of the engine, and the player."""
    with gr.Column(elem_classes="sd-race"):
        screen = player(log := recorded.recorded(next(iter(recorded.recorded_names()), "")))
        with gr.Column(elem_classes="sd-console"):
            fields, engines, run_button, stop_button, line = bar(screen, settings_of(log))
        screen.render()
        with gr.Accordion(strings("page")["reading"], open=False, elem_classes="sd-reading"):
            gr.HTML(MarkdownIt().render(paragraph("reading")))  # Gradio's own Markdown comes with 75 kB of scripts
    connect(screen, line, engines, fields, run_button, stop_button)
    run.__doc__ = documentation()
    gr.api(run, api_name="run" if language() == ENGLISH else f"run_{language()}", **ENGINE)
    return fields, engines, screen


def bar(screen: gr.HTML, shown: dict[str, Any]) -> tuple[dict[str, Any], gr.Radio, gr.Button, gr.Button, gr.HTML]:
    """Build the fields and the buttons. `shown` has the settings of the run on screen."""
    words, shown_target, first = strings("page")["settings"], shown.get("target", EMBEDDED), recorded.first_target()
    shown = without_choices(shown)
    text = shown.get("prompt", prompts()["story"][0])
    if first != shown_target and menu.answers(first):  # a chat model needs a question
        text = prompts()["qa"][0]
    prompt = gr.Textbox(
        text,
        label=words["prompt"],
        placeholder=words["prompt_placeholder"],
        lines=1,
        max_lines=8,
        elem_id="prompt",
    )
    with gr.Row(elem_classes="sd-go"):
        run_button = gr.Button(words["run"], variant="primary", elem_id="run")
        stop_button = gr.Button(words["stop"], interactive=False, elem_id="stop")
    pills = gr.Row(elem_classes="sd-pills"), gr.Row(elem_classes="sd-pills")
    line = notice()
    lids = gr.Column(elem_classes="sd-lidrow")
    with gr.Column(elem_classes="sd-rail sd-fold", elem_id="settings"):
        target = target_menu(first)
        drafter = dropdown("drafter", drafter_choices(first), menu.drafter_lines("rejection", first))
        built = {
            setting.name: field(setting, shown)
            for setting in SETTINGS.values()
            if setting.main and setting.type_ is not str
        }
        with gr.Accordion(words["advanced"], open=False, elem_classes="sd-advanced"):
            engine_place = gr.Column()
            rule = dropdown("rule", [(words["rules"][name], name) for name in RULE_FACTS], words["rule_lines"])
            peer = gr.Checkbox(False, label=words["peer"], info=menu.peer_lines()[DEFAULT_DRAFTER])
            built |= {"prompt": prompt, "drafter": drafter, "rule": rule, "target": target, "peer": peer}
            built |= {setting.name: field(setting, shown) for setting in SETTINGS.values() if setting.name not in built}
        fields = {name: built[name] for name in SETTINGS}
        with engine_place:
            engines = engine_menu([fields[name] for name in SERVER_ONLY])
    with gr.Column(elem_classes="sd-fold", elem_id="deeds"):
        traces()
    explain(drafter, rule, target, peer)
    # Not on `change`, because code that fills in the target also fills in the drafter.
    by_hand = [target.input, target.select, target.blur]
    gr.on(by_hand, switch, [target, drafter, rule], [target, drafter], **INSTANT)
    with lids:
        texts = {name: words[name] for name in ("lid", "more")} | {"usual": words["chosen"]["name"].lower()}
        usual = ["" if setting.default is REQUIRED else setting.default for setting in SETTINGS.values()]
        values = [field.value for field in fields.values()]
        drawn("shared/lids", words=texts, names=drafter_names(), order=list(SETTINGS), usual=usual, values=values)
    recordings(screen, line, pills, fields)
    return fields, engines, run_button, stop_button, line


def engine_menu(fields: list[Any]) -> gr.Radio:
    """Offer a choice of engines. The `fields` that the browser's lacks are hidden with it."""
    words = strings("page")["settings"]["engine"]
    offered = [SERVER, *([BROWSER] if browser.offered() else [])]
    first = BROWSER if BROWSER in offered and limits().in_browser else SERVER
    chosen = gr.Radio(
        [(words[name], name) for name in offered],
        value=first,
        label=words["label"],
        info=words[f"about_{first}"],
        visible=len(offered) > 1,
        elem_id="engine",
    )
    shown = [field.visible for field in fields]

    def choose(name: str) -> list[Any]:
        updates = [gr.update(visible=name == SERVER and is_shown) for is_shown in shown]
        return [gr.update(info=words[f"about_{name}"]), *updates]

    for field in fields:
        field.visible &= first == SERVER
    chosen.change(choose, chosen, [chosen, *fields], **INSTANT)
    chosen.change(None, chosen, None, js=ENGINE_CHOSEN, **INSTANT)
    return chosen


def engine_for_visitor() -> Any:
    """Choose the server's engine for a visitor who goes first in the queue."""
    return gr.update(value=SERVER) if limits().in_browser and has_queue_priority() else gr.skip()


def field(setting: Setting, shown: dict[str, Any]) -> Any:
    label = strings("page")["settings"][setting.label or setting.name]
    value = shown.get(setting.name, setting.default)
    if setting.type_ is bool:
        return gr.Checkbox(value, label=label)
    if setting.type_ is str:
        return gr.Textbox(value, label=label, lines=2, max_lines=4)
    if not setting.step:
        return gr.Number(value, label=label, elem_classes="sd-inline-number")
    return gr.Slider(setting.low, setting.high, value=value, step=setting.step, label=label, buttons=[])


def target_menu(chosen: str) -> gr.Dropdown:
    any_pair = presets.allowed_pairs() is None
    return gr.Dropdown(
        [(menu.target_name(name), name) for name in menu.targets()],
        value=chosen,
        label=strings("page")["settings"]["target"],
        info=menu.target_line(chosen),
        filterable=any_pair,
        allow_custom_value=any_pair,
        visible=any_pair or len(menu.targets()) > 1,
    )


def dropdown(name: str, choices: list[tuple[str, str]], lines: dict[str, str]) -> gr.Dropdown:
    first = choices[0][1]
    label = strings("page")["settings"][name]
    return gr.Dropdown(choices, value=first, label=label, info=lines[first], filterable=False)


def drafter_choices(target: str) -> list[tuple[str, str]]:
    names = drafter_names()
    return [(names[name], name) for name in (DEFAULT_DRAFTER, *menu.drafters(target))]


def drafter_names() -> dict[str, str]:
    return {DEFAULT_DRAFTER: strings("page")["settings"]["chosen"]["name"]} | of_drafters("name")


def explain(drafter: gr.Dropdown, rule: gr.Dropdown, target: gr.Dropdown, peer: gr.Checkbox) -> None:
    """Let a script update the lines below the menus if drafter or rule changes."""
    targets = [name for name in (*menu.targets(), "") if name not in ROUNDED]
    drafters = {target: {rule: menu.drafter_lines(rule, target) for rule in RULE_FACTS} for target in targets}
    rules, same = strings("page")["settings"]["rule_lines"], dict.fromkeys(ROUNDED, EMBEDDED)
    script = handler("choices", drafters=drafters, rules=rules, peers=menu.peer_lines(), same=same)
    for changed in (drafter, rule):
        changed.change(None, [drafter, rule, target], [drafter, rule, peer], js=script, **PRIVATE)


def switch(target: str, drafter: str, rule: str) -> tuple[Any, Any]:
    """Update the menus for another target. The drafter stays if the target has it."""
    try:
        check_target(target)
    except Refused as error:
        return gr.update(info=str(error)), gr.skip()
    lines = menu.drafter_lines(rule, target)
    chosen = drafter if drafter in lines else DEFAULT_DRAFTER
    drafters = gr.update(choices=drafter_choices(target), value=chosen, info=lines[chosen])
    return gr.update(info=menu.target_line(target)), drafters


def filled_in(settings: dict[str, Any]) -> list[Any]:
    """Return an update for each field. A target also changes the menu of drafters."""
    updates = {name: gr.update(value=value) for name, value in settings.items()}
    if "target" in settings:
        drafter, rule = settings.get("drafter", DEFAULT_DRAFTER), settings.get("rule", "rejection")
        line, updates["drafter"] = switch(settings["target"], drafter, rule)
        updates["target"] |= line
    return [updates.get(name, gr.skip()) for name in SETTINGS]


# ---- recorded runs ----


def recordings(screen: gr.HTML, line: gr.HTML, rows: tuple[gr.Row, gr.Row], fields: dict[str, Any]) -> None:
    """Fill a row of texts to continue and one of questions. That which fits the target is visible."""
    target, drafter = fields["target"], fields["drafter"]
    inputs, outputs = [fields["prompt"], drafter, target], [screen, line, *fields.values()]
    label = escape(strings("page")["settings"]["try"])
    for answers, row in enumerate(rows):
        row.visible = menu.answers(target.value) == bool(answers)
        with row:
            gr.HTML(html_template=f'<span class="sd-sub">{label}</span>', apply_default_css=False)
            for kind in menu.kinds(bool(answers)):
                pill = gr.Button(example_name(kind), size="sm", elem_classes="sd-pill")
                pill.click(partial(show, kind), inputs, outputs, **INSTANT)
    target.change(fitting, target, list(rows), **INSTANT)
    drafter.input(show_drafter, inputs, outputs, **INSTANT)
    screen.opened(fill_in_opened, None, list(fields.values()), **INSTANT)


def fill_in_opened(event: gr.EventData) -> list[Any]:
    """Fill in the settings of a visitor's file, if they are allowed here."""
    settings = settings_of(event.head)
    return filled_in(from_link({name: str(value) for name, value in settings.items()})[0])


def fitting(target: Any) -> list[Any]:
    answers = isinstance(target, str) and menu.answers(target)
    return [gr.update(visible=not answers), gr.update(visible=answers)]


def show(kind: str, prompt: str, drafter: str, target: str = EMBEDDED) -> list[Any]:
    """Play the recorded run of this kind's first example. If there is none, or it is on show, fill in an example."""
    examples, recorded_with, ours = prompts()[kind], menu.target_of(kind), menu.is_ours(target)
    other_model = not ours and target != recorded_with and menu.answers(target) == menu.answers(recorded_with)
    shown = prompt == examples[0] and len(examples) > 1
    if not other_model and kind in recorded.recorded_names() and not shown:
        return played(kind, drafter)
    settings: dict[str, Any] = {"prompt": examples[0]}
    if prompt in examples:
        settings["prompt"] = examples[(examples.index(prompt) + 1) % len(examples)]
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
    settings = settings_of(log)
    return [
        gr.update(value=escaped(log), preparing=False),
        tell(remark),
        *filled_in(without_choices(settings) if drafter == DEFAULT_DRAFTER else settings),
    ]


def without_choices(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a recording must not choose for the visitor's live run."""
    return {name: value for name, value in settings.items() if name not in ("drafter", "k")}


def settings_of(log: str) -> dict[str, Any]:
    """Read a run's settings from its header and first lane; {} if that fails."""
    try:
        header, started = map(json.loads, log.split("\n", 2)[:2])
        params = started["params"]
        values = {"prompt": header["prompt"], **params, "stop": stop_lines(params["stop"] or ())}
        if not started.get("server"):  # a server chooses these settings by itself
            values["target"] = header["models"].get("family", EMBEDDED)
            values["rule"] = menu.RULE_KEYS.get(started["rule"], DEFAULT_RULE)  # the default for an unknown name
            values["peer"] = len(header["lanes"]) > 2
            values |= {name: started[name] for name in ("drafter", "k")}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
    return {name: value for name, value in values.items() if name in SETTINGS}


# ---- live runs ----


def connect(
    screen: gr.HTML, line: gr.HTML, engines: gr.Radio, fields: dict[str, Any], start: gr.Button, stop: gr.Button
) -> None:
    inputs, outputs = [engines, *fields.values()], [screen, line, start, stop]
    target, drafter = fields["target"], fields["drafter"]
    advised = screen.tried(take_advice, None, [drafter, fields["k"]], **INSTANT)
    running = [event(begin, inputs, outputs, **ENGINE, **PRIVATE) for event in (start.click, advised.then)]
    for live_run in running:
        live_run.then(partial(ended, preparing=False), None, screen, **INSTANT)
        live_run.then(None, None, outputs[2:], js=ENABLE_RUN, **PRIVATE)
        live_run.then(name_chosen, [target, drafter], drafter, **INSTANT)
    stop.click(None, None, None, cancels=running, **INSTANT)


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
        yield gr.skip(), tell(translated(error.args[0]), wrong=True), gr.skip(), gr.skip()
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
                line = tell(item.text, item.name == "error", if_stopped.get(item.name, ""), item.share)
                dim = gr.update(preparing=item.name != "waiting")  # who waits can watch the recording
                yield gr.skip() if log else dim, line, gr.skip(), gr.skip()


def name_chosen(target: Any, drafter: Any) -> Any:
    return gr.update(info=chosen_line(session.choices.get(str(target)))) if drafter == DEFAULT_DRAFTER else gr.skip()


def run(*settings: Any, **named: Any) -> Iterator[str]:
    """Run a prompt live, with speculative and with plain decoding. The run streams as NDJSON: a header, then events.

    `peer` adds a lane of transformers, if transformers has such a drafter and can run the target.
    A wrong name of a drafter, rule or target is answered with the list of valid names; `adaptive:NAME` adapts the draft
    length of any drafter.
    While the runs of other visitors come first, empty strings arrive.
    A refused input gives one line, {"error": "what to do"}. A run cut at its deadline ends with {"notice": "why"}.

    Parameters:
        {settings}
    """
    try:
        request = check(*settings, **named)
    except Refused as error:
        yield json.dumps({"error": translated(error.args[0])})
        return
    with contextlib.closing(session.run(request)) as items:
        for item in items:
            if item.name == "lines":
                yield item.text
            elif item.name in ENDS:
                yield json.dumps({ENDS[item.name]: item.text})
            elif item.name != "done":
                yield ""  # Gradio notices only at a yield that a client has left


def documentation(text: str = str(run.__doc__)) -> str:
    """Describe the endpoint `run`. Bounds depend on who can reach the page."""
    return text.replace("{settings}", "\n        ".join(f"{s.name}: {s.help_with_bounds}" for s in SETTINGS.values()))


# Gradio makes the endpoint's documentation from the following attributes.
run.__annotations__ = {name: setting.type_ for name, setting in SETTINGS.items()} | {"return": Iterator[str]}
run.__signature__ = SIGNATURE.replace(return_annotation=Iterator[str])  # type: ignore[attr-defined]
