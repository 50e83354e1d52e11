"""Who comes next: addresses take turns, who leads goes first, and in a full line an address with many places yields."""

from __future__ import annotations

from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext
from starlette.requests import Request

from specdec.exposure import EXPOSURE, NETWORK
from specdec.ui import session, visitors
from specdec.ui.turns import Ticket, Turns

MOST, SURE = 8, 3


@pytest.fixture
def turns() -> Turns:
    return Turns({"run": 6.0}, MOST, SURE)


def joined(turns: Turns, *addresses: str, leads: bool = False) -> list[Ticket]:
    """Tickets from these addresses; all have their place."""
    tickets = [turns.join("run", address, leads) for address in addresses]
    assert all(tickets)
    return tickets  # type: ignore[return-value]


def served(turns: Turns, tickets: list[Ticket]) -> list[int]:
    """The order in which these have the machine."""
    order = list[int]()
    while len(order) < len(tickets):
        (now,) = (i for i, one in enumerate(tickets) if i not in order and turns.before(one) == (0, 0.0))
        turns.leave(tickets[now])
        order.append(now)
    return order


def test_of_one_address_all_are_served_as_they_came(turns: Turns) -> None:
    tickets = joined(turns, *["a school"] * (MOST + 1))
    assert served(turns, tickets) == list(range(MOST + 1))


def test_addresses_take_turns(turns: Turns) -> None:
    tickets = joined(turns, "a", "a", "a", "a", "b", "b", "c")
    turns.before(tickets[0])  # it has the machine, which counts as its address's turn
    assert served(turns, tickets) == [0, 4, 6, 1, 5, 2, 3]


def test_who_leads_waits_for_nobody_but_the_one_at_work(turns: Turns) -> None:
    tickets = joined(turns, "a", "a", "b")
    turns.before(tickets[0])
    tickets += joined(turns, "a", leads=True)
    assert turns.before(tickets[3])[0] == 1 and turns.before(tickets[1])[0] == 3  # the one at work, b, and who leads
    assert served(turns, tickets) == [0, 3, 2, 1]


def test_a_full_line_has_a_place_for_who_has_few(turns: Turns) -> None:
    crowd = joined(turns, *["a"] * (MOST + 1))
    turns.before(crowd[0])
    assert turns.join("run", "a") is None
    other = joined(turns, "b", "b", "b")
    assert turns.join("run", "b") is None and turns.join("run", "a") is None  # b has what it may be sure of
    gone = [one for one in crowd if turns.before(one) is None]
    assert gone == crowd[-SURE:]  # those who came last
    for one in gone:
        turns.leave(one)
    assert len(turns._line) == MOST + 1 and turns.before(other[0])[0] == 1


def test_nobody_is_displaced_who_has_the_machine_or_few_places(turns: Turns) -> None:
    few = joined(turns, *(f"{name}{i}" for i in range(3) for name in "abc"))
    assert turns.join("run", "d") is None
    assert all(turns.before(one) is not None for one in few)


def test_for_who_leads_there_is_a_place_even_among_addresses_that_have_few(turns: Turns) -> None:
    few = joined(turns, *(f"address {i}" for i in range(MOST + 1)))
    turns.before(few[0])
    (teacher,) = joined(turns, "address 5", leads=True)
    assert turns.before(teacher)[0] == 1 and sum(turns.before(one) is None for one in few) == 1
    assert turns.before(few[0]) == (0, 0.0)
    for _ in range(MOST - 1):
        joined(turns, "address 5", leads=True)
    assert turns.join("run", "address 5", True) is None  # all are such


def test_a_class_behind_one_address_is_served_with_a_stranger_among_it(turns: Turns) -> None:
    tickets = joined(turns, *["a school"] * 5, "elsewhere", *["a school"] * 3)
    turns.before(tickets[0])
    assert served(turns, tickets) == [0, 5, 1, 2, 3, 4, 6, 7, 8]


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
    for host, leading in (("127.0.0.1", True), ("::1", True), ("192.0.2.7", False), ("", False), ("testclient", False)):
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
    assert not visitors.leads() and visitors.asking() == ("tab", "mcp")


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
    monkeypatch.setattr(session, "_machine", turns := Turns({"run": 6.0}, 2, 1))
    (busy,) = joined(turns, "elsewhere")
    turns.before(busy)
    asked("192.0.2.7")
    first, second = (session._alone("run", iter(())) for _ in range(2))
    assert [next(one).kind for one in (first, second)] == ["waiting"] * 2
    joined(turns, "192.0.2.8")
    assert next(first).kind == "waiting"
    (news,) = second
    assert news.kind == "error" and "given away" in news.text
    first.close()
    assert [one.address for one in turns._line] == ["elsewhere", "192.0.2.8"]


def test_the_table_says_how_many_places_an_address_is_sure_of() -> None:
    assert 1 <= NETWORK.places_of_address < NETWORK.waiting // 2
