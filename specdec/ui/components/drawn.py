"""A part of the page that files draw: `assets/page/NAME.html` is its template, `NAME.js` beside it all that it does."""

from __future__ import annotations

import json
import re
from typing import Any

import gradio as gr

from ..text import PAGE, strings

REQUIRED = re.compile(r'require\("(\./\w+|\.\./(?:shared/\w+|theory/formulas))\.js"\)')
INDENT = re.compile(r"^ +", re.MULTILINE)
COMMENT = re.compile(r"^ *(?://[^\n]*|/\*(?:(?!\*/).)*\*/ *)?\n", re.MULTILINE | re.DOTALL)
BREAK = re.compile(r"^((?:(?!//)[^\n])*?)(?:,?\n(?=[)\]}])|(?<=[,(\[{])\n)", re.MULTILINE)  # within a statement
REMARK = re.compile(r" +// (?:[^\n\"'`]|\b'\b)*$", re.MULTILINE)  # at a line's end; a text's quote would follow
PLAYER = 'document.querySelector(".sd-player").kit'  # what the player shares: `require("../race/player.js")` in Node
LOADER = f"""const files = {{}}, require = (name) => files[name] || {PLAYER};
const file = (name, run, module = {{}}) => (run(module), files[name] = module.exports);"""


def drawn(
    name: str, value: Any = "", words: dict[str, Any] | str | None = None, template: str = "", **properties: Any
) -> gr.HTML:
    """With the words of that name, or those; `properties` are what its script finds in `props`, and `elem_id`. A page
    that must hold its words before any script runs hands its `template` in.

    Objects and lists arrive as JSON text: Gradio would wrap each of theirs in a proxy, and those are slow.
    """
    properties["words"] = strings(name.rpartition("/")[2]) if words is None else words
    texts = {
        key: as_text(content)
        for key, content in properties.items()
        if isinstance(content, (dict, list)) and key != "server_functions"
    }
    return gr.HTML(
        value,
        html_template=template or lean((PAGE / f"{name}.html").read_text(encoding="utf-8")),
        js_on_load=script(name),
        apply_default_css=False,
        **properties | texts,
    )


def as_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def handler(name: str, **properties: Any) -> str:
    """What an event runs in the browser (its `js`): the function that `handlers/NAME.js` makes of `properties`."""
    source, made = script(f"handlers/{name}"), f"module.exports.handler({as_text(properties)})"
    return f"((module) => {{\n{source}\nreturn {made}; }})({{ exports: {{}} }})"


def as_function(arguments: str, body: str) -> str:
    """An expression of the browser's."""
    return f"function ({arguments}) {{\n{body}\n}}"


def lean(source: str) -> str:
    """A script, style or template without indentation, empty lines and comments: these are the repository's."""
    return INDENT.sub("", REMARK.sub("", COMMENT.sub("", source)))


def tight(source: str) -> str:
    """A lean script without the line breaks, and commas, behind what opens or before what closes."""
    return BREAK.sub(r"\1", source)


def script(name: str) -> str:
    """`assets/page/NAME.js` and the files of its folder, of `shared`, and the formulas, as far as it requires them: the
    body of one function.

    The browser sees what Node sees: each file is a module with names of its own, run once, after those that it
    requires; those of other folders require none. No other file is joined: `require("../race/player.js")`
    is the kit of the player on the page.
    """
    folder, _, last = name.rpartition("/")
    files: dict[str, str] = {}

    def join(one: str) -> None:
        source = lean((PAGE / folder / f"{one}.js").read_text(encoding="utf-8"))
        for other in REQUIRED.findall(source):
            if other not in files:
                join(other)
        files[one] = source

    join(f"./{last}")
    if len(files) == 1:
        return tight(files[f"./{last}"])
    modules = (f"file('{one}.js', (module) => {{{tight(source)}}});" for one, source in files.items())
    return "\n".join([LOADER, *modules])
