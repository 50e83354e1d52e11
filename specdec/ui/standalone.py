"""Write a run as one HTML file that plays anywhere, also in slides, and makes no network requests.

The file contains the page's player and cycle view, their modules, and the run as data. `escaped` is applied to data and
words, so that even a token `</script>` cannot become markup.
"""

import base64
import html
import re
from functools import cache

from ..traces.file import escaped, Trace
from .components.drawn import as_json
from .components.player import player_words
from .gateway.gradio_private import font
from .scripts import inline_modules
from .text import language, PAGE, strings, TAGS

TITLE = 80  # characters of the prompt in the page's title
# The app's fonts: family, weight, file. The bold file also serves as semi-bold, whose own file lacks most letters.
FONTS = (
    ("IBM Plex Sans", 400, "IBMPlexSans/IBMPlexSans-Regular"),
    ("IBM Plex Sans", 600, "IBMPlexSans/IBMPlexSans-Bold"),
    ("IBM Plex Mono", 400, "IBMPlexMono/IBMPlexMono-Regular"),
)
ADDRESS = re.compile(r"https?://[^\s\"'<>]{1,500}")


def standalone(trace: Trace, home: str = "") -> str:
    """Write a page that plays the run. It links to `home`, the page that made it, if that is a web address."""
    data = {
        "player": {"value": trace.dumps(), "words": as_json(player_words())},
        "step": {"words": as_json(strings("step"))},
    }
    words = strings("page")
    brand, heading = html.escape(words["brand"]), html.escape(" ".join(trace.header.prompt[:TITLE].split()))
    parts = {
        "language": TAGS[language()],
        "title": f"{heading} · {brand}",
        "heading": heading,
        "brand": f'<a href="{html.escape(home)}">{brand}</a>' if ADDRESS.fullmatch(home) else brand,
        "tagline": html.escape(words["tagline"]),
        "style": fonts() + asset("shared/style.css") + asset("race/race.css") + asset("step/step.css"),
        "data": escaped(as_json(data)),
        "modules": inline_modules("race/", "step/", "shared/arrival"),
    }
    return filled("traces/standalone.html", parts)


def filled(template: str, parts: dict[str, str]) -> str:
    """Fill in the places `@@NAME@@` of a template, including the player and the cycle view."""
    parts |= {"player": asset("race/player.html"), "step": asset("step/step.html")}
    return re.sub(r"@@(\w+)@@", lambda place: parts[place[1]], asset(template))


@cache
def fonts() -> str:
    """Write CSS rules that contain the font files. If a file is missing, the reader's own font is used."""
    return "".join(
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; '
        f"src: url(data:font/woff2;base64,{base64.b64encode(content).decode()}) }}\n"
        for family, weight, name in FONTS
        if (content := font(name))
    )


def asset(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
