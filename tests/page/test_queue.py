"""Gradio's queue, which every call of every visitor goes through: nobody's call ends it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

EMPTY = ["", "default", 0, 0.0, 1.0, 0, 64, 0, "", "rejection", "embedded", False]  # a run that is refused at once


def functions(client: httpx.Client) -> list[dict[str, object]]:
    return client.get("config").json()["dependencies"]


def answered(client: httpx.Client) -> bool:
    """Call the API, and try again if the queue is full."""
    while "event_id" not in (told := client.post("gradio_api/call/run", json={"data": EMPTY}).json()):
        assert "full" in told["detail"]
        time.sleep(0.1)
    return "The prompt is empty" in client.get(f"gradio_api/call/run/{told['event_id']}").text


@pytest.mark.parametrize("session", ["", "gone", pytest.param("one", marks=pytest.mark.long)])
def test_no_call_ends_the_queue(client, session: str) -> None:
    number = next(one["id"] for one in functions(client) if one["api_name"] == "run")
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


def test_nor_does_one_of_a_function_that_there_is_not(client) -> None:
    of_the_browser = next(one["id"] for one in functions(client) if not one["backend_fn"])
    for number in (of_the_browser, 9_999, "x"):
        wrong = {"fn_index": number, "data": [], "session_hash": "a"}
        httpx.post(f"{client.base_url}gradio_api/queue/join", json=wrong, timeout=60)  # a 500 closes the connection
        assert answered(client)
