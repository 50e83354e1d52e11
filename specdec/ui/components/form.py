"""Add the form of the tab Race: the settings of a live run, and its buttons."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from ...exposure import limits
from ...families import presets
from ...messages import Refused
from ...methods import DEFAULT_DRAFTER, EMBEDDED, IN_BROWSER, ROUNDED, RULE_FACTS
from ...settings import REQUIRED, Setting, SETTINGS
from .. import browser, menu, recorded
from ..gateway.visitors import has_queue_priority
from ..request import check_target
from ..text import of_drafters, prompts, strings
from .drawn import drawn, handler, INSTANT, notice, PRIVATE
from .traces import traces

SERVER = "own"  # the engines
BROWSER = "browser"
SERVER_ONLY = [one.name for one in SETTINGS.values() if not one.sampling and one.name not in ("prompt", "drafter", "k")]
ENGINE_CHOSEN = handler("changed", event="sd-engine")  # informs the script `shared/local.js`


@dataclass(frozen=True)
class Form:
    """The settings of a live run, and what stands beside them. Each of `pills` is a row for examples."""

    fields: dict[str, Any]  # by name, in the order of `SETTINGS`
    engines: gr.Radio
    run: gr.Button
    stop: gr.Button
    notice: gr.HTML
    pills: tuple[gr.Row, gr.Row]


def add_form(shown: dict[str, Any]) -> Form:
    """Add fields and buttons. `shown` are settings of the run on screen, which the fields begin with."""
    words, shown_target, first = strings("page")["settings"], shown.get("target", EMBEDDED), recorded.first_target()
    text = shown.get("prompt", prompts()["story"][0])
    if first != shown_target and menu.answers(first):  # a chat model needs a question
        text = prompts()["qa"][0]
    prompt = gr.Textbox(
        text, label=words["prompt"], placeholder=words["prompt_placeholder"], lines=1, max_lines=8, elem_id="prompt"
    )
    with gr.Row(elem_classes="sd-go"):
        run_button = gr.Button(words["run"], variant="primary", elem_id="run")
        stop_button = gr.Button(words["stop"], interactive=False, elem_id="stop")
    pills = gr.Row(elem_classes="sd-pills"), gr.Row(elem_classes="sd-pills")
    below = notice()
    lids = gr.Column(elem_classes="sd-lidrow")
    with gr.Column(elem_classes="sd-rail sd-fold", elem_id="settings"):
        target = target_menu(first)
        drafter = dropdown("drafter", drafter_choices(first), menu.drafter_sentences("rejection", first))
        built: dict[str, Any] = {"prompt": prompt, "drafter": drafter, "target": target}
        built |= {one.name: field(one, shown) for one in SETTINGS.values() if one.main and one.name not in built}
        with gr.Accordion(words["advanced"], open=False, elem_classes="sd-advanced"):
            engine_place = gr.Column()
            rule = dropdown("rule", [(words["rules"][name], name) for name in RULE_FACTS], words["rule_lines"])
            peer = gr.Checkbox(False, label=words["peer"], info=menu.peer_sentences()[DEFAULT_DRAFTER])
            built |= {"rule": rule, "peer": peer}
            built |= {one.name: field(one, shown) for one in SETTINGS.values() if one.name not in built}
        fields = {name: built[name] for name in SETTINGS}
        with engine_place:
            engines = engine_menu([fields[name] for name in SERVER_ONLY], drafter)
    with gr.Column(elem_classes="sd-fold", elem_id="deeds"):
        traces()
    explain(drafter, rule, target, peer, engines)
    # Not on `change`, because code that fills in the target also fills in the drafter.
    by_hand = [target.input, target.select, target.blur]
    gr.on(by_hand, switch, [target, drafter, rule], [target, drafter], **INSTANT)
    with lids:
        texts = {name: words[name] for name in ("lid", "more")} | {"usual": words["chosen"]["name"].lower()}
        usual = ["" if setting.default is REQUIRED else setting.default for setting in SETTINGS.values()]
        values = [field.value for field in fields.values()]
        drawn("shared/lids", words=texts, names=drafter_names(), order=list(SETTINGS), usual=usual, values=values)
    return Form(fields, engines, run_button, stop_button, below, pills)


def engine_menu(fields: list[Any], drafter: gr.Dropdown) -> gr.Radio:
    """Offer a choice of engines. With the browser's, `fields` that it lacks are hidden."""
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

    def choose(name: str, drafts: str) -> list[Any]:
        updates = [gr.update(visible=name == SERVER and is_shown) for is_shown in shown]
        drafting = gr.skip() if name == SERVER or drafts in IN_BROWSER[EMBEDDED] else gr.update(value=DEFAULT_DRAFTER)
        return [gr.update(info=words[f"about_{name}"]), drafting, *updates]

    for field in fields:
        field.visible &= first == SERVER
    chosen.change(choose, [chosen, drafter], [chosen, drafter, *fields], **INSTANT)
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
    return gr.Slider(setting.low, setting.high, value, step=setting.step, label=label, buttons=[], elem_id=setting.name)


def target_menu(chosen: str) -> gr.Dropdown:
    any_pair = presets.allowed_pairs() is None
    return gr.Dropdown(
        [(menu.target_name(name), name) for name in menu.targets()],
        value=chosen,
        label=strings("page")["settings"]["target"],
        info=menu.target_sentence(chosen),
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


def explain(drafter: gr.Dropdown, rule: gr.Dropdown, target: gr.Dropdown, peer: gr.Checkbox, engines: gr.Radio) -> None:
    """Let a script update the lines below the menus, and the engine, if drafter or rule changes."""
    targets = [name for name in (*menu.targets(), "") if name not in ROUNDED]
    drafters = {target: {rule: menu.drafter_sentences(rule, target) for rule in RULE_FACTS} for target in targets}
    rules, same = strings("page")["settings"]["rule_lines"], dict.fromkeys(ROUNDED, EMBEDDED)
    there: dict[str, Any] = {"here": IN_BROWSER, "moved": strings("page")["settings"]["engine"]["moved"]}
    script = handler("choices", drafters=drafters, rules=rules, peers=menu.peer_sentences(), same=same, **there)
    for changed in (drafter, rule):
        changed.change(None, [drafter, rule, target, engines], [drafter, rule, peer, engines], js=script, **PRIVATE)


def switch(target: str, drafter: str, rule: str) -> tuple[Any, Any]:
    """Update the menus for another target. The drafter stays if the target has it."""
    try:
        check_target(target)
    except Refused as error:
        return gr.update(info=str(error)), gr.skip()
    lines = menu.drafter_sentences(rule, target)
    chosen = drafter if drafter in lines else DEFAULT_DRAFTER
    drafters = gr.update(choices=drafter_choices(target), value=chosen, info=lines[chosen])
    return gr.update(info=menu.target_sentence(target)), drafters


def filled_in(settings: dict[str, Any]) -> list[Any]:
    """Return an update for each field. A target also changes the menu of drafters."""
    updates = {name: gr.update(value=value) for name, value in settings.items()}
    if "target" in settings:
        drafter, rule = settings.get("drafter", DEFAULT_DRAFTER), settings.get("rule", "rejection")
        info, updates["drafter"] = switch(settings["target"], drafter, rule)
        updates["target"] |= info
    return [updates.get(name, gr.skip()) for name in SETTINGS]
