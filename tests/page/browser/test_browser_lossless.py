"""*Lossless?* in a real Chromium: the certificates, recorded and live."""

from __future__ import annotations

import time

import pytest
from chrome import certificate, expect, no_engine, pytestmark, until_free  # noqa: F401

from specdec.proof.certify import NEWS
from specdec.ui import session


def verdict(page):
    return page.locator(".sd-proof [data-part=verdict]")


def break_it(page, key):
    page.locator(f".sd-bug[data-key={key}]").click()


def test_the_certificate_is_green_until_it_is_broken(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    title, badge = verdict(page).locator("h2"), page.locator(".sd-proof [data-part=badge]")
    expect(title).to_have_text("Lossless")
    expect(badge).to_have_text("Recorded")
    expect(page.locator(".sd-proof .sd-small.sd-good")).to_have_count(3)
    break_it(page, "from_target")
    expect(title).to_have_text("Not lossless")
    assert "two of three checks fail" in verdict(page).inner_text()
    assert "Greedy text still matches" in verdict(page).inner_text() and page.locator(".sd-cross").count() == 3
    break_it(page, "extra_bonus")
    expect(verdict(page)).to_contain_text("The next token hides it")
    assert page.get_attribute(".sd-bug[data-key=from_target]", "aria-checked") == "false"
    page.locator(".sd-proof [data-part=more]").click()
    break_it(page, "ratio_epsilon")
    expect(verdict(page)).to_contain_text("million")
    assert page.locator(".sd-cross").count() == 0
    break_it(page, "ratio_epsilon")
    expect(title).to_have_text("Lossless")


@pytest.mark.long
def test_the_real_models_certificates_are_recorded_too(open_page, monkeypatch):
    monkeypatch.setattr(session, "_certificate", no_engine)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.get_by_role("button", name="Real models").click()
    place, badge = page.locator(".sd-proof [data-part=place]"), page.locator(".sd-proof [data-part=badge]")
    expect(place).to_contain_text("after “The old lighthouse")
    expect(badge).to_have_text("Recorded")
    expect(verdict(page).locator("h2")).to_have_text("Lossless")
    break_it(page, "from_target")
    expect(verdict(page).locator("h2")).to_have_text("Not lossless")
    page.locator(".sd-proof [data-part=text]").fill("Another text")
    expect(place).to_contain_text("Nobody has sampled this yet")


@pytest.mark.long
def test_fewer_draws_show_less(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    break_it(page, "one_coin")
    expect(page.locator(".sd-cross").first).to_be_attached()
    page.locator(".sd-proof [data-part=draws]").fill("0")
    expect(page.locator(".sd-proof [data-part=sampled]")).to_contain_text("100 times")
    assert page.locator(".sd-cross").count() == 0


@pytest.mark.long
def test_a_guess_is_compared_with_what_the_next_token_shows(open_page):
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    certificate(page)
    page.locator(".sd-guesses label", has_text="One coin").locator("input").check()
    page.locator(".sd-guesses label", has_text="Resample from").locator("input").check()
    page.get_by_role("button", name="Reveal").click()
    expect(page.locator(".sd-proof [data-part=score]")).to_have_text("6 of 8 right.")
    guesses = page.inner_text(".sd-guesses")
    assert guesses.count("hidden") == 2 and guesses.count("seen at once") == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_live_certificate_of_a_broken_loop_turns_red(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    badge = page.locator(".sd-proof [data-part=badge]")
    break_it(page, "argmax_draft")
    page.locator(".sd-proof [data-part=draws]").fill("1")
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    page.wait_for_selector(".sd-proof [data-part=run]:enabled")
    expect(page.locator(".sd-proof [data-part=sampled]")).to_contain_text("1,000 times")
    expect(badge).to_have_text("Live")
    assert page.locator(".sd-cross").count() == 3
    break_it(page, "argmax_draft")
    expect(badge).to_have_text("Recorded")


# As on a hidden page, no frame comes. A draw gives the sample's section new children.
HOLD = """() => {
  [window.held, window.draws] = [[], 0];
  window.requestAnimationFrame = (draw) => held.push(draw);
  const sampled = document.querySelector(".sd-proof [data-part=sampled]");
  new MutationObserver(() => draws++).observe(sampled, { childList: true });
}"""


@pytest.mark.long
def test_between_two_frames_news_of_a_certificate_is_not_drawn_and_the_last_is_not_lost(open_page, monkeypatch):
    def fast_certificate(request):
        told = session.recorded_certificates("toy")[request.mistake]
        for done in range(1, 41):
            yield {**told, "sampled": told["sampled"][:1], "done": done}
            time.sleep(0.01)

    monkeypatch.setattr(session, "_certificate", fast_certificate)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.evaluate(HOLD)
    page.locator(".sd-proof [data-part=run]").click()
    said, sampled = page.locator(".sd-proof [data-part=said]"), page.locator(".sd-proof [data-part=sampled]")
    expect(said).to_have_text("Stopped after 40 draws.")
    for held in ("[]", "window.held"):  # a frame that comes late changes nothing
        page.evaluate(f"{held}.forEach((draw) => draw())")
        assert page.get_attribute(".sd-proof", "data-source") == "live"
        assert "100 times" in sampled.inner_text() and "Stopped after 40" in said.inner_text()
        assert page.evaluate("draws") <= 6  # asked and ended, and each time the new height
    until_free()


def slow_certificate(request):
    """One that somebody will want to stop; it tells as often as the engine does."""
    told = session.recorded_certificates("toy")[request.mistake]
    for done in range(1, 2000):
        yield {**told, "sampled": [], "done": done}
        time.sleep(NEWS)


@pytest.mark.long
def test_a_certificate_can_be_stopped(open_page, monkeypatch):
    monkeypatch.setattr(session, "_certificate", slow_certificate)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    said = page.locator(".sd-proof [data-part=said]")
    expect(said).to_contain_text(" of 20,000")
    page.locator(".sd-proof [data-part=stop]").click()
    expect(said).to_contain_text("Stopped after")
    until_free()
    expect(page.locator(".sd-proof [data-part=run]")).to_be_enabled()
