"""Identify visitors by address, and limit their runs. Addresses stay in the memory of this process."""

import ipaddress
import threading
import time
from collections import deque
from typing import Any

from ... import exposure
from . import gradio_private

MINUTE_S = 60.0
LEADS = "specdec.leads"  # in class mode, scope[LEADS] says whether the teacher sent the request


class RateLimit:
    def __init__(self) -> None:
        self._runs = deque[tuple[float, str]]()  # time and address, oldest first
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> float:
        """Return the seconds until this address may begin another run. If that is 0, count the run."""
        with self._lock:
            now = time.monotonic()
            while self._runs and now - self._runs[0][0] >= MINUTE_S:
                self._runs.popleft()
            theirs = [begun for begun, other in self._runs if other == address]
            if len(theirs) >= exposure.limits().runs_of_address:
                return theirs[0] + MINUTE_S - now
            self._runs.append((now, address))
            return 0.0


def visitor_address() -> str:
    """Return the address of the visitor whose request is being answered; "" outside of a request."""
    request = gradio_private.request()
    return address_of(request) if request else ""


def has_queue_priority() -> bool:
    """Whether the visitor goes before all others: in class mode the teacher, otherwise a user at this machine.

    On a public page, requests from this machine have no priority, because a proxy here can pass on strangers' requests.
    """
    request = gradio_private.request()
    if request is None:
        return False
    scope = gradio_private.scope_of(request)
    if LEADS in scope:
        return bool(scope[LEADS])
    return exposure.host.exposure != "public" and address_of(request) in ("127.0.0.1", "::1")


def address_of(request: Any) -> str:
    return network_of(request.client.host if request.client else "")


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, and the /64 network of an IPv6 address, which often belongs to one machine."""
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped or ip.is_loopback:
        return str(ip.ipv4_mapped or ip)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
