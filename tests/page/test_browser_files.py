"""What the app serves for the engine in a browser: those files, made once, and nothing else."""

from __future__ import annotations

import hashlib

import pytest
from starlette.testclient import TestClient

from specdec.ui import browser

FILES = {"target": b"t" * 9, "draft": b"d", "tokenizer": b"{}"}


async def elsewhere(scope, receive, send):
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def made(monkeypatch):
    calls = []
    monkeypatch.setattr(browser, "folder", lambda: "0123456789abcdef")
    monkeypatch.setattr(browser, "offered", lambda: ["embedded"])
    monkeypatch.setattr(browser, "made", lambda family: calls.append(family) or FILES)
    return calls


def test_its_files_are_served_for_good(made):
    client = TestClient(browser.InBrowser(elsewhere))
    told = client.get("/browser/0123456789abcdef/embedded.json").json()
    assert told.keys() == {*FILES, *browser.layers()} and told["target"] == {"path": "embedded.target", "size": 9}
    found = client.get("/browser/0123456789abcdef/embedded.target")
    assert found.content == FILES["target"] and "immutable" in found.headers["cache-control"]
    script = client.get("/browser/0123456789abcdef/engine.js")
    assert script.headers["content-type"].startswith("text/javascript") and "postMessage" in script.text
    assert hashlib.sha256(client.get("/browser/0123456789abcdef/layers").content).digest()
    assert client.head("/browser/0123456789abcdef/embedded.draft").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "0123456789abcdef/", "0123456789abcdef/target", "0123456789abcdef/smollm2.json",
        "0123456789abcdef/../json.target", "0123456789abcdef/embedded.", "0123456789abcdef/../target",
        "0123456789abcdef/%2e%2e/README.md", "other/target", "", "0123456789abcdef/embedded.target/x",
        "0123456789abcdef//target", "0123456789abcdef/README.md",
    ],
)  # fmt: skip
def test_nothing_else_is(made, path):
    client = TestClient(browser.InBrowser(elsewhere))
    assert client.get(f"/browser/{path}").status_code == 404
    assert client.post("/browser/0123456789abcdef/embedded.target").status_code == 404
    assert client.get("/browsers").status_code == 418


@pytest.mark.long
def test_the_models_are_those_of_the_package(tmp_path):
    from specdec.families.browser import files

    browser.made.cache_clear()
    found = browser.made("embedded")
    assert found == files("embedded") and browser.made("embedded") is found
