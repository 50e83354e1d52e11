"""Limit what visitors may do, depending on who can reach the page: only this machine, its network, a class, or anyone.

The limits that are the same for everybody are in `settings.py` and `types.py`.
"""

import ipaddress
import os
import socket
from dataclasses import dataclass, replace

SPACE = "SPACE_ID"  # set on every Hugging Face Space


@dataclass(frozen=True)
class Exposure:
    """The limits for visitors of a page. The defaults are for a page that only this machine reaches."""

    prompt: int = 4_000  # characters
    tokens: int = 256  # new tokens of a run
    k: int = 16  # the largest K
    seconds: float = 60.0  # duration of a run
    waiting: int = 32  # people in the queue
    runs_of_address: int = 10_000  # runs a minute from one IP address, which a class can share
    any_pair: bool = True  # visitors may name any pair, even a folder, unless SPECDEC_PAIRS lists some
    body: int = 8_000_000  # bytes of a request
    in_browser: bool = False  # runs are computed in the visitor's browser, unless the visitor chooses this machine
    any_host: bool = False  # answer requests to any host name, not only this machine's and SPECDEC_HOSTS


OWN = Exposure()
NETWORK = replace(OWN, any_host=True, any_pair=False)
CLASS = replace(NETWORK, in_browser=True)
PUBLIC = replace(NETWORK, prompt=2_000, tokens=128, k=8, seconds=30.0, runs_of_address=60)
TABLE = {"own": OWN, "network": NETWORK, "class": CLASS, "public": PUBLIC}


@dataclass(frozen=True)
class Host:
    """What the host of this process's page has decided: a key of TABLE, and pairs of models."""

    exposure: str = "own"
    pair: str = ""  # the page begins with it; "": with the usual one
    pairs: tuple[str, ...] | None = None  # visitors may name these; None: the exposure decides

    @classmethod
    def from_environment(cls) -> "Host":
        is_public = os.environ.get("SPECDEC_PUBLIC", "") not in ("", "0") or SPACE in os.environ
        names = os.environ.get("SPECDEC_PAIRS")
        pairs = None if names is None else tuple(name.strip() for name in names.split(","))
        return cls("public" if is_public else "own", os.environ.get("SPECDEC_PAIR", "").strip(), pairs)


host = Host.from_environment()


def set_host(exposure: str, pair: str) -> None:
    """Set what the command line decides, before the page is built. A page that is public already stays so."""
    global host
    host = replace(host, exposure="public" if host.exposure == "public" else exposure, pair=pair)


def name_for(address: str) -> str:
    """Return the key of the row of a page at `address`. Raises OSError or UnicodeError for a bad address."""
    resolved = socket.getaddrinfo(address.strip("[]"), None)
    addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in resolved]
    return "own" if all(address.is_loopback for address in addresses) else "network"


def limits() -> Exposure:
    return TABLE[host.exposure]
