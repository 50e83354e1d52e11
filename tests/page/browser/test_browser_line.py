"""Waiting for the machine in a real Chromium: the place in the line is told in every tab that runs something live."""

from __future__ import annotations

import pytest
from chrome import certificate, expect, open_fold, pytestmark, SlowEngine, tokens, until_free  # noqa: F401

from specdec.ui import session
from specdec.ui.text import strings


@pytest.fixture
def busy(monkeypatch):
    """Somebody else's run has the machine, until the test lets it go."""
    engine = SlowEngine()
    monkeypatch.setattr(session, "_engine", lambda *_: (engine, engine.race))
    ticket = session._machine.join("run")
    assert session._machine.before(ticket) == (0, 0.0)
    held = [ticket]

    def free():
        while held:
            session._machine.leave(held.pop())

    yield free
    free()


@pytest.mark.long
def test_who_waits_sees_the_place_and_leaves_by_stop(open_page, busy):
    page, other = open_page(reduced_motion="reduce"), open_page(reduced_motion="reduce")
    page.click("#run")
    expect(page.locator("#notice")).to_contain_text("1 before you: about")
    before = page.locator("[data-part=lane0]").inner_text()
    assert page.locator("[data-source=live]").count() == 0 and before  # the stage stays as it was
    other.click("#run")
    expect(other.locator("#notice")).to_contain_text("2 before you: about")
    page.click("#stop")
    page.wait_for_selector("#run:enabled")
    expect(page.locator("#notice")).to_contain_text(strings("page")["notice"]["left"])
    expect(other.locator("#notice")).to_contain_text("1 before you: about")
    busy()
    other.wait_for_selector("[data-source=live]")
    expect(tokens(other, 0).nth(3)).to_be_visible()
    other.click("#stop")
    other.wait_for_selector("#run:enabled")
    until_free()


@pytest.mark.long
def test_a_certificate_and_a_measurement_wait_in_the_same_line(open_page, busy):
    page, other = open_page(reduced_motion="reduce"), open_page(reduced_motion="reduce")
    certificate(page)
    page.locator(".sd-proof [data-part=run]").click()
    said = page.locator(".sd-proof [data-part=said]")
    expect(said).to_contain_text("1 before you: about")
    other.get_by_role("tab", name="Methods").click()
    open_fold(other, "Run it here")
    other.click("#measure")
    line = other.locator("#live-notice")
    expect(line).to_contain_text("2 before you: about")
    other.click("#halt")
    other.wait_for_selector("#measure:enabled")
    page.locator(".sd-proof [data-part=stop]").click()
    expect(page.locator(".sd-proof [data-part=run]")).to_be_enabled()
    busy()
    until_free()


@pytest.mark.long
def test_a_visitor_who_closes_the_page_frees_the_place(open_page, busy):
    page, other = open_page(reduced_motion="reduce"), open_page(reduced_motion="reduce")
    page.click("#run")
    expect(page.locator("#notice")).to_contain_text("1 before you")
    other.click("#run")
    expect(other.locator("#notice")).to_contain_text("2 before you")
    page.close()
    expect(other.locator("#notice")).to_contain_text("1 before you")
    other.click("#stop")
    other.wait_for_selector("#run:enabled")
