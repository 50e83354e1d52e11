"""Add components: what scripts draw, headings, sentences, tables, notices."""

import html
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gradio as gr

from ...methods import METHODS
from ...traces.file import escaped
from ..text import as_json, asset, of_drafters, strings

# Gradio sets no limit, because visitors wait in the queue of `session`, which shows them their place.
ENGINE: dict[str, Any] = {"concurrency_id": "engine", "concurrency_limit": None}
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
INSTANT: dict[str, Any] = {"queue": False, **PRIVATE}
# Column -> how many decimals it shows, None for words. All other columns show two.
DIGITS = {"method": None, "domain": None, "k": 0, "tokens_per_second": 0, "temperature": 1, "draft_cost": 3}


def drawn(
    name: str,
    value: Any = "",
    words: dict[str, Any] | str | None = None,
    template: str = "",
    events: Sequence[str] = (),
    **properties: Any,
) -> gr.HTML:
    """Add a component that `assets/page/NAME.js` draws into NAME.html or, with words in it, a `template`.

    The script can trigger `events`, and reads `properties` from `props`. By default, `words` are the texts of its tab.
    """
    properties["words"] = strings(name.rpartition("/")[2]) if words is None else words
    texts = {
        key: as_json(content)
        for key, content in properties.items()
        if isinstance(content, (dict, list)) and key != "server_functions"  # Gradio's proxies are slow
    }
    mount = f'import("#page/{name}.js").then((part) => part.mount(element, props, watch, trigger, server));'
    return gr.HTML(
        value,
        html_template=template or asset(f"{name}.html"),
        js_on_load=" ".join([mount, *(f'"{event}";' for event in events)]),  # Gradio triggers only events named there
        apply_default_css=False,
        **properties | texts,
    )


def handler(name: str, **properties: Any) -> str:
    """Write an event's `js`, which calls what `handlers/NAME.js` makes of `properties`."""
    function = f'(await import("#page/handlers/{name}.js")).handler({as_json(properties)})'
    return f"async (...values) => {function}(...values)"


def player(log: str) -> gr.HTML:
    """Make the player, which the caller renders. Its value is the log of a run, a growing NDJSON text.

    Its template is static: Gradio would run values in it as code. `ended` changes when a live run is over. `preparing`
    dims the run on show until a live one begins. "unrecorded" also stops it: the example has no recording.
    """
    return drawn(
        "race/player",
        escaped(log),
        player_words(),
        events=["opened", "tried"],
        elem_id="player",
        ended="",
        preparing=False,
        render=False,
    )


def player_words() -> dict[str, Any]:
    words = strings("player")
    return words | {
        "drafter": of_drafters("lane"),
        "names": of_drafters("name"),
        "methods": {name: {"kind": m.kind, "tree": m.tree} for name, m in METHODS.items()},  # what the scripts use
        "peer": words["peer"] | of_drafters("peer_lane"),
        "say": words["say"] | {"start": of_drafters("start")},
    }


def title(text: str, lead: str = "", level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}>" + (f"<p>{html.escape(lead)}</p>" if lead else "")
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


@contextmanager
def folded(name: str, words: dict[str, Any]) -> Iterator[None]:
    """Add a section that a click opens. `words` has `title`, `lid`, and perhaps `lead`."""
    heading, lid = html.escape(words["title"]), html.escape(words["lid"])
    summary = f"<summary><h2>{heading}</h2><span>{lid}</span></summary>"
    template = f'<details class="sd-fold sd-section" data-fold="{name}">{summary}</details>@children'
    with drawn("shared/fold", words={}, template=template), gr.Column():
        if "lead" in words:
            lines([words["lead"]], elem_classes="sd-about")
        yield


def lines(texts: Sequence[str], **more: Any) -> None:
    """Write paragraphs. What stands between backticks is code."""
    inside = re.sub("`(.*?)`", r"<code>\1</code>", "".join(f"<p>{html.escape(text)}</p>" for text in texts))
    gr.HTML(html_template=f'<div class="sd-lines">{inside}</div>', apply_default_css=False, **more)


def table(caption: str, columns: dict[str, str], value: Any, **more: Any) -> None:
    """Draw a table that can be sorted. `columns` maps names to headings.

    A cell is words, a figure, a figure with the ends of its interval, or None. Figures are tinted by how far they are
    above or below `even`. With `choices`, `value` has the rows of each table.
    """
    digits = [DIGITS.get(name, 2) for name in columns]
    drawn("shared/table", value, {}, caption=caption, heads=list(columns.values()), digits=digits, **more)


def notice(name: str = "notice") -> gr.HTML:
    return drawn("shared/notice", "", {}, elem_id=name, wrong=False, stopped="", share=1.0)


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """Update a notice. `stopped` replaces `words` if the work is stopped now."""
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended(**properties: Any) -> Any:
    """Tell a component, by a value that is always new, that its work is over."""
    return gr.update(ended=str(time.time_ns()), **properties)
