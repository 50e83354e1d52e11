"""Write the first screen into the page's HTML, and the title, sentence and picture for previews of links.

Gradio loads a megabyte of scripts. Until Gradio has mounted the page, the browser shows the first screen, which
`assets/page/shared/first.js` draws. Then the first screen's player moves into Gradio's page.
"""

from functools import cache

from ..scripts import link_modules
from ..text import ASSETS, filled, speaking, strings, TAGS
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
    return filled("shared/tags.html", words=words, picture=picture, locale=TAGS[language].replace("-", "_"))


@cache
def screen(language: str) -> bytes:
    with speaking(language):
        return filled("shared/first.html", words=strings("page")).encode()
