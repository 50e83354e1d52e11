"""Several visitors of the served app at once: they wait in line, are told so, may leave, and the page stays awake."""

import threading
import time
from dataclasses import replace

import httpx
import pytest
from gradio_client import Client

from specdec import exposure
from specdec.exposure import Host, limits, OWN, PUBLIC
from specdec.traces.file import Trace
from specdec.ui.gateway import visitors
from specdec.ui.session import session
from specdec.ui.theme import launch_settings
from tests import toyrun


class Engine:
    def __init__(self):
        self.gate, self.begun, self.running, self.most = threading.Event(), [], 0, 0

    def race(self, request):
        self.begun.append(request.prompt)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            yield toyrun.events()[0]
            while not self.gate.is_set():
                time.sleep(0.02)
                yield None
            yield from toyrun.events()[1:]
        finally:
            self.running -= 1


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(session, "process", toyrun.Engine(engine.race))
    return engine


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def in_line():
    return len(session.turns._queue)


def test_visitors_are_served_one_at_a_time_in_the_order_in_which_they_came(address, engine):
    clients, jobs = [Client(address, verbose=False) for _ in range(4)], []
    for i, client in enumerate(clients):
        jobs.append(client.submit(f"visitor {i}", api_name="/run"))
        until(lambda want=i + 1: in_line() == want)
    assert engine.begun == ["visitor 0"]
    jobs[2].cancel()
    until(lambda: in_line() == 3)
    engine.gate.set()
    for i in (0, 1, 3):
        assert list(Trace.loads("".join(jobs[i])).events) == toyrun.events()
    until(lambda: in_line() == 0)
    assert engine.begun == ["visitor 0", "visitor 1", "visitor 3"] and engine.most == 1


def test_a_full_line_leaves_the_page_awake_and_refuses_with_a_sentence(address, engine, monkeypatch):
    assert launch_settings()["max_threads"] > limits().waiting + 20
    monkeypatch.setattr(visitors.exposure, "limits", lambda: replace(OWN, waiting=10 - visitors.PLACES_OF_LEADER))
    client = Client(address, verbose=False)
    jobs = [client.submit("hello", api_name="/run") for _ in range(12)]
    until(lambda: in_line() == 11)
    until(lambda: any(job.done() for job in jobs))
    assert ["Too many visitors" in "".join(job.outputs()) for job in jobs if job.done()] == [True]
    page = httpx.get(address, timeout=60)
    assert page.status_code == 200 and "specdec" in page.text
    for job in jobs:
        job.cancel()
    until(lambda: in_line() == 0)
    assert (engine.running, engine.most) == (0, 1)  # the second may begin as the first is gone, before it leaves


def test_a_public_host_takes_so_many_runs_a_minute_from_an_address(address, engine, monkeypatch):
    engine.gate.set()
    monkeypatch.setattr(exposure, "host", Host("public"))
    monkeypatch.setattr(exposure, "limits", lambda: replace(PUBLIC, runs_of_address=2))
    monkeypatch.setattr(session, "rate_limit", visitors.RateLimit())
    client, other = (Client(address, verbose=False) for _ in range(2))
    for one in (client, other):
        assert Trace.loads("".join(one.submit("hello", api_name="/run")))
    assert "Too many runs from here" in "".join(other.submit("hello", api_name="/run"))


def test_a_minute_later_there_are_runs_again_and_the_old_ones_are_forgotten(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(visitors.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(exposure, "host", Host("public"))
    rate = visitors.RateLimit()
    for _ in range(PUBLIC.runs_of_address):
        assert rate.wait_s("a school") == 0
    assert rate.wait_s("a school") == visitors.MINUTE_S and rate.wait_s("elsewhere") == 0
    now[0] += visitors.MINUTE_S
    assert rate.wait_s("a school") == 0 and len(rate._runs) == 1
