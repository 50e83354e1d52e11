"""One app for the tests of a file, and one browser for all files that run in this process."""

from __future__ import annotations

import json

import chrome
import pytest
import toyreport
import toyrun

from specdec.ui import results, session


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The app, with the toy run as its recorded one."""
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "TRACES", tmp_path_factory.mktemp("traces"))
        toyrun.trace().save(session.TRACES / "story.jsonl")
        toyrun.tree_trace().save(session.TRACES / "facts.jsonl")
        toyrun.tree_trace("typical acceptance", lossless=False).save(session.TRACES / "code.jsonl")
        toyrun.peer_trace().save(session.TRACES / "repetitive.jsonl")
        patch.setattr(results, "RESULTS", tmp_path_factory.mktemp("results"))
        toyreport.save(results.RESULTS)
        (results.RESULTS / "batch.json").write_text(json.dumps(toyreport.batches()), encoding="utf-8")
        demo = build()
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
        yield url
        demo.close()


@pytest.fixture(scope="session")
def browser():
    with chrome.playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=chrome.CHROMIUM, args=chrome.FLAGS)
        yield chrome.Chromium(chromium)
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    with chrome.pages(browser, address) as opener:
        yield opener
