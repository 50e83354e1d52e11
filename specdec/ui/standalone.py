"""Write a run as one HTML file that plays anywhere, also in slides, and makes no network requests.

Data and words are `escaped`, so that even a token `</script>` cannot become markup.
"""

import base64
import re
from functools import cache

from ..traces.file import escaped, Trace
from .components.drawn import player_words
from .gateway.gradio_private import font
from .scripts import inline_modules
from .text import as_json, asset, filled, language, strings, TAGS

TITLE = 80  # characters of the prompt in the page's title
# The app's fonts: family, weight, file. The bold file also serves as semi-bold, whose own file lacks most letters.
FONTS = (
    ("IBM Plex Sans", 400, "IBMPlexSans/IBMPlexSans-Regular"),
    ("IBM Plex Sans", 600, "IBMPlexSans/IBMPlexSans-Bold"),
    ("IBM Plex Mono", 400, "IBMPlexMono/IBMPlexMono-Regular"),
)
ADDRESS = re.compile(r"https?://[^\s\"'<>]{1,500}")


def standalone(trace: Trace, home: str = "") -> str:
    """Write a page that plays the run, and links to `home`, if that is a web address."""
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
def fonts(embedded: bool = True) -> str:
    """Write CSS rules for the app's fonts, which contain the files or link them."""
    rules = []
    for family, weight, name in FONTS:
        if content := font(name):  # else the reader's own font is used
            data = f"data:font/woff2;base64,{base64.b64encode(content).decode()}"
            source = f"src: url({data})" if embedded else f"font-display: swap; src: url(static/fonts/{name}.woff2)"
            rules.append(f'@font-face {{ font-family: "{family}"; font-weight: {weight}; {source} }}\n')
    return "".join(rules)
