"""Who computes a run: this page's engine, the visitor's own browser, or a server of others; on a public host one that
its owner lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ...exposure import limits
from ...servers.base import ServerError
from ...servers.connect import allowed_addresses, listed_addresses, origin
from ...settings import sampling, SETTINGS
from .. import browser
from ..request import checked, InputError, readable, say, server_texts
from ..text import strings, translated
from ..watch import WatchRequest
from .drawn import handler

OWN, BROWSER, SERVER = "own", "browser", "server"
ENGINE_CHOSEN = handler("changed", event="sd-engine")  # tells the script of the engine in the browser
THERE = ("drafter", "k")  # of our own settings, those that the browser's engine has as well


@dataclass(frozen=True)
class Engine:
    """The fields, in the order of `race.begin`'s arguments."""

    chosen: gr.Radio
    address: gr.Dropdown | gr.Textbox
    plain: gr.Dropdown | gr.Textbox
    key: gr.Textbox

    @property
    def fields(self) -> list[Any]:
        return [self.chosen, self.address, self.plain, self.key]


def engine(of_our_own: Mapping[str, Any], private: Mapping[str, Any]) -> Engine:
    """`of_our_own` are the settings, by name, that a server decides by itself: they go while one is chosen."""
    words = strings("page")["settings"]["engine"]
    listed, free = known()
    offered = [OWN, *([BROWSER] if browser.offered() else []), *([SERVER] if free or listed else [])]
    first = BROWSER if BROWSER in offered and limits().in_browser else OWN
    chosen = gr.Radio(
        [(words[name], name) for name in offered], value=first, label=words["label"], info=words[f"about_{first}"],
        visible=len(offered) > 1, elem_id="engine",
    )  # fmt: skip
    with gr.Column(visible=False) as servers:
        address, plain = place("address", listed, free), place("plain", ("", *listed), free)
        key = gr.Textbox(
            "", label=words["key"], info=words["key_info"], type="password", elem_id="key", max_lines=1,
            html_attributes=gr.InputHTMLAttributes(autocomplete="off", spellcheck=False),
        )  # fmt: skip
    shown = {setting: field.visible for setting, field in of_our_own.items()}
    has = {OWN: tuple(shown), BROWSER: THERE}

    def choose(name: str) -> list[Any]:
        line = gr.update(info=words[f"about_{name if name in offered else OWN}"])
        fields = (gr.update(visible=seen and setting in has.get(name, ())) for setting, seen in shown.items())
        return [line, gr.update(visible=name == SERVER), *fields]

    for setting, field in of_our_own.items():
        field.visible = shown[setting] and setting in has[first]

    chosen.change(choose, chosen, [chosen, servers, *of_our_own.values()], queue=False, **private)
    chosen.change(None, chosen, None, js=ENGINE_CHOSEN, queue=False, **private)
    return Engine(chosen, address, plain, key)


def place(name: str, listed: Sequence[str], free: bool) -> gr.Dropdown | gr.Textbox:
    """A menu of the owner's addresses; where the host allows it, another may be typed. Without any, a line."""
    words = strings("page")["settings"]["engine"]
    info = words[f"{name}_info" if free or name != "address" else "listed_info"]
    told: dict[str, Any] = {"label": words[name], "info": info, "elem_id": name}
    if not any(listed):
        return gr.Textbox("", max_lines=1, **told)
    choices = [(one or "–", one) for one in listed]
    return gr.Dropdown(choices, value=listed[0], allow_custom_value=free, filterable=free, **told)


def known() -> tuple[tuple[str, ...], bool]:
    """The addresses that the owner lists, and whether any other may be typed. A list that cannot be read is none."""
    try:
        return listed_addresses(), allowed_addresses() is None
    except ServerError:
        return (), False


def check_server(settings: Mapping[str, Any], address: Any, plain: Any, key: Any) -> WatchRequest:
    """The request, or an InputError. Whether this host may ask those servers is asked where they are."""
    address, plain, key = server_texts(address, plain, key)
    if not address:
        raise InputError(say("no_server"))
    asked = {name: checked(one, settings[name]) for name, one in SETTINGS.items() if one.sampling}
    return WatchRequest(readable(settings["prompt"]), sampling(asked), address, plain, key)


def filled_in(served: Mapping[str, str], leads: bool = False) -> list[Any]:
    """Updates of the engine, the address and the plain one. Whoever `leads` a class has this page's engine."""
    if not served:
        return [gr.update(value=OWN) if leads and limits().in_browser else gr.skip(), gr.skip(), gr.skip()]
    return [gr.update(value=SERVER), *(gr.update(value=served.get(name, "")) for name in ("server", "plain"))]


def from_link(query: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """What `?server=` and `?plain=` ask for, if the owner lists it: no link chooses where requests go."""
    asked = {name: query[name] for name in ("server", "plain") if query.get(name)}
    if "server" not in asked:
        return {}, ""
    try:
        found = {name: origin(address) for name, address in asked.items()}
    except ServerError as error:
        return {}, translated(error.sentence)
    return (found, "") if set(found.values()) <= set(known()[0]) else ({}, strings("page")["errors"]["not_listed"])
