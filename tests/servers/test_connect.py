"""No request of a public host goes where a visitor chose."""

from __future__ import annotations

import pytest
from stub import Reply, Stub

from specdec.servers.base import ServerError
from specdec.servers.connect import allowed_addresses, connect
from specdec.servers.stream import Limits

QUICK = Limits()


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


@pytest.mark.parametrize("space", [False, True])
def test_ones_own_machine_asks_anybody(space: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECDEC_PUBLIC")
    if space:
        monkeypatch.setenv("SPACE_ID", "somebody/space")
    assert allowed_addresses() == (() if space else None)


def test_what_is_listed_is_asked_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(lambda _: Reply.of({"data": []})) as stub:
        monkeypatch.setenv("SPECDEC_SERVERS", f"https://other.example, {stub.address}/v1/")
        assert allowed_addresses() == ("https://other.example", stub.address)
        with pytest.raises(ServerError, match="names no model"):
            connect(stub.address, limits=QUICK)
        assert len(stub.asked) == 1
        port = stub.address.rsplit(":", 1)[1]
        for other in (f"http://localhost:{port}", f"http://127.1:{port}", f"http://127.0.0.1:{int(port) - 1}"):
            with pytest.raises(ServerError, match="only the servers"):
                connect(other, limits=QUICK)
        with pytest.raises(ServerError, match="only the servers"):
            connect(stub.address.replace("http:", "https:"), limits=QUICK)


def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(lambda _: Reply.of({"data": []})) as stub, Stub(lambda _: Reply.of({})) as proxy:
        monkeypatch.setenv("SPECDEC_SERVERS", stub.address)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        with pytest.raises(ServerError, match="names no model"):
            connect(stub.address, limits=QUICK)
        assert not proxy.asked
