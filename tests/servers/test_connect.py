"""No request of a public host goes where a visitor chose."""

from __future__ import annotations

import pytest
from stub import Reply, Stub

from specdec.servers.base import ServerError
from specdec.servers.connect import allowed_addresses, connect, origin


@pytest.fixture(autouse=True)
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_PUBLIC", "1")
    monkeypatch.delenv("SPECDEC_SERVERS", raising=False)


def test_a_public_host_asks_nobody_by_itself() -> None:
    assert allowed_addresses() == ()
    with Stub(lambda _: Reply.of({})) as stub:
        with pytest.raises(ServerError, match="only the servers that its owner lists"):
            connect(stub.address)
        assert not stub.asked


def test_ones_own_machine_asks_anybody_and_a_space_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECDEC_PUBLIC")
    assert allowed_addresses() is None
    monkeypatch.setenv("SPACE_ID", "somebody/space")
    assert allowed_addresses() == ()


def test_what_is_listed_is_asked_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(lambda _: Reply.of({"data": []})) as stub, Stub(lambda _: Reply.of({})) as proxy:
        monkeypatch.setenv("SPECDEC_SERVERS", f"https://other.example, {stub.address}/v1/")
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        assert allowed_addresses() == ("https://other.example", stub.address)
        with pytest.raises(ServerError, match="names no model"):
            connect(stub.address)
        assert len(stub.asked) == 1 and not proxy.asked
        port = stub.address.rsplit(":", 1)[1]
        for other in (f"http://localhost:{port}", f"http://127.0.0.1:{int(port) - 1}", f"https://127.0.0.1:{port}"):
            with pytest.raises(ServerError, match="only the servers"):
                connect(other)


def test_an_address_has_one_form() -> None:
    assert origin(" HTTP://Example.com:80/v1/ ") == "http://example.com"
    assert origin("https://[::1]:8000") == "https://[::1]:8000"


@pytest.mark.parametrize("address", ["", "127.0.0.1:8000", "ftp://x", "http://", "http://a:b@x", "http://x/path",
                                     "http://x?y", "http://x:99999"])  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(ServerError, match=r"address"):
        connect(address)
