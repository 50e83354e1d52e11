"""List the tabs in order. The module NAME builds the tab NAME, with the words in NAME.json."""

from ..text import strings

TABS = ("race", "step", "lossless", "methods", "theory", "guide")


def labels() -> dict[str, str]:
    return {name: strings(name)["tab"] for name in TABS}
