"""What is wrong with a call is told to whoever called, and to nobody else: no 500, no word of it in the log."""

from __future__ import annotations

import logging

import httpx
import pytest

from specdec.ui.theme import launch_settings

WORD = "canaryword"


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("call/nothing", {"json": {"data": [WORD]}}, 404),
        ("queue/join", {"json": {"data": [WORD], "fn_index": 9999, "session_hash": "a"}}, 404),
        ("call/theory", {"content": WORD.encode() + b"\xff"}, 422),
        ("call/theory", {"content": b'{"data": NaN}'}, 422),
        ("call/theory", {"json": {"data": WORD}}, 422),
        ("cancel", {"content": b"\xff\xfe"}, 422),
        ("run/predict", {"json": {"data": [WORD]}}, 404),
        ("run/predict", {"json": {"data": [WORD], "fn_index": 0}}, 422),  # the browser does it alone
        ("run/predict", {"json": {"data": [WORD], "fn_index": 3}}, 422),
        ("call/v2/nothing", {"json": {"prompt": WORD}}, 404),
        ("call/v2/theory", {"json": {WORD: WORD}}, 422),
        ("call/v2/compare", {"json": {"k": 4}}, 422),
        ("component_server", {"json": {"session_hash": "a", "component_id": 9999, "fn_name": WORD, "data": WORD}}, 404),
        ("upload", {"files": {"files": (WORD, b"x")}}, 404),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_word_of_it(address, capfd, path, sent, status):
    answer = httpx.post(f"{address}gradio_api/{path}", timeout=60, **sent)
    assert answer.status_code == status and WORD not in answer.text
    told = capfd.readouterr()
    assert "Traceback" not in told.out + told.err and WORD not in told.out + told.err


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "proxy=" + "xgradio_api/" * 200),
        ("GET", "proxy=http://127.0.0.1:1/"),
        ("POST", "vibe-edit"),
        ("POST", "process_recording"),
        ("GET", "run-history/records"),
        ("GET", "monitoring"),
        ("POST", "profiling/clear"),
    ],
)
def test_doors_of_gradios_that_the_page_has_no_use_for_are_closed(address, capfd, method, path):
    for place in ("gradio_api/", ""):
        assert httpx.request(method, f"{address}{place}{path}", timeout=60).status_code == 404
    told = capfd.readouterr()
    assert "Traceback" not in told.out + told.err


@pytest.mark.parametrize("path", ["call/x/x", f"call/theory/{WORD}", f"queue/data?session_hash={WORD}"])
def test_a_stream_for_nobody_does_not_begin(address, capfd, caplog, path):
    answer = httpx.get(f"{address}gradio_api/{path}", timeout=60)
    told = capfd.readouterr()
    assert answer.status_code == 404 and '"session_not_found":true' in answer.text  # Gradio's page reads this
    assert "Traceback" not in told.out + told.err and not caplog.records


@pytest.mark.parametrize("name", ["explain", "run"])
def test_a_call_that_lacks_arguments_is_not_logged_with_those_that_it_has(address, capfd, caplog, name):
    caplog.set_level(logging.INFO)
    event = httpx.post(f"{address}gradio_api/call/{name}", json={"data": [WORD]}, timeout=60).json()["event_id"]
    told = httpx.get(f"{address}gradio_api/call/{name}/{event}", timeout=60).text
    said = capfd.readouterr()
    assert "event: error" in told and WORD not in told
    assert WORD not in said.out + said.err + caplog.text and "was refused" in caplog.text


def test_a_refusal_speaks_the_pages_language(address):
    told = {}
    for name in ("run", "run_zh"):
        event = httpx.post(f"{address}gradio_api/call/{name}", json={"data": [WORD]}, timeout=60).json()["event_id"]
        told[name] = httpx.get(f"{address}gradio_api/call/{name}/{event}", timeout=60).text
    assert "The call lacks" in told["run"] and "\\u8be5\\u8c03\\u7528" in told["run_zh"]


def test_few_sessions_are_kept_for_those_who_call_once():
    """Gradio keeps half a megabyte of each, and takes every call over HTTP for one."""
    assert launch_settings()["state_session_capacity"] <= 100
