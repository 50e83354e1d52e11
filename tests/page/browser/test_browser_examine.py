"""A server of others certified on the page: asked for, watched, stopped; here it is our own engine behind HTTP."""

from __future__ import annotations

import time

import chrome
import pytest
from chrome import expect
from ours import of_pair, serving
from stub import Stub
from test_examine import KEY, nobody_examines, silent

from specdec.proof.mistakes import MISTAKES
from specdec.proof.pair import toy
from specdec.ui import request

pytestmark = chrome.pytestmark
DRAWS = 200


@pytest.fixture(scope="module")
def address(served):
    """An app that asks for few draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specdec.ui.tabs.lossless.SERVER_DRAWS", (DRAWS,) * 5)
        patch.setattr(request, "SERVER_DRAWS", (DRAWS,))
        yield served()


@pytest.fixture(scope="module")
def plain():
    with serving(of_pair(toy(), k=0), tells="") as address:
        yield address


def until_nobody_examines():
    deadline = time.monotonic() + chrome.PATIENCE / 1000
    while not nobody_examines():
        assert time.monotonic() < deadline, "the server was never left"
        time.sleep(0.1)


def part(page, name):
    return page.locator(f".sd-proof [data-part={name}]")


def choose(page, address, plain, key=""):
    page.get_by_role("tab", name="Lossless?").click()
    page.get_by_role("button", name="A server", exact=True).click()
    for label, value in (("Server’s address", address), ("Plain server’s address", plain), ("Key, optional", key)):
        part(page, "theirs").get_by_label(label, exact=False).first.fill(value)


@pytest.mark.long
def test_a_server_with_a_mistake_is_shown_to_be_wrong(open_page, plain):
    page = open_page(375, reduced_motion="reduce")
    with serving(of_pair(toy(), MISTAKES["argmax_draft"])) as address:
        choose(page, address, plain, KEY)
        for gone in ("bugs", "quiz", "closed"):
            expect(part(page, gone)).to_be_hidden()  # no mistake can be planted there
        expect(part(page, "raillead")).to_contain_text("No mistake can be planted")
        part(page, "run").press("Enter")
        expect(part(page, "said")).to_contain_text("Done")
    expect(part(page, "verdict").locator("h2")).to_have_text("Not lossless")
    expect(part(page, "verdict")).to_contain_text("with probability")
    expect(part(page, "place")).to_contain_text("texts of the plain server")
    assert part(page, "contexts").locator(".sd-tests").count() == 3 and page.locator(".sd-tests .sd-out").count()
    expect(part(page, "contexts")).to_contain_text(f"{DRAWS} of {DRAWS} texts")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    kept = page.evaluate("JSON.stringify([location.href, {...sessionStorage}, {...localStorage}])")
    assert KEY not in kept and address not in kept
    page.get_by_role("button", name="Toy pair").click()
    expect(part(page, "verdict").locator("h2")).to_have_text("Lossless")
    expect(part(page, "contexts")).to_be_hidden()
    page.reload()
    page.get_by_role("tab", name="Lossless?").click()
    page.get_by_role("button", name="A server", exact=True).click()
    assert part(page, "theirs").locator("input[type=password]").input_value() == ""


@pytest.mark.long
def test_a_silent_server_is_left_and_a_dead_one_is_told(open_page, plain):
    page = open_page(reduced_motion="reduce")
    choose(page, "", plain)
    part(page, "run").click()
    expect(part(page, "said")).to_contain_text("Give the server’s address")
    with Stub(silent) as server:
        choose(page, server.address, plain)
        part(page, "run").click()
        expect(part(page, "said")).to_contain_text("Asking the server")
        expect(part(page, "verdict").locator("h2")).to_have_text("Testing")
        part(page, "stop").click()
        expect(part(page, "said")).to_contain_text("Stopped")
        expect(part(page, "run")).to_be_enabled()
        until_nobody_examines()
    choose(page, server.address, plain)
    part(page, "run").click()
    expect(part(page, "said")).to_contain_text("cannot be reached")
