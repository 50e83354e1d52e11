"""No request of a public host goes where a visitor chose."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from stub import Reply, Stub

from specdec.servers.base import ServerError
from specdec.servers.connect import allowed_addresses, connect, pinned_ip
from specdec.servers.stream import Client, Limits

QUICK = Limits(attempts=1)


@pytest.fixture(autouse=True)
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_PUBLIC", "1")
    monkeypatch.delenv("SPECDEC_SERVERS", raising=False)


def known_as(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
    """What the name comes to mean: at each look-up the next answer."""
    told = iter(answers)

    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in next(told)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


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


@pytest.mark.parametrize(
    "ip",
    [
        "127.0.0.1",
        "10.0.0.7",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "fd00::1",
        "::ffff:10.0.0.7",
        "224.0.0.1",
    ],
)
def test_a_listed_name_leads_nowhere_private(ip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_SERVERS", "http://gpu.example:8000")
    known_as(monkeypatch, ["93.184.215.14", ip])
    with pytest.raises(ServerError, match="into this host's own network"):
        pinned_ip("http://gpu.example:8000")


def test_a_private_number_may_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_SERVERS", "http://10.0.0.7:8000")
    assert pinned_ip("http://10.0.0.7:8000") == "10.0.0.7"


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come to mean another machine (DNS rebinding): requests still go to the first."""
    monkeypatch.setenv("SPECDEC_SERVERS", "http://gpu.example:8000")
    known_as(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    assert pinned_ip("http://gpu.example:8000") == "93.184.215.14"


def test_requests_go_to_that_number_with_the_name_in_them() -> None:
    with Stub(lambda _: Reply.of({"ok": True})) as stub:
        port = stub.address.rsplit(":", 1)[1]
        client = Client(f"http://nowhere.invalid:{port}", limits=QUICK, ip="127.0.0.1")
        assert client.ask("/x") == {"ok": True}
        assert stub.asked[0].headers["host"] == f"nowhere.invalid:{port}"


def test_an_unknown_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_SERVERS", "http://nowhere.invalid")

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror("nodename")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ServerError, match="name is not known"):
        connect("http://nowhere.invalid")


def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(lambda _: Reply.of({"data": []})) as stub, Stub(lambda _: Reply.of({})) as proxy:
        monkeypatch.setenv("SPECDEC_SERVERS", stub.address)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        with pytest.raises(ServerError, match="names no model"):
            connect(stub.address, limits=QUICK)
        assert not proxy.asked
