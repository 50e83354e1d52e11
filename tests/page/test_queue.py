"""Gradio's queue, which every call of every visitor goes through: nobody's call ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

EMPTY = ["", "default", 0, 0.0, 1.0, 0, 64, 0, "", "rejection", "embedded", False]  # a run that is refused at once


@pytest.fixture(scope="module")
def page(address) -> Iterator[tuple[httpx.Client, list[dict[str, object]]]]:
    with httpx.Client(base_url=address, timeout=60.0) as client:
        yield client, client.get("config").json()["dependencies"]


def answered(client: httpx.Client) -> bool:
    """Call the API, and try again if the queue is full."""
    while "event_id" not in (told := client.post("gradio_api/call/run", json={"data": EMPTY}).json()):
        assert "full" in told["detail"]
        time.sleep(0.1)
    return "The prompt is empty" in client.get(f"gradio_api/call/run/{told['event_id']}").text


@pytest.mark.parametrize("session", ["", "gone", pytest.param("one", marks=pytest.mark.long)])
def test_no_call_ends_the_queue(page, session: str) -> None:
    client, events = page
    number = next(one["id"] for one in events if one["api_name"] == "run")
    sent = {"fn_index": number, "data": EMPTY, "session_hash": session}

    def call(_: int) -> int:
        status = client.post("gradio_api/queue/join", json=sent).status_code
        if session == "gone":
            with client.stream("GET", "gradio_api/queue/data", params={"session_hash": session}):
                pass
        return status

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(call, range(80))} <= {200, 503}  # the queue was full, perhaps
    assert answered(client)


@pytest.mark.parametrize("number", ["browser", 9_999, "x"])
def test_nor_does_one_of_a_function_that_there_is_not(page, number: object) -> None:
    client, events = page
    if number == "browser":
        number = next(one["id"] for one in events if not one["backend_fn"])
    wrong = {"fn_index": number, "data": [], "session_hash": "a"}
    httpx.post(f"{client.base_url}gradio_api/queue/join", json=wrong, timeout=60)  # a 500 closes the connection
    assert answered(client)
