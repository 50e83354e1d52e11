"""Who may come, and how much. CONTRIBUTING has the threat model; a check that it does not ask for does not belong here.

`guard` bounds what a request brings, `visitors` how often an address may run something, `turns` who has the machine.
`first`, `cache` and `language` make the page that is sent. Only `gradio_private` touches what Gradio does not
document.
"""

from __future__ import annotations

import os

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from .cache import Cache
from .guard import allowed_hosts, Guard, trusted_proxies
from .language import LanguageRedirect


def middleware(listening: str) -> list[Middleware]:
    """List the middleware, outermost first, of an app that listens there. ValueError where a proxy is no address."""
    os.environ["FORWARDED_ALLOW_IPS"] = trusted_proxies()  # uvicorn reads it when the app is launched
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts(listening), www_redirect=False),
        Middleware(Guard),
        Middleware(LanguageRedirect),
        Middleware(Cache),
        Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=6),
    ]
