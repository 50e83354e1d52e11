"""Write the first screen into the page's HTML, and the title, sentence and picture for previews of links.

Gradio loads a megabyte of scripts. Until Gradio has mounted the page, the browser shows the first screen, which
`assets/page/shared/first.js` draws. Then the first screen's player moves into Gradio's page.
"""

import html
from functools import cache

from ..scripts import link_modules
from ..text import ASSETS, PAGE, speaking, strings, TAGS
from .gradio_private import address_in, before_app, scripts, with_head

PICTURE = ASSETS / "preview.png"
PREVIEW = "/preview.png"  # the picture's path on the server


def with_first_screen(page: bytes, language: str) -> bytes:
    """Replace Gradio's title and link preview by ours, add a description, and put the first screen before the app.

    The head begins with our import map, and with preload links for all scripts that the page waits for.
    """
    page = with_head(page, tags(language, address_in(page) + PREVIEW).encode())
    preloads = "".join(f'<link rel="modulepreload" href="./assets/{name}" crossorigin>' for name in scripts())
    page = page.replace(b"<head>", f"<head>{link_modules()}{preloads}".encode(), 1)
    return before_app(page, screen(language))


def tags(language: str, picture: str) -> str:
    """Write the tags for title, description and link preview. `picture` is the address of the preview's image."""
    with speaking(language):
        words = strings("page")
    title, about, brand, alt = map(
        html.escape, (words["title"], f"{words['headline']} {words['lead']}", words["brand"], words["preview"])
    )
    return f"""<title>{title}</title>
<meta name="description" content="{about}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="{brand}">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{about}">
<meta property="og:image" content="{html.escape(picture)}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="{alt}">
<meta property="og:locale" content="{TAGS[language].replace("-", "_")}">
<meta name="twitter:card" content="summary_large_image">"""


@cache
def screen(language: str) -> bytes:
    template, script = ((PAGE / f"shared/first.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
    with speaking(language):
        waiting = html.escape(strings("page")["waiting"])
    return template.replace("@@waiting@@", waiting).replace("@@script@@", script).encode()
