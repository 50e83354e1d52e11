"""A request goes to the address that was typed, and nowhere else."""

from __future__ import annotations

import pytest

from specdec.servers.base import ServerError
from specdec.servers.connect import connect, origin
from tests.servers.stub import Reply, Stub


def test_requests_go_past_the_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(lambda _: Reply.of({"data": []})) as stub, Stub(lambda _: Reply.of({})) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        with pytest.raises(ServerError, match="names no model"):
            connect(stub.address)
        assert len(stub.asked) == 1 and not proxy.asked


def test_an_address_has_one_form() -> None:
    assert origin(" HTTP://Example.com:80/v1/ ") == "http://example.com"
    assert origin("https://[::1]:8000") == "https://[::1]:8000"


@pytest.mark.parametrize("address", ["", "127.0.0.1:8000", "ftp://x", "http://", "http://a:b@x", "http://x/path",
                                     "http://x?y", "http://x:99999"])  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(ServerError, match=r"address"):
        connect(address)
