"""What a visitor made stays: settings and tab in the address, the run over a reload and another language."""

from __future__ import annotations

import gzip
import urllib.request

import pytest
import toyrun
from chrome import expect, part, pytestmark, settings, wait_for  # noqa: F401

from specdec.ui import session


def live(page, monkeypatch):
    """A live run of the toy's events on a prompt of the visitor's own."""

    monkeypatch.setattr(session, "_engine", toyrun.engine)
    page.locator("#prompt textarea").fill("My own words")
    page.locator("#run").click()
    expect(page.locator(".sd-badge").first).to_have_text("Live")
    wait_for(page, "done")


def addressed(page, *parts):
    for one in parts:
        page.wait_for_function("part => location.search.includes(part)", arg=one)


def test_settings_run_and_tab_outlive_a_reload(open_page, monkeypatch):
    page = open_page(reduced_motion="reduce")
    live(page, monkeypatch)
    settings(page)
    page.get_by_label("Seed").fill("41")
    page.get_by_role("tab", name="Theory").click()
    addressed(page, "prompt=My+own+words", "seed=41", "tab=theory")
    page.reload()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()
    page.get_by_role("tab", name="Race").click()
    expect(page.locator("#prompt textarea")).to_have_value("My own words")
    expect(page.get_by_label("Seed")).to_have_value("41")
    expect(page.locator(".sd-badge").first).to_have_text("Live")
    wait_for(page, "done")


def test_another_language_keeps_the_prompt_the_settings_and_the_run(open_page, monkeypatch):
    page = open_page(reduced_motion="reduce")
    live(page, monkeypatch)
    addressed(page, "prompt=My+own+words")
    page.get_by_role("link", name="中文").click()
    expect(page.locator(".sd-badge").first).to_have_text("实时")
    expect(page.locator("#prompt textarea")).to_have_value("My own words")
    assert "lang=zh" in page.url


@pytest.mark.long
def test_a_prompt_too_long_for_an_address_outlives_a_reload(open_page):
    page, words = open_page(reduced_motion="reduce"), "Über das Meer. " * 250
    page.locator("#prompt textarea").fill(words)
    settings(page)
    page.get_by_label("Seed").fill("5")
    addressed(page, "seed=5")
    assert len(page.url) < 5000
    page.reload()
    expect(page.locator("#prompt textarea")).to_have_value(words)


def test_back_and_forward_walk_through_the_tabs(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("tab", name="Theory").click()
    addressed(page, "tab=theory")
    page.get_by_role("tab", name="Guide").click()
    addressed(page, "tab=guide")
    page.go_back()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()
    page.go_back()
    page.get_by_role("tab", name="Race", selected=True).wait_for()
    page.go_forward()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()


@pytest.mark.long
def test_what_is_wrong_with_a_link_shows_on_the_tab_that_it_opens(open_page):
    page = open_page(query="?tab=theory&k=-5&temperature=9", reduced_motion="reduce")
    told = page.locator("#link-notice .sd-wrong")
    expect(told).to_be_visible()
    expect(told).to_contain_text("K must be")
    expect(told).to_contain_text("emperature")


def test_the_page_is_sent_compressed(address):
    request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
        assert answer.headers["Content-Encoding"] == "gzip"
    assert len(body) <= 250_000 and b"sd-player" in gzip.decompress(body)
