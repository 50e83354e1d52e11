"""Identify visitors by address, and limit their runs. Addresses stay in the memory of this process."""

import ipaddress
import threading
import time
from collections import deque
from collections.abc import Mapping
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
        """Return the seconds until this address may run again. If that is 0, count the run."""
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
    return address_of(gradio_private.scope())


def has_queue_priority() -> bool:
    """Say whether the visitor goes first: a class's teacher, or else who sits at this machine."""
    scope = gradio_private.scope()
    if LEADS in scope:
        return bool(scope[LEADS])
    is_public = exposure.host.exposure == "public"  # a proxy on this machine can pass on strangers' requests
    return not is_public and address_of(scope) in ("127.0.0.1", "::1")


def address_of(scope: Mapping[str, Any]) -> str:
    return network_of((scope.get("client") or ("",))[0])


def network_of(address: str) -> str:
    """Return an IPv4 address, or an IPv6 address's /64 network, often one machine's."""
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped or ip.is_loopback:
        return str(ip.ipv4_mapped or ip)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
