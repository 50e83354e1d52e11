"""Redirect visitors to the page in their language: `/` is in English, `/zh` in Chinese.

`?lang=zh` or `?lang=en` decides. Without it, the browser's preference decides at `/`.
"""

import re

from starlette.datastructures import Headers, QueryParams
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..text import ENGLISH, LANGUAGES

PATHS = {language: "/" if language == ENGLISH else f"/{language}" for language in LANGUAGES}
LANGUAGE_AT = {path: language for language, path in PATHS.items()}


class LanguageRedirect:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.app
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in LANGUAGE_AT:
            query, here = scope["query_string"].decode("latin-1"), LANGUAGE_AT[scope["path"]]
            by_browser = preferred(Headers(scope=scope).get("accept-language", ""))
            wanted = supported(QueryParams(query).get("lang", "")) or (by_browser if here == ENGLISH else here)
            if wanted != here:
                address = f".{PATHS[wanted]}?{query}"  # relative, because the app may be served below any prefix
                answer = RedirectResponse(address, headers={"Vary": "Accept-Language", "Cache-Control": "no-store"})
        await answer(scope, receive, send)


def preferred(accepted: str) -> str:
    """Return the best language of a header such as `zh-CN,zh;q=0.9`, or English."""
    return next(filter(None, map(supported, by_weight(accepted))), ENGLISH)


def by_weight(accepted: str) -> list[str]:
    """Return a header's values in lower case, those of highest q first, without q=0."""
    weights = {}
    for part in accepted.lower().split(","):
        value, _, parameters = part.partition(";")
        weight = re.search(r"q=(\d(\.\d+)?)", parameters)
        weights[value.strip()] = float(weight[1]) if weight else 1.0
    return sorted(filter(weights.get, weights), key=lambda value: -weights[value])


def supported(tag: str) -> str:
    """Return the language of a tag such as `zh-CN`; "" for a language that the page does not have."""
    language = tag.strip().lower().partition("-")[0]
    return language if language in LANGUAGES else ""
