"""The queue: addresses take turns, leaders go first, and no address fills the queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext
from starlette.requests import Request

from specdec import exposure
from specdec.exposure import Host, OWN
from specdec.ui.gateway import visitors
from specdec.ui.gateway.visitors import Ticket, Turns

MOST = 8


@pytest.fixture
def line(monkeypatch) -> Turns:
    monkeypatch.setattr(visitors.exposure, "limits", lambda: replace(OWN, waiting=MOST))
    return Turns({"run": 6.0})


def joined(line: Turns, *addresses: str, leads: bool = False) -> list[Ticket]:
    tickets = [line.join("run", address, leads) for address in addresses]
    assert all(tickets)
    return tickets


def served(line: Turns, tickets: list[Ticket]) -> list[int]:
    order = list[int]()
    while len(order) < len(tickets):
        (now,) = (i for i, one in enumerate(tickets) if i not in order and line.poll(one) is None)
        line.leave(tickets[now])
        order.append(now)
    return order


@pytest.mark.parametrize(
    ("addresses", "order"),
    [("aaaaa", [0, 1, 2, 3, 4]), ("aaaabbc", [0, 4, 6, 1, 5, 2, 3]), ("aaabaa", [0, 3, 1, 2, 4, 5])],
)
def test_addresses_take_turns_and_those_of_one_come_as_they_came(line, addresses: str, order: Iterable[int]) -> None:
    tickets = joined(line, *addresses)
    line.poll(tickets[0])  # it has the machine, which counts as its address's turn
    assert served(line, tickets) == order


def test_who_leads_waits_for_nobody_but_the_one_at_work(line) -> None:
    tickets = joined(line, "a", "a", "b")
    line.poll(tickets[0])
    tickets += joined(line, "a", leads=True)
    assert line.poll(tickets[3])[0] == 1 and line.poll(tickets[1])[0] == 3  # the one at work, b, and who leads
    assert served(line, tickets) == [0, 3, 2, 1]


def test_no_address_fills_the_line_and_a_full_one_has_a_place_for_who_leads(line) -> None:
    joined(line, *["a"] * (MOST // 2 + 1))
    assert line.join("run", "a") is None
    joined(line, *(f"address {i}" for i in range(MOST // 2)))
    assert line.join("run", "one more") is None
    (teacher,) = joined(line, "a", leads=True)
    assert line.poll(teacher) is None
    joined(line, *["a"] * (visitors.PLACES_OF_LEADER - 1), leads=True)
    assert line.join("run", "a", True) is None  # each waits in a thread of the page


def asked(host: str = "192.0.2.7", *headers: tuple[bytes, bytes], **more: Any) -> None:
    scope = {"type": "http", "client": (host, 5), "headers": headers, **more}
    LocalContext.request.set(gr.Request(Request(scope), session_hash="tab"))


@pytest.fixture(autouse=True)
def nobody(monkeypatch) -> Any:
    monkeypatch.setattr(exposure, "host", Host("network"))
    yield
    LocalContext.request.set(None)


def test_who_sits_at_the_machine_leads_unless_strangers_are_served(monkeypatch) -> None:
    assert not visitors.has_queue_priority() and visitors.visitor_address() == ""
    for host, leading in (("127.0.0.1", True), ("::1", True), ("192.0.2.7", False), ("", False)):
        asked(host)
        assert visitors.has_queue_priority() is leading
    asked("127.0.0.1")
    monkeypatch.setattr(exposure, "host", Host("public"))  # whose proxy may be on this machine
    assert not visitors.has_queue_priority()


def test_in_a_class_its_teacher_leads_and_nobody_else() -> None:
    for host in ("127.0.0.1", "192.0.2.7"):
        for teacher in (True, False):
            asked(host, **{visitors.LEADS: teacher})
            assert visitors.has_queue_priority() is teacher


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2:bbbb::2", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
    ],
)
def test_a_network_of_version_6_is_one_address(one: str, other: str, same: bool) -> None:
    assert (visitors.network_of(one) == visitors.network_of(other)) is same
