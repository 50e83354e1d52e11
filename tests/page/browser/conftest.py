"""One app and one browser for all files that run in this process."""

from contextlib import ExitStack

import pytest

from specdec.ui import recorded, results
from specdec.ui.build import build
from specdec.ui.theme import launch_settings
from tests import toyreport, toyrun
from tests.page.browser import chrome


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Of runs and reports that stand for the app's own."""
    traces, reports = (tmp_path_factory.mktemp(name) for name in ("traces", "results"))
    toyrun.trace().save(traces / "story.jsonl")
    toyrun.tree_trace().save(traces / "facts.jsonl")
    toyrun.tree_trace("typical acceptance", lossless=False).save(traces / "code.jsonl")
    toyrun.peer_trace().save(traces / "repetitive.jsonl")
    toyreport.save(reports)
    return traces, reports


@pytest.fixture(scope="module", autouse=True)
def toys(folders):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "TRACES", folders[0])
        patch.setattr(results, "RESULTS", folders[1])
        yield


@pytest.fixture(scope="session")
def served():
    """Serves the app, or the app of a class: each of them once."""
    running, urls = [], {}

    def serve(room=None):
        name = room and room.secret
        if name not in urls:
            running.append(build(teaching=room is not None))
            _, urls[name], _ = running[-1].launch(prevent_thread_lock=True, quiet=True, **launch_settings(room))
        return urls[name]

    yield serve
    for demo in running:
        demo.close()


@pytest.fixture(scope="module")
def address(toys, served):
    return served()


@pytest.fixture(scope="session")
def browser(served):  # ends before the servers, which wait for open pages
    if chrome.CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    with chrome.playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=chrome.CHROMIUM, args=chrome.FLAGS)
        yield chrome.Chromium(chromium)
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    with chrome.pages(browser, address) as opener:
        yield opener


@pytest.fixture
def page(open_page):
    return open_page()


WHERE = """() => [".sd-head h1", "[data-part=stage]", "[data-part=lane0]"].flatMap((one) => {
    const { x, y, width } = document.querySelector(one).getBoundingClientRect();
    return [x, y, width].map(Math.round);
})"""


@pytest.fixture
def early(browser, address):
    """Opens the page while Gradio's scripts are held back; the function beside the page lets them come: then nothing
    may move."""
    contexts = ExitStack()

    def opener(query="", width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        page = contexts.enter_context(context).new_page()
        page.set_default_timeout(chrome.PATIENCE)
        page.route("**/assets/*.js", lambda route: None)  # held until `unroute`
        page.goto(address + query, wait_until="commit")

        def release():
            page.add_style_tag(content="* { font-family: monospace !important; }")
            before = page.evaluate(WHERE)
            page.unroute("**/assets/*.js")
            page.wait_for_selector("#first", state="detached")
            page.wait_for_selector("#prompt textarea")
            assert page.evaluate(WHERE) == pytest.approx(before, abs=2)

        return page, release

    with contexts:
        yield opener
