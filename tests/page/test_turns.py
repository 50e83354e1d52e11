"""Who comes next: addresses take turns, who leads goes first, and in a full line an address with many places yields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext
from starlette.requests import Request

from specdec.exposure import EXPOSURE, OWN
from specdec.ui import session, turns, visitors
from specdec.ui.turns import Ticket, Turns

MOST = 8


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setattr(turns, "limits", lambda: replace(OWN, waiting=MOST))
    return Turns({"run": 6.0})


def joined(line: Turns, *addresses: str, leads: bool = False) -> list[Ticket]:
    """Tickets from these addresses; all have their place."""
    tickets = [line.join("run", address, leads) for address in addresses]
    assert all(tickets)
    return tickets  # type: ignore[return-value]


def served(line: Turns, tickets: list[Ticket]) -> list[int]:
    """The order in which these have the machine."""
    order = list[int]()
    while len(order) < len(tickets):
        (now,) = (i for i, one in enumerate(tickets) if i not in order and line.before(one) == (0, 0.0))
        line.leave(tickets[now])
        order.append(now)
    return order


@pytest.mark.parametrize(
    ("addresses", "order"),
    [
        (["a school"] * (MOST + 1), range(MOST + 1)),
        (["a", "a", "a", "a", "b", "b", "c"], [0, 4, 6, 1, 5, 2, 3]),
        ([*["a school"] * 5, "elsewhere", *["a school"] * 3], [0, 5, 1, 2, 3, 4, 6, 7, 8]),
    ],
)
def test_addresses_take_turns_and_those_of_one_come_as_they_came(
    line: Turns, addresses: list[str], order: list[int]
) -> None:
    tickets = joined(line, *addresses)
    line.before(tickets[0])  # it has the machine, which counts as its address's turn
    assert served(line, tickets) == [*order]


def test_who_leads_waits_for_nobody_but_the_one_at_work(line: Turns) -> None:
    tickets = joined(line, "a", "a", "b")
    line.before(tickets[0])
    tickets += joined(line, "a", leads=True)
    assert line.before(tickets[3])[0] == 1 and line.before(tickets[1])[0] == 3  # the one at work, b, and who leads
    assert served(line, tickets) == [0, 3, 2, 1]


def test_a_full_line_has_a_place_for_who_has_fewer(line: Turns) -> None:
    crowd = joined(line, *["a"] * (MOST + 1))
    line.before(crowd[0])
    assert line.join("run", "a") is None
    other = joined(line, *["b"] * (MOST // 2))
    assert line.join("run", "b") is None and line.join("run", "a") is None  # both have as many now
    gone = [one for one in crowd if line.before(one) is None]
    assert gone == crowd[-MOST // 2 :]  # those who came last
    for one in gone:
        line.leave(one)
    assert line.before(other[0])[0] == 1


def test_for_who_leads_there_is_a_place_even_among_addresses_that_have_few(line: Turns) -> None:
    few = joined(line, *(f"address {i}" for i in range(MOST + 1)))
    line.before(few[0])
    assert line.join("run", "one more") is None
    (teacher,) = joined(line, "address 5", leads=True)
    assert line.before(teacher)[0] == 1 and sum(line.before(one) is None for one in few) == 1
    assert line.before(few[0]) == (0, 0.0)
    joined(line, *["address 5"] * (MOST - 1), leads=True)
    assert line.join("run", "address 5", True) is None  # all are such


# ---- who asks ----


def asked(host: str = "192.0.2.7", *headers: tuple[bytes, bytes], **more: Any) -> None:
    scope = {"type": "http", "client": (host, 5), "headers": headers, **more}
    LocalContext.request.set(gr.Request(Request(scope), session_hash="tab"))


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(EXPOSURE, "network")
    monkeypatch.delenv("SPECDEC_PUBLIC", raising=False)
    yield
    LocalContext.request.set(None)


def test_who_sits_at_the_machine_leads_unless_strangers_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not visitors.leads()
    for host, leading in (("127.0.0.1", True), ("::1", True), ("192.0.2.7", False), ("", False)):
        asked(host)
        assert visitors.leads() is leading
    asked("127.0.0.1")
    monkeypatch.setenv("SPECDEC_PUBLIC", "1")  # whose proxy may be on this machine
    assert not visitors.leads()


def test_in_a_class_its_teacher_leads_and_nobody_else() -> None:
    for host in ("127.0.0.1", "192.0.2.7"):
        for teacher in (True, False):
            asked(host, **{visitors.LEADS: teacher})
            assert visitors.leads() is teacher


def test_programs_that_come_through_our_own_mcp_server_are_not_this_machine() -> None:
    """It asks the page over loopback for them."""
    asked("127.0.0.1", (b"x-gradio-user", b"mcp"))
    assert not visitors.leads() and visitors.asking()[1] == "mcp"


def test_a_network_of_version_6_is_one_address() -> None:
    asked("2001:db8:1:2:aaaa::1")
    one = visitors.asking()
    asked("2001:db8:1:2:bbbb::2")
    assert visitors.asking() == one
    asked("2001:db8:1:3::1")
    assert visitors.asking() != one
    asked("::ffff:192.0.2.7")
    assert visitors.asking()[1] == "192.0.2.7"


def test_who_lost_the_place_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "limits", lambda: replace(OWN, waiting=2))
    monkeypatch.setattr(session, "_machine", line := Turns({"run": 6.0}))
    (busy,) = joined(line, "elsewhere")
    line.before(busy)
    asked("192.0.2.7")
    first, second = (session._alone("run", iter(())) for _ in range(2))
    assert [next(one).kind for one in (first, second)] == ["waiting"] * 2
    joined(line, "192.0.2.8")
    assert next(first).kind == "waiting"
    with pytest.raises(ValueError, match="given away"):
        list(second)
    first.close()
