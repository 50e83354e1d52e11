"""A request goes to the address that was typed, a key to its host as well, and nothing goes anywhere else."""

import contextlib
from pathlib import Path

import pytest

import specdec
from specdec.servers.answers import ServerError
from specdec.servers.connect import connect, connect_pair, origin, takes_key
from tests.servers.stub import Asked, Reply, Stub
from tests.servers.test_bad import KEY, vllm

SOUND = vllm(lambda _: Reply.of({"error": "no"}, 400))  # it says what it is, and writes nothing


def test_nobody_connects_but_by_connect_pair() -> None:
    root = Path(specdec.__file__).parent
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    callers = {name for name, text in texts.items() if "connect_pair(" in text}
    assert callers == {"cli/run.py", "cli/judges.py", "servers/connect.py"}
    assert {name for name, text in texts.items() if " Client(" in text} == {"servers/connect.py"}


@pytest.mark.parametrize(
    ("host", "redirected", "beside"),
    [("127.0.0.1", False, {f"Bearer {KEY}"}), ("localhost", False, {""}), ("127.0.0.1", True, set())],
)
def test_the_key_goes_to_its_own_host_alone(host: str, redirected: bool, beside: set[str]) -> None:
    """`redirected`: the plain server, on the server's own host, sends every request on to another one."""
    with Stub(SOUND) as server, Stub(SOUND) as other:
        place = other.address.replace("127.0.0.1", host)

        def on(asked: Asked) -> Reply:
            return Reply([], 307, headers={"location": place + asked.path})

        with Stub(on) as gate, contextlib.suppress(ServerError):
            connect_pair(server.address, gate.address if redirected else place, KEY)
        here, there = ({one.headers.get("authorization", "") for one in stub.asked} for stub in (server, other))
    assert (here, there) == ({f"Bearer {KEY}"}, beside)


@pytest.mark.parametrize(
    ("address", "plain", "taken"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8001", True),  # two servers of one machine
        ("https://gpu.example", "https://GPU.example:8443/v1", True),
        ("https://gpu.example", "http://gpu.example:8001", False),  # in clear, where the first is not
        ("http://127.0.0.1:8000", "http://localhost:8001", False),  # names are compared, not looked up
        ("http://gpu.example", "http://gpu.example.evil:8000", False),
        ("http://[::1]:8000", "http://[::1]:8001", True),
    ],
)
def test_where_a_key_may_go(address: str, plain: str, taken: bool) -> None:
    assert takes_key(plain, address) is taken


def test_requests_go_past_the_proxies_of_the_environment(monkeypatch) -> None:
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
    for pair in ((address, ""), ("http://127.0.0.1:1", address)):
        with pytest.raises(ServerError, match="address"):
            connect_pair(*pair, KEY)
