"""A key goes to its server, to a plain one on the same host, and nowhere else, whoever connects."""

from __future__ import annotations

import pytest
from callers import CALLERS, importers, KEY, keys_sent, ROOT

from specdec.servers.base import ServerError
from specdec.servers.connect import connect_pair, takes_key


def test_nobody_connects_beside_the_callers_below() -> None:
    assert importers("connect_pair") == set(CALLERS)
    assert not importers("connect")
    makers = {one for one in importers("Client", "stream") if "Client(" in (ROOT / one).read_text()}
    assert makers == {"servers/connect.py"}


@pytest.mark.parametrize("caller", CALLERS)
def test_the_key_goes_to_its_own_host_alone(caller: str) -> None:
    assert keys_sent(CALLERS[caller], "127.0.0.1") == ({f"Bearer {KEY}"}, {f"Bearer {KEY}"})
    assert keys_sent(CALLERS[caller], "localhost") == ({f"Bearer {KEY}"}, {""})


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_that_sends_requests_on_takes_no_key_along(caller: str, host: str) -> None:
    assert keys_sent(CALLERS[caller], host, redirected=True) == ({f"Bearer {KEY}"}, set())


@pytest.mark.parametrize(
    ("address", "plain", "taken"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8001", True),  # two servers of one machine
        ("https://gpu.example", "https://GPU.example:8443/v1", True),
        ("http://gpu.example", "https://gpu.example", True),
        ("https://gpu.example", "http://gpu.example:8001", False),  # in clear, where the first is not
        ("http://127.0.0.1:8000", "http://localhost:8001", False),  # names are compared, not looked up
        ("http://gpu.example", "http://gpu.example.evil:8000", False),
        ("http://gpu.example", "http://other.gpu.example", False),
        ("http://[::1]:8000", "http://[::1]:8001", True),
        ("http://[::1]:8000", "http://127.0.0.1:8000", False),
    ],
)
def test_where_a_key_may_go(address: str, plain: str, taken: bool) -> None:
    assert takes_key(plain, address) is taken


def test_what_is_no_address_is_refused_before_the_first_is_asked() -> None:
    with pytest.raises(ServerError, match="begins with http"):
        connect_pair("http://127.0.0.1:1", "nowhere", KEY)
