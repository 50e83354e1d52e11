"""Write a run as one HTML file that plays anywhere, also in slides, and makes no network requests.

The file contains the page's player and cycle view, their modules, and the run as data. `escaped` is applied to data and
words, so that even a token `</script>` cannot become markup.
"""

import base64
import re
from functools import cache

from ..traces.file import escaped, Trace
from .components.drawn import as_json
from .components.player import player_words
from .gateway.gradio_private import font
from .scripts import inline_modules
from .text import asset, filled, language, strings, TAGS

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
    return filled(
        "traces/standalone.html",
        words=strings("page"),
        language=TAGS[language()],
        heading=" ".join(trace.header.prompt[:TITLE].split()),
        home=home if ADDRESS.fullmatch(home) else "",
        style=fonts() + asset("shared/style.css") + asset("race/race.css") + asset("step/step.css"),
        data=escaped(as_json(data)),
        modules=inline_modules("race/", "step/", "shared/arrival"),
    )


@cache
def fonts() -> str:
    """Write CSS rules that contain the font files. If a file is missing, the reader's own font is used."""
    return "".join(
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; '
        f"src: url(data:font/woff2;base64,{base64.b64encode(content).decode()}) }}\n"
        for family, weight, name in FONTS
        if (content := font(name))
    )
