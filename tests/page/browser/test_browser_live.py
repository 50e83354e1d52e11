"""What is run live, in a real Chromium: it starts, stops, breaks, and says why it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import toyrun
from chrome import (  # noqa: F401
    expect,
    part,
    PATIENCE,
    pytestmark,
    real_models,
    says,
    settings,
    SlowEngine,
    step,
    tokens,
    until_free,
    wait_for,
)

from specdec.events import Started
from specdec.methods import METHODS
from specdec.ui import menu, session


@pytest.fixture
def page_with_a_choice(browser, tmp_path, monkeypatch):
    """A page of its own, whose family also holds a tuned target; nothing of it is loaded."""
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings

    for name in {*menu.TARGETS.values(), *(method.folder for method in METHODS.values())}:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    monkeypatch.setattr(session, "_loaded", lambda *_: True)
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    yield page
    page.close()
    demo.close()


@pytest.mark.long
def test_another_target_brings_its_own_drafters(page_with_a_choice, monkeypatch):
    page, asked = page_with_a_choice, []

    class Tuned:
        def describe(self):
            return {"family": "tuned", "target": {"parameters": 10**6}, "draft_model:tuned": {"parameters": 10**5}}

        def race(self, _, prompt, drafter, *__, **___):
            asked.append(drafter)
            for event in toyrun.events():
                yield replace(event, drafter=drafter) if isinstance(event, Started) else event

    engine = Tuned()
    monkeypatch.setattr(session, "_engine", lambda family: (asked.append(family), (engine, engine.race))[1])
    settings(page, advanced=True)
    page.get_by_label("Target", exact=True).click()
    page.get_by_role("option", name="Built in: tuned on edits").click()
    page.get_by_text("as it was before tuning").wait_for()
    page.get_by_label("Drafter").click()
    anew = page.get_by_role("option", name="Draft model, distilled anew")
    anew.wait_for()
    assert page.get_by_role("option", name="Medusa").count() == 0
    anew.click()
    page.get_by_text("distilled anew from the tuned target").wait_for()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    assert asked == ["tuned", "draft_model:tuned"]
    expect(part(page, "meta")).to_contain_text("draft model")
    expect(part(page, "meta")).to_contain_text("edit-tuned target")


def test_bad_input_is_explained_and_loses_nothing(open_page):
    page = open_page(reduced_motion="reduce")
    before = page.inner_text("[data-part=lane0]")
    page.fill("#prompt textarea", "   ")
    page.click("#run")
    expect(page.locator("#notice .sd-wrong")).to_contain_text("prompt is empty")
    assert page.inner_text("[data-part=lane0]") == before and page.inner_text(".sd-badge") == "Recorded"
    expect(page.locator("#run")).to_be_enabled()


def test_stop_keeps_the_text_and_frees_the_machine(open_page, monkeypatch):
    engine = SlowEngine()
    monkeypatch.setattr(session, "_engine", lambda *_: (engine, engine.race))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    expect(tokens(page, 0).nth(3)).to_be_visible()
    page.click("#stop")
    page.wait_for_selector("#run:enabled")
    wait_for(page, "done")
    assert tokens(page, 0).count() > 3
    expect(says(page)).to_contain_text("Stopped")
    expect(page.locator("#notice")).to_contain_text("Stopped")
    until_free()
    assert engine.closed == 1


def test_an_engine_that_breaks_leaves_what_was_written(open_page, monkeypatch):
    def broken(*_, **__):
        yield from toyrun.events()[:20]
        raise RuntimeError("secret")

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), broken))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("#notice .sd-wrong")
    assert "secret" not in page.inner_text("body")
    expect(tokens(page, 0).nth(1)).to_be_visible()
    page.wait_for_selector("#run:enabled")


@real_models
def test_a_live_run_of_the_real_models_finishes(open_page):
    page = open_page()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    expect(page.locator(".sd-badge").first).to_have_text("Live")
    page.click("[data-slow='1']")
    wait_for(page, "done")
    page.wait_for_selector("#run:enabled")
    assert tokens(page, 0).count() >= tokens(page, 1).count() > 10
    assert float(page.inner_text(".sd-hero dd").rstrip("×")) > 0


@pytest.mark.long
def test_the_app_prints_its_address(tmp_path):
    import subprocess
    import sys

    app = Path(__file__).resolve().parents[3] / "app.py"
    process = subprocess.Popen([sys.executable, "-u", str(app)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any("http://" in line for line in process.stdout)
    finally:
        process.terminate()
        process.wait(10)
