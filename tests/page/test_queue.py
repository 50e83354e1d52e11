"""Gradio's queue, which every call of every visitor goes through: nobody's call ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

THEORY = [0.7, 4, 0.1, 1.0, 0.0]


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[tuple[httpx.Client, int]]:
    """And the number of the event `theory`."""
    with httpx.Client(base_url=address, timeout=60.0) as client:
        events = client.get("config").json()["dependencies"]
        yield client, next(event["id"] for event in events if event["api_name"] == "theory")


def answered(client: httpx.Client) -> bool:
    """Perhaps once the queue, which is full, is shorter."""
    while "event_id" not in (told := client.post("gradio_api/call/theory", json={"data": THEORY}).json()):
        assert "full" in told["detail"]
        time.sleep(0.1)
    return "2.7731" in client.get(f"gradio_api/call/theory/{told['event_id']}").text


@pytest.mark.parametrize("session", ["", "one"])
def test_calls_at_once_of_one_session_end_nothing(page: tuple[httpx.Client, int], session: str) -> None:
    client, number = page
    sent = {"fn_index": number, "data": THEORY, "session_hash": session}
    with ThreadPoolExecutor(8) as pool:
        states = {*pool.map(lambda _: client.post("gradio_api/queue/join", json=sent).status_code, range(80))}
    assert states <= {200, 503}  # the queue was full, perhaps
    assert answered(client)


def test_a_visitor_who_leaves_the_queue_ends_nothing(page: tuple[httpx.Client, int]) -> None:
    client, number = page

    def leave(visitor: int) -> None:
        sent = {"fn_index": number, "data": THEORY, "session_hash": f"visitor {visitor % 5}"}
        client.post("gradio_api/queue/join", json=sent)
        with client.stream("GET", "gradio_api/queue/data", params={"session_hash": sent["session_hash"]}):
            pass

    with ThreadPoolExecutor(8) as pool:
        [*pool.map(leave, range(80))]
    assert answered(client)


def test_what_the_browser_does_alone_is_refused_and_not_logged(
    page: tuple[httpx.Client, int], caplog: pytest.LogCaptureFixture
) -> None:
    client, _ = page
    events = client.get("config").json()["dependencies"]
    number = next(event["id"] for event in events if not event["backend_fn"])
    sent = {"fn_index": number, "data": [], "session_hash": "a"}
    told = client.post("gradio_api/queue/join", json=sent)
    assert told.status_code == 400 and "browser" in told.json()["detail"]
    assert answered(client) and not caplog.records
