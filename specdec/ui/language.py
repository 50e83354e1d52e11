"""A page for each language: `/` is the English one, `/zh` the Chinese one. Who comes is sent to the one that fits.

`?lang=zh` or `?lang=en` decides; without it, at `/`, what the browser prefers. The address holds the choice, so that a
reload keeps it and nothing need be stored.
"""

from __future__ import annotations

from starlette.datastructures import Headers, QueryParams
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from .text import ENGLISH, LANGUAGES

PATHS = {language: "/" if language == ENGLISH else f"/{language}" for language in LANGUAGES}
LANGUAGE_AT = {path: language for language, path in PATHS.items()}


class LanguageRedirect:
    """Middleware that shows visitors the way to their page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.app
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in PATHS.values():
            query, wanted = scope["query_string"].decode("latin-1"), fitting(scope)
            if scope["path"] != PATHS[wanted]:
                way = f".{PATHS[wanted]}?{query}"  # relative: the app may be served below any prefix
                answer = RedirectResponse(way, headers={"Vary": "Accept-Language", "Cache-Control": "no-store"})
        await answer(scope, receive, send)


def fitting(scope: Scope) -> str:
    """The language of the page for this request."""
    asked = known(QueryParams(scope["query_string"]).get("lang", ""))
    here = LANGUAGE_AT[scope["path"]]
    return asked or (preferred(Headers(scope=scope).get("accept-language", "")) if here == ENGLISH else here)


def preferred(accepted: str) -> str:
    """The first of our languages in a header such as `zh-CN,zh;q=0.9,en;q=0.8`; English if none is."""
    weighed = [(weight(part), known(part.partition(";")[0])) for part in accepted.split(",")]
    return max(((w, name) for w, name in weighed if name and w > 0), key=lambda one: one[0], default=(0, ENGLISH))[1]


def weight(part: str) -> float:
    try:
        return float(part.partition("q=")[2] or 1)
    except ValueError:
        return 0.0


def known(tag: str) -> str:
    """`zh` of `zh-CN`; "" for a language that the page does not have."""
    language = tag.strip().lower().partition("-")[0]
    return language if language in LANGUAGES else ""
