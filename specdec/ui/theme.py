"""The theme of Gradio's own widgets, and the settings of `launch`."""

import os
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from . import browser
from .classroom import Classroom, Room
from .gateway.cache import Cache, LanguageRedirect
from .gateway.guard import allowed_hosts, Guard, trusted_proxies
from .tabs import TABS
from .text import asset, PAGE

WEIGHTS = (400, 700)  # Gradio's semi-bold file, 600, lacks most letters
CHINESE = ["PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC"]
TAB_STYLES = [f"{name}/{name}" for name in ("traces", *TABS) if (PAGE / f"{name}/{name}.css").exists()]
STYLES = ("shared/style", *TAB_STYLES, "shared/access", "shared/first")
CLASS = ("class/question", "class/teacher")
# Our colour -> Gradio's variables that get it. `shared/style.css` sets our colours for light and dark.
COLOURS = {
    "page": "body_background_fill background_fill_primary block_background_fill input_background_fill "
    "input_background_fill_focus panel_background_fill",
    "surface": "background_fill_secondary button_secondary_background_fill button_secondary_background_fill_hover",
    "line": "block_border_color border_color_primary",
    "line-2": "input_border_color button_secondary_border_color",
    "ink": "body_text_color button_secondary_text_color",
    "ink-2": "block_label_text_color block_title_text_color block_info_text_color body_text_color_subdued "
    "input_placeholder_color button_secondary_border_color_hover",
}


class SwappedFont(gr.themes.LocalFont):
    """Gradio's copy of a font. Until it is loaded, text is shown in a system font."""

    def stylesheet(self) -> dict[str, Any]:
        sheet = super().stylesheet()
        return sheet | {"css": sheet["css"].replace("font-style: normal;", "font-style: normal; font-display: swap;")}


def theme() -> gr.themes.Base:
    colours = {name: f"var(--sd-{our_name})" for our_name, names in COLOURS.items() for name in names.split()}
    colours |= {f"{name}_dark": colour for name, colour in colours.items()}
    sans, mono = (SwappedFont(name, WEIGHTS) for name in ("IBM Plex Sans", "IBM Plex Mono"))
    return gr.themes.Default(
        primary_hue="indigo",
        secondary_hue="slate",
        neutral_hue="slate",
        font=[sans, "ui-sans-serif", "system-ui", *CHINESE, "sans-serif"],
        font_mono=[mono, "ui-monospace", *CHINESE, "monospace"],
    ).set(
        **colours,
        block_shadow="none",
        block_radius="8px",
        input_radius="6px",
        button_large_radius="7px",
        button_small_radius="99px",
        block_border_width="1px",
        block_label_text_size="13.5px",
        block_title_text_size="13.5px",
        block_title_text_weight="400",
        button_primary_background_fill="#4338ca",
        button_primary_background_fill_hover="#3730a3",
        button_primary_background_fill_dark="#4f46e5",
        button_primary_background_fill_hover_dark="#4338ca",
        button_primary_text_color="#ffffff",
        slider_color="#4338ca",
        slider_color_dark="#818cf8",
    )


def launch_settings(room: Room | None = None, host: str = "") -> dict[str, Any]:
    """Return the settings of `launch`. Raises ValueError for a wrong address in SPECDEC_PROXIES."""
    os.environ["FORWARDED_ALLOW_IPS"] = trusted_proxies()  # uvicorn reads it when the app is launched
    middleware = [  # the outermost first
        Middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts(host), www_redirect=False),
        Middleware(Guard),
        Middleware(LanguageRedirect),
        Middleware(Cache),
        Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=6),
    ]
    if room:
        middleware.append(Middleware(Classroom, room=room))
    return {
        "theme": theme(),
        "head": f"<style>{asset('shared/root.css')}</style>",
        "css": "".join(asset(f"{name}.css") for name in (*STYLES, *(CLASS if room else ()))),
        "run_history": False,
        "enable_monitoring": False,
        "max_file_size": "1mb",
        "allowed_paths": [],
        "strict_cors": True,
        "ssr_mode": False,
        "share": False,
        "state_session_capacity": 80,  # every API call creates a session
        "max_threads": 64,  # leaves threads for the page while the queue is full
        "footer_links": ["api"],
        "app_kwargs": {"routes": [browser.route()], "middleware": middleware},
    }
