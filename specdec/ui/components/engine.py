"""The choice of who computes a run: this page's engine, the visitor's own browser, or a server of others.

On a public host a visitor may choose only servers that its owner lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from ...exposure import limits
from ...servers.base import ServerError
from ...servers.connect import allowed_addresses, listed_addresses
from ...settings import sampling, SETTINGS
from .. import browser
from ..request import check_prompt, check_setting, InputError, say, stripped
from ..text import strings
from ..watch import WatchRequest
from .drawn import handler

OWN = "own"
BROWSER = "browser"
SERVER = "server"
ENGINE_CHOSEN = handler("changed", event="sd-engine")  # tells the script of the engine in the browser
THERE = ("drafter", "k")  # of our own settings, those that the browser's engine has as well


class Engine(NamedTuple):
    """The fields, in the order of `race.begin`'s arguments."""

    chosen: gr.Radio
    address: gr.Dropdown | gr.Textbox
    plain: gr.Dropdown | gr.Textbox
    key: gr.Textbox


def engine(of_our_own: Mapping[str, Any], instant: Mapping[str, Any]) -> Engine:
    """`of_our_own` are the fields, by setting, that a server decides by itself: they are hidden while one is chosen.

    `instant` are the arguments of an event that waits for no other.
    """
    words = strings("page")["settings"]["engine"]
    addresses, any_server = server_choices()
    offered = [OWN, *([BROWSER] if browser.offered() else []), *([SERVER] if any_server or addresses else [])]
    first = BROWSER if BROWSER in offered and limits().in_browser else OWN
    chosen = gr.Radio(
        [(words[name], name) for name in offered],
        value=first,
        label=words["label"],
        info=words[f"about_{first}"],
        visible=len(offered) > 1,
        elem_id="engine",
    )
    with gr.Column(visible=False) as servers:
        about_address = words["address_info" if any_server else "listed_info"]
        address = address_field("address", addresses, any_server, about_address)
        plain = address_field("plain", ("", *addresses) if addresses else (), any_server, words["plain_info"])
        key = gr.Textbox(
            "",
            label=words["key"],
            info=words["key_info"],
            type="password",
            elem_id="key",
            max_lines=1,
            html_attributes=gr.InputHTMLAttributes(autocomplete="off", spellcheck=False),
        )
    shown = {setting: field.visible for setting, field in of_our_own.items()}
    has = {OWN: tuple(shown), BROWSER: THERE, SERVER: ()}

    def choose(name: str) -> list[Any]:
        line = gr.update(info=words[f"about_{name}"])
        fields = (gr.update(visible=visible and setting in has[name]) for setting, visible in shown.items())
        return [line, gr.update(visible=name == SERVER), *fields]

    for setting, field in of_our_own.items():
        field.visible = shown[setting] and setting in has[first]

    chosen.change(choose, chosen, [chosen, servers, *of_our_own.values()], **instant)
    chosen.change(None, chosen, None, js=ENGINE_CHOSEN, **instant)
    return Engine(chosen, address, plain, key)


def address_field(name: str, addresses: Sequence[str], any_server: bool, info: str) -> gr.Dropdown | gr.Textbox:
    """A menu of the owner's addresses; where the host allows it, another may be typed. Without any, a line."""
    label = strings("page")["settings"]["engine"][name]
    if not addresses:
        return gr.Textbox("", label=label, info=info, elem_id=name, max_lines=1)
    return gr.Dropdown(
        [(one or "–", one) for one in addresses],
        value=addresses[0],
        label=label,
        info=info,
        elem_id=name,
        allow_custom_value=any_server,
        filterable=any_server,
    )


def server_choices() -> tuple[tuple[str, ...], bool]:
    """The addresses that the owner lists, and whether any other may be typed. A list that cannot be read is none."""
    try:
        return listed_addresses(), allowed_addresses() is None
    except ServerError:
        return (), False


def check_server(settings: Mapping[str, Any], address: Any, plain: Any, key: Any) -> WatchRequest:
    """The request, or an InputError. Whether this host may ask those servers is checked when they are asked."""
    address, plain, key = stripped(address, plain, key)
    if not address:
        raise InputError(say("no_server"))
    values = {name: check_setting(one, settings[name]) for name, one in SETTINGS.items() if one.sampling}
    return WatchRequest(check_prompt(settings["prompt"]), sampling(values), address, plain, key)


def for_visitor(leads: bool) -> Any:
    """An update of the choice: whoever `leads` a class has this page's engine."""
    return gr.update(value=OWN) if leads and limits().in_browser else gr.skip()
