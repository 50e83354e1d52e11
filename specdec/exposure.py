"""Says who can reach this page, and what a stranger may do there: one table of all that depends on who visits.

Request bodies, host names, proxies, pairs of models, places in the queue and the size of a run are bounded by it. What
holds for everybody is in `settings.py` and `types.py`.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, replace

SPACE = "SPACE_ID"  # set on every Hugging Face Space
EXPOSURE = "SPECDEC_EXPOSURE"  # a name of TABLE; the command line sets it, and its children inherit it


@dataclass(frozen=True)
class Exposure:
    """A row of the table: what a visitor of such a page may ask for.

    Behind one address there may be a whole class, so bounds by address are wide.
    """

    prompt: int = 4_000  # characters
    tokens: int = 256  # new ones in a run
    k: int = 16
    seconds: float = 60.0  # of a run
    waiting: int = 32  # people in the queue
    runs_of_address: int = 10_000  # a minute
    any_pair: bool = True  # may name any pair of models, folders too; otherwise only those in SPECDEC_PAIRS
    body: int = 8_000_000  # bytes of a request
    in_browser: bool = False  # runs are computed in the visitor's browser, unless he chooses otherwise
    any_host: bool = False  # answers to any name; otherwise only to this machine's, and those in SPECDEC_HOSTS


OWN = Exposure()
NETWORK = replace(
    OWN,
    any_host=True,
    any_pair=False,
)
CLASS = replace(NETWORK, in_browser=True)
PUBLIC = replace(
    NETWORK,
    prompt=2_000,
    tokens=128,
    k=8,
    seconds=30.0,
    runs_of_address=60,
)
TABLE = {"own": OWN, "network": NETWORK, "class": CLASS, "public": PUBLIC}


def name() -> str:
    """Which row holds here: "own" (this machine only), "network" (--host), "class" or "public" (--public, a Space)."""
    if os.environ.get("SPECDEC_PUBLIC") or SPACE in os.environ:
        return "public"
    chosen = os.environ.get(EXPOSURE, "own")
    return chosen if chosen in TABLE else "public"


def row_of(host: str, teaching: bool = False) -> str:
    """The row for a page that listens at `host`. OSError or UnicodeError where that is no address."""
    if teaching:
        return "class"
    resolved = socket.getaddrinfo(host.strip("[]"), None)
    addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in resolved]
    return "own" if all(one.is_loopback for one in addresses) else "network"


def limits() -> Exposure:
    return TABLE[name()]


def is_public() -> bool:
    """Whether strangers come: `--public` (SPECDEC_PUBLIC), or a Space."""
    return name() == "public"
