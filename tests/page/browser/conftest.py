"""One app and one browser for all files that run in this process."""

from contextlib import contextmanager

import pytest

from specdec.ui import recorded as recordings
from specdec.ui import results
from tests import toyreport, toyrun
from tests.page.browser import chrome


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """What stands for the app's own runs and reports: the folders, and where they are looked for."""
    traces, reports = (tmp_path_factory.mktemp(name) for name in ("traces", "results"))
    toyrun.trace().save(traces / "story.jsonl")
    toyrun.tree_trace().save(traces / "facts.jsonl")
    toyrun.tree_trace("typical acceptance", lossless=False).save(traces / "code.jsonl")
    toyrun.peer_trace().save(traces / "repetitive.jsonl")
    toyreport.save(reports)

    @contextmanager
    def found():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recordings, "TRACES", traces)
            patch.setattr(results, "RESULTS", reports)
            yield

    return found


@pytest.fixture(scope="module", autouse=True)
def toys(recorded):
    with recorded():
        yield


@pytest.fixture(scope="session")
def served():
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings

    running = []

    def serve(room=None):
        running.append(build(teaching=room is not None))
        _, url, _ = running[-1].launch(prevent_thread_lock=True, quiet=True, **launch_settings(room))
        return url

    yield serve
    for demo in running:
        demo.close()


@pytest.fixture(scope="session")
def address(recorded, served):
    with recorded():
        return served()


@pytest.fixture(scope="session")
def browser(served):  # ends before the servers, which wait for open pages
    with chrome.playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=chrome.CHROMIUM, args=chrome.FLAGS)
        yield chrome.Chromium(chromium)
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    with chrome.pages(browser, address) as opener:
        yield opener


@pytest.fixture
def early(browser, address):
    """Opens the page while Gradio's scripts are held back; the function beside the page lets them come."""
    contexts = []

    def opener(query="", width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(chrome.PATIENCE)
        page.route("**/assets/*.js", lambda route: None)  # held until `unroute`
        page.goto(address + query, wait_until="commit")

        def release():
            page.unroute("**/assets/*.js")
            page.wait_for_selector("#first", state="detached")

        return page, release

    yield opener
    for context in contexts:
        context.close()
