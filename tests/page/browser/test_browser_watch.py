"""A server of others on the page: chosen, watched, drawn with what it tells; here it replays what a real vLLM told."""

from __future__ import annotations

import chrome
import pytest
import toyrun
from chrome import expect, part, says, settings, tokens, unfold, wait_for
from test_watch import KEY, PLAIN, PROMPT, SPECULATIVE, vllm

from specdec.ui.text import strings

pytestmark = chrome.pytestmark
PAGE = f"?prompt={PROMPT}&temperature=0&max_tokens=24&seed=3"


@pytest.fixture(scope="module")
def servers():
    with vllm(SPECULATIVE) as server, vllm(PLAIN) as plain:
        yield server, plain


def choose(page, address, plain="", key=""):
    settings(page, advanced=True)
    page.get_by_label("A server", exact=True).click()
    for name, value in (("address", address), ("plain", plain), ("key", key)):
        page.locator(f"#{name}").locator("input, textarea").fill(value)


def test_a_server_is_watched_and_drawn_with_what_it_tells(open_page, servers):
    page = open_page(query=PAGE)
    choose(page, *(one.address for one in servers), key=KEY)
    expect(page.get_by_label("Verification rule")).to_be_hidden()  # the server decides it
    expect(page.locator("#key input, #key textarea")).to_have_attribute("type", "password")
    page.click("#run")
    wait_for(page, "done")
    expect(part(page, "counted")).to_be_visible()
    expect(page.locator(".sd-meters dt").first).to_contain_text("Measured speed-up")
    expect(part(page, "sub0")).to_contain_text("vLLM 0.32.0, watched from outside")
    expect(part(page, "foot")).to_contain_text("Same words: at temperature 0")
    unnamed = page.locator("[data-part=lane0] .sd-rej[data-unnamed]").first
    assert f"{strings('player')['server']['unnamed']}, rejected" in unnamed.get_attribute("aria-label")
    unnamed.click()
    expect(part(page, "card")).to_contain_text(strings("player")["server"]["unnamed_tip"])
    kept = page.evaluate("JSON.stringify([location.href, {...sessionStorage}, {...localStorage}])")
    log = page.evaluate("document.querySelector('.sd-player').log()")
    for secret in (KEY, *(one.address for one in servers), *(one.address.partition("//")[2] for one in servers)):
        assert secret not in kept + log
    page.get_by_role("tab", name="Step through").click()
    step = page.locator(".sd-step")
    expect(step).to_contain_text(strings("step")["served"]["no_q"])
    expect(step).to_contain_text(strings("step")["lacks"]["server"])
    expect(step.locator("[data-part=rule]")).to_be_disabled()


def test_what_is_wrong_with_a_server_is_told_beside_the_button(open_page, servers):
    page = open_page(query=PAGE)
    choose(page, "127.0.0.1:8000")
    page.click("#run")
    expect(page.locator("#notice")).to_contain_text("address begins with http://")
    page.locator("#address").locator("input, textarea").fill("")
    page.click("#run")
    expect(page.locator("#notice")).to_contain_text("Give the server’s address")
    page.locator("#address").locator("input, textarea").fill(servers[0].address)
    page.click("#run")
    wait_for(page, "done")
    expect(part(page, "figures")).to_contain_text("no plain server to compare with")
    expect(part(page, "other")).to_be_hidden()


def test_a_link_fills_in_a_server_only_if_the_owner_lists_it(open_page):
    page = open_page(query="?server=http://127.0.0.1:8000")
    expect(page.locator("#link-notice")).to_contain_text("does not list")
    settings(page, advanced=True)
    expect(page.get_by_label("This page’s own")).to_be_checked()


@pytest.mark.parametrize("width", [pytest.param(375, marks=pytest.mark.long), 1280])
@pytest.mark.parametrize("counted", ["exact", pytest.param("totals", marks=pytest.mark.long)])
def test_a_servers_trace_plays_on_any_screen(open_page, tmp_path, counted, width):
    toyrun.server_trace(counted, beside=counted == "exact").save(path := tmp_path / "served.jsonl")
    page = open_page(width=width, reduced_motion="reduce")
    with page.expect_file_chooser() as chooser:
        unfold(page, "deeds")
        page.locator(".sd-traces button", has_text="Open a trace").click()
    chooser.value.set_files(path)
    expect(part(page, "sub0")).to_contain_text("watched from outside")
    page.press("[data-part=stage]", "End")
    expect(part(page, "counted")).to_have_text({"exact": "cycles exact", "totals": "totals only"}[counted])
    assert tokens(page, 0).count() == (13 if counted == "exact" else 10)
    if counted == "totals":
        expect(part(page, "figures")).to_contain_text(strings("player")["server"]["untold"])
        expect(part(page, "alpha")).to_be_hidden()
        expect(says(page)).to_contain_text("there is no speed-up to measure")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
