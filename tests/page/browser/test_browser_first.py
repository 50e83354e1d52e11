"""The first screen is there before Gradio, plays, and goes on in Gradio's page without a break."""

from __future__ import annotations

import contextlib

import pytest
from chrome import expect, part, PATIENCE, playwright, pytestmark, state  # noqa: F401

from specdec.ui.tabs import labels


@pytest.fixture
def early(browser, address):
    """Opens the page while Gradio's scripts are held back; the function beside the page lets them come."""
    contexts = []

    def opener(query="", width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.route("**/assets/*.js", lambda route: None)  # held until `unroute`
        page.goto(address + query, wait_until="commit")

        def release():
            page.unroute("**/assets/*.js")
            page.wait_for_selector("#first", state="detached")

        return page, release

    yield opener
    for context in contexts:
        context.close()


def until_answered(page):
    """Presses an example until another run is there: Gradio shows its buttons a moment before it listens to them."""
    for _ in range(PATIENCE // 5000):
        page.locator(".sd-pill").nth(1).dispatch_event("click")
        with contextlib.suppress(playwright.TimeoutError):
            page.wait_for_selector(".sd-player[data-lossy]", timeout=5000)
            return
    raise AssertionError("no example was played")


def test_a_recorded_run_plays_before_gradio_is_there_and_goes_on_in_its_page(early):
    page, release = early()
    page.wait_for_selector("#first .sd-player[data-state=playing]")
    assert page.locator("gradio-app *").count() == 0
    assert page.locator("#first nav.sd-first-tabs a").all_inner_texts() == list(labels().values())
    page.evaluate("document.querySelector('.sd-player').wasThere = true")
    page.press("[data-part=stage]", "ArrowRight")  # it is the player, not a picture of it
    assert state(page) == "paused"
    said = part(page, "say").inner_text()
    page.focus("[data-part=next]")
    release()
    expect(page.locator(".sd-player")).to_have_count(1)
    assert page.evaluate("document.querySelector('.gradio-container .sd-player').wasThere")
    assert (state(page), part(page, "say").inner_text()) == ("paused", said)
    assert page.evaluate("document.activeElement.dataset.part") == "next"
    until_answered(page)  # its component is the one that Gradio tells of another run


WHERE = """() => [".sd-head h1", "[data-part=stage]", "[data-part=lane0]"].flatMap((one) => {
    const { x, y, width } = document.querySelector(one).getBoundingClientRect();
    return [x, y, width].map(Math.round);
})"""


@pytest.mark.parametrize("width", [1280, 375])
def test_it_stands_where_gradios_page_will(early, width):
    """Nothing jumps when Gradio takes over: what a visitor reads stays in its place."""
    page, release = early(width=width, reduced_motion="reduce")
    page.wait_for_selector("#first:not([hidden])")
    page.add_style_tag(content="* { font-family: monospace !important; }")  # the page's own font may not be there yet
    before = page.evaluate(WHERE)
    release()
    page.wait_for_selector("#prompt textarea")
    assert page.evaluate(WHERE) == pytest.approx(before, abs=2)


def test_the_prompt_has_its_place_before_gradio_draws_it(early):
    """A slow machine draws the player some frames before the prompt and its buttons."""
    page, release = early(reduced_motion="reduce")
    release()
    page.wait_for_selector("#prompt textarea")
    there = page.evaluate(WHERE)
    page.evaluate("document.querySelectorAll('#prompt, .sd-go').forEach((one) => one.remove())")
    assert page.evaluate(WHERE) == pytest.approx(there, abs=2)


@pytest.mark.parametrize("query", ["?tab=theory", "?tab=nowhere"])
def test_who_asks_for_another_tab_is_not_shown_the_race(early, query):
    page, _ = early(query)
    page.wait_for_selector("gradio-app", state="attached")
    expect(page.locator("#first")).to_have_count(0)


def test_a_dark_page_is_dark_from_the_first_paint_and_speaks_its_language(early):
    page, _ = early("zh?__theme=dark")
    page.wait_for_selector("#first:not([hidden])")
    expect(page.locator("#first")).to_have_css("background-color", "rgb(11, 16, 32)")
    assert "设置" in page.inner_text("#first .sd-console > .sd-sub")
    way = page.locator("nav.sd-first-tabs a").nth(1)
    assert way.evaluate("(link) => link.href").endswith("/zh?__theme=dark&tab=step")


def test_where_it_cannot_be_drawn_gradios_page_comes_all_the_same(browser, address):
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)

    def otherwise(route):
        route.fulfill(
            body=route.fetch().text().replace('"elem_id":"head"', '"elem_id":"another"'), content_type="text/html"
        )

    page.route(address, otherwise)
    page.goto(address)
    expect(page.locator("#first")).to_have_count(0)
    page.wait_for_selector(".sd-player:not([data-state=empty])")
    expect(page.locator("#prompt textarea")).not_to_be_empty()
    page.context.close()


def test_where_gradio_hands_out_no_configuration_its_page_is_there_alone(early):
    page, _ = early()
    page.add_init_script("Object.defineProperty(window, 'gradio_config', { get: () => undefined, set() {} })")
    page.reload(wait_until="commit")
    page.wait_for_selector("#first", state="detached")
    assert page.locator(".sd-player").count() == 0
