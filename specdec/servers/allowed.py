"""Where requests may go. A page for this machine alone asks any server; every other only those that its owner lists.

SPECDEC_SERVERS holds addresses, commas between. There a name is looked up once, and may mean no machine of the host's
own network: such a one must be listed by its number.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from urllib.parse import urlsplit

from ..exposure import limits
from .base import ServerError
from .stream import origin, PORTS

LISTED = "SPECDEC_SERVERS"


def listed() -> tuple[str, ...]:
    """The owner's addresses. ServerError where one of them is no address."""
    said = os.environ.get(LISTED, "")
    return tuple(dict.fromkeys(origin(address) for address in said.split(",") if address.strip()))


def addresses() -> tuple[str, ...] | None:
    """Those that may be asked; None for any."""
    return None if limits().any_server else listed()


def permit(*asked: str | None) -> None:
    """ServerError where one of these is no address, or may not be asked; "" and None are no server. Nothing is sent."""
    places, known = [origin(address) for address in asked if address], addresses()
    if known is not None and not set(places) <= set(known):
        raise ServerError(
            "This page asks only the servers that its owner lists, as in SPECDEC_SERVERS=http://127.0.0.1:8000."
        )


def checked(place: str) -> str | None:
    """The one IP address that requests to `place` (an origin) go to; None where any will do. Else ServerError."""
    permit(place)
    if addresses() is None:
        return None
    parts = urlsplit(place)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = [ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError, ValueError):
        raise ServerError("The server's name is not known.") from None
    found = [getattr(ip, "ipv4_mapped", None) or ip for ip in found]
    if not found or not all(ip.is_global and not ip.is_multicast for ip in found):
        raise ServerError(
            "The server's name leads into this host's own network. Its owner can list it by its number instead."
        )
    return str(found[0])
