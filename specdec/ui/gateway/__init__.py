"""Limit what visitors may request. Add only checks that the threat model in CONTRIBUTING.md requires.

`guard` limits requests, `visitors` the runs of an address, and `turns` decides who uses the machine. `first`, `cache`
and `language` prepare the page that is sent. Only `gradio_private` uses undocumented parts of Gradio.
"""

import os

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from .cache import Cache
from .guard import allowed_hosts, Guard, trusted_proxies
from .language import LanguageRedirect


def middleware(listening: str) -> list[Middleware]:
    """List the app's middleware, the outermost first. Raises ValueError for a wrong address in SPECDEC_PROXIES."""
    os.environ["FORWARDED_ALLOW_IPS"] = trusted_proxies()  # uvicorn reads it when the app is launched
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts(listening), www_redirect=False),
        Middleware(Guard),
        Middleware(LanguageRedirect),
        Middleware(Cache),
        Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=6),
    ]
