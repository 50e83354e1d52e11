"""The app serves the page's scripts and the files of the engine in a browser, and nothing else."""

from __future__ import annotations

import re

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.testclient import TestClient

from specdec.ui import browser

FILES = {"target": b"t" * 9, "draft": b"d", "tokenizer": b"{}"}


def test_scripts_and_models_are_served_for_good_and_nothing_else_is(monkeypatch):
    monkeypatch.setattr(browser, "offered", lambda: ["embedded"])
    monkeypatch.setattr(browser, "made", lambda family: FILES)
    client = TestClient(Starlette(routes=[browser.route(), Mount("/", Response(status_code=418))]))
    place = browser.folder()
    told = client.get(f"{place}/engine/embedded.json").json()
    assert told.keys() == {*FILES, *browser.layers()} and told["target"] == {"path": "embedded.target", "size": 9}
    for one in told.values():
        found = client.get(f"{place}/engine/{one['path']}")
        assert len(found.content) == one["size"] and "immutable" in found.headers["cache-control"]
    for name, text in browser.sources().items():
        script = client.get(f"{place}/{name}")
        assert script.headers["content-type"].startswith("text/javascript") and script.text == text
    assert client.head(f"{place}/engine/embedded.draft").status_code == 200
    for path in ("target", "engine/smollm2.json", "engine/../README.md", "engine/%2e%2e/README.md", "/engine/x"):
        assert client.get(f"{place}/{path}").status_code in (404, 418)
    for path in ("/pages", place, f"{place}0/engine/embedded.target"):
        assert client.get(path).status_code == 418


def test_the_scripts_learn_how_often_a_drafter_is_right(monkeypatch, tmp_path):
    rates = browser.settings_there(["embedded"])["acceptance"]["embedded"]
    assert rates["draft_model"] == {"agreement": [0.6], "overlap": [0.6]}
    assert rates["prompt_lookup"]["agreement"] == [browser.COPIED]
    (tmp_path / "draft_model").mkdir()
    (tmp_path / "draft_model/config.json").write_text('{"trained": {"agreement": [0.7, 0.6], "overlap": [0.5]}}')
    monkeypatch.setattr(browser, "FAMILY", tmp_path)
    assert browser.acceptance("draft_model") == {"agreement": [0.7, 0.6], "overlap": [0.5]}


def test_every_import_leads_to_a_module_and_a_page_that_carries_some_carries_what_they_import():
    sources = browser.sources()
    named = {name: re.findall(r'(?:from|import)\(? ?"#page/([^"]+)"', text) for name, text in sources.items()}
    assert sum(map(len, named.values())) > 200
    assert [one for all_ in named.values() for one in all_ if one not in sources] == []
    page = browser.inline_modules("race/", "step/", "shared/arrival")
    carried = [one for one in sources if f'"#page/{one}"' in page]
    assert [one for name in carried for one in named[name] if one not in carried] == []
