"""The page in a real Chromium: it draws, plays, pauses, runs live and stops, and asks nobody else for anything."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import toyreport
import toyrun

from specdec.events import Started
from specdec.ui import menu, results, session
from specdec.ui.text import ASSETS

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
PATIENCE = 60_000  # milliseconds; a busy machine draws slowly
real_models = pytest.mark.skipif(not (ASSETS / "family" / "target").is_dir(), reason="the embedded family is not there")


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
        demo = build()
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
        yield url
        demo.close()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page; afterwards nothing may have gone wrong or have been fetched from elsewhere."""
    contexts, complaints = [], []

    def watch(page):
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: (complaints.append("a token ran as code"), dialog.dismiss()))
        page.on("request", lambda sent: None if is_ours(sent.url, address) else complaints.append(sent.url))

    def opener(width=1280, height=900, query="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        watch(page)
        page.goto(address + query)
        page.wait_for_selector(".sd-player:not([data-state=empty])")
        return page

    yield opener
    for context in contexts:
        context.close()
    assert complaints == []


def is_ours(url, address):
    return url.startswith((address, "data:", "blob:"))


def state(page):
    return page.get_attribute(".sd-player", "data-state")


def wait_for(page, name):
    page.wait_for_selector(f".sd-player[data-state={name}]")


def say(page):
    return page.inner_text("[data-part=say]")


def visible_tokens(page, lane):
    return page.eval_on_selector_all(f"[data-part=lane{lane}] .sd-tok:not(.sd-fut)", "nodes => nodes.length")


def step(page, times=1):
    for _ in range(times):
        page.press("[data-part=stage]", "ArrowRight")


def test_a_recorded_run_plays_pauses_at_its_first_rejection_and_goes_on(open_page):
    page = open_page()
    assert page.inner_text(".sd-badge") == "Recorded"
    wait_for(page, "first-rejection")
    assert "first rejection" in say(page) and "rejected" in say(page)
    assert page.locator("[data-part=lane0] .sd-rej:not(.sd-fut)").count() == 1
    wait_for(page, "playing")  # by itself
    page.click("[data-slow='1']")
    wait_for(page, "done")
    assert "Done." in say(page)
    assert "so far" not in page.inner_text(".sd-hero")


def test_who_steps_in_keeps_the_wheel(open_page):
    page = open_page()
    wait_for(page, "first-rejection")
    page.click("[data-part=next]")
    time.sleep(8)
    assert state(page) == "paused"


def test_every_token_state_is_drawn_and_no_token_runs_as_code(open_page):
    page = open_page()
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    for kind in ("acc", "rej", "dis", "res", "bon", "pla"):
        assert page.locator(f"[data-part=lane0] .sd-{kind}:not(.sd-fut)").count() > 0, kind
    text = page.inner_text("[data-part=lane0]")
    assert "<script>alert(1)</script>" in text and "${alert(1)}" in text and "⟨202E⟩evil" in text
    assert page.locator("[data-part=lane0] script").count() == 0


def test_keys_step_by_cycle_and_set_the_speed(open_page):
    page = open_page(reduced_motion="reduce")
    page.focus("[data-part=stage]")
    page.keyboard.press("Home")
    step(page)
    assert say(page).startswith("Cycle 1")
    assert page.inner_text("[data-part=announce]").startswith("Cycle 1")
    step(page, 4)
    assert "nothing was drafted" in say(page)
    page.keyboard.press("ArrowLeft")
    assert say(page).startswith("Cycle 4")
    page.keyboard.press("1")
    assert page.get_attribute("[data-slow='1']", "aria-pressed") == "true"
    page.keyboard.press(" ")
    wait_for(page, "done")


def test_a_token_and_a_figure_explain_themselves_by_mouse_and_by_keyboard(open_page):
    page = open_page(reduced_motion="reduce")
    page.hover("[data-part=lane0] .sd-rej:not(.sd-fut)")
    card = page.locator("[data-part=card]")
    assert "Coin u" in card.inner_text() and "0.30" in card.inner_text()
    page.mouse.move(5, 5)
    page.wait_for_selector("[data-part=card]", state="hidden")
    page.focus("[data-part=stage]")
    for _ in range(3):
        page.keyboard.press("Tab")
        if card.is_visible():
            break
    assert card.is_visible()
    page.keyboard.press("Escape")
    assert card.is_hidden()
    page.locator(".sd-term", has_text="Block efficiency").click()
    assert "K + 1" in card.inner_text()


def play_recorded(page, name):
    page.locator(".sd-recorded .sd-pill", has_text=name).click()
    page.wait_for_function("document.querySelector('[data-part=sub0]').textContent.includes('tree')")
    page.focus("[data-part=stage]")
    page.keyboard.press("Home")


def test_a_tree_hangs_its_siblings_below_each_other_and_leaves_its_path_when_past(open_page):
    page = open_page(reduced_motion="reduce")
    play_recorded(page, "Facts")
    step(page)
    tree = page.locator(".sd-tree:not(.sd-fut):not(.sd-past)")
    place = {chip.inner_text()[:2]: chip.bounding_box() for chip in tree.locator(".sd-tok").all()}
    assert place["t0"]["x"] == place["t1"]["x"] and place["t0"]["y"] < place["t3"]["y"] < place["t1"]["y"]
    assert place["t0"]["x"] < place["t2"]["x"] < place["t6"]["x"] and place["t0"]["y"] == place["t6"]["y"]
    assert place["ow"]["y"] == place["t1"]["y"]  # the bonus token stands behind the path
    assert "one path, t1 t5" in say(page) and "2 of 2 levels" in page.inner_text("[data-part=figures]")
    tree.locator(".sd-dis", has_text="t6").hover()
    assert "level 3 of 3" in page.inner_text("[data-part=card]") and "follows a draft" in page.inner_text(
        "[data-part=card]"
    )
    page.mouse.move(5, 5)
    page.focus("[data-part=stage]")
    page.keyboard.press("Tab")
    assert "level 1 of 3" in page.inner_text("[data-part=card]")
    assert page.locator("[data-part=lane0] .sd-tok:focus").get_attribute("aria-label") == "space t0, rejected, level 1"
    page.keyboard.press("ArrowRight")
    first = page.locator(".sd-tree").first
    assert [chip.inner_text()[:2] for chip in first.locator(".sd-tok:visible").all()] == ["t1", "t5", "ow"]
    assert tree.count() == 1 and tree.locator(".sd-tok:visible").count() == 8


def test_a_lossy_rule_is_labelled_wherever_its_run_is(open_page):
    page = open_page(reduced_motion="reduce")
    assert page.locator(".sd-tag:visible").count() == 0
    play_recorded(page, "Code")
    for moment in ("Home", "End"):
        page.keyboard.press(moment)
        assert page.locator(".sd-lane .sd-tag:visible").count() == 1
        assert page.locator("[data-part=figures] .sd-hero .sd-tag:visible").count() == 1
    assert "is lossy" in page.inner_text("[data-part=foot]")
    page.locator(".sd-tree .sd-rej:not(.sd-fut)").last.hover()
    card = page.inner_text("[data-part=card]")
    assert "No coin" in card and "Lossy" in card and "Coin u" not in card


@pytest.mark.parametrize("width", [375, 1280])
def test_a_peer_has_its_lane_its_figure_and_its_time(open_page, width):
    page = open_page(width, reduced_motion="reduce")
    assert page.locator("[data-part=peer]").is_hidden() and page.locator("[data-part=figures] > div").count() == 5
    page.locator(".sd-recorded .sd-pill", has_text="Repetitive").click()
    page.wait_for_selector("[data-part=peer]:visible")
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    assert visible_tokens(page, 2) == 12
    assert page.locator("[data-part=lane2] .sd-bon:not(.sd-fut)").first.inner_text().endswith("+1")
    assert "× plain" in page.inner_text("[data-part=figures]") or width == 375
    assert page.locator("[data-part=figures] > div").count() == 6
    assert page.locator("[data-part=account] tr").first.locator("th").count() == 3
    assert "The transformers library took" in say(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("[data-part=lane2] .sd-rej:not(.sd-fut)").first.click()
    assert "not told" in page.inner_text("[data-part=card]")
    page.locator(".sd-recorded .sd-pill", has_text="Story").click()
    page.wait_for_selector("[data-part=peer]", state="hidden")


def test_a_menus_line_follows_the_choice(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("button", name="Advanced").click()
    page.get_by_label("Verification rule").click()
    page.get_by_role("option", name="Typical acceptance (lossy)").click()
    page.get_by_text("Lossy with this rule.").wait_for()
    page.get_by_label("Drafter").click()
    page.get_by_role("option", name="Prompt lookup").click()
    page.get_by_text("Copies what followed").wait_for()
    page.get_by_text("A third lane: the prompt lookup").wait_for()


@pytest.fixture
def page_with_a_choice(browser, tmp_path, monkeypatch):
    """A page of its own, whose family also holds a tuned target; nothing of it is loaded."""
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings

    for name in {*menu.TARGETS.values(), *menu.WEIGHTS.values()}:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    monkeypatch.setattr(session, "_loaded", lambda *_: True)
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    yield page
    page.close()
    demo.close()


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
    page.get_by_role("button", name="Advanced").click()
    page.get_by_label("Target", exact=True).click()
    page.get_by_role("option", name="Tuned on code").click()
    page.get_by_text("as it was before tuning").wait_for()
    page.get_by_label("Drafter").click()
    assert page.get_by_role("option", name="Medusa").count() == 0
    page.get_by_role("option", name="Draft model, distilled anew").click()
    page.get_by_text("distilled anew from the tuned target").wait_for()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    assert asked == ["tuned", "draft_model:tuned"]
    assert "code-tuned target" in page.inner_text("[data-part=meta]")
    assert "draft model" in page.inner_text("[data-part=meta]")


def tells(page):
    return page.inner_text(".sd-step [data-part=say]")


def sub_step(page):
    return page.inner_text(".sd-steps [aria-current]")


def test_a_cycle_is_taken_apart_and_another_coin_changes_its_verdict(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("button", name="Take this decision apart").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    assert page.inner_text(".sd-step [data-part=title]") == "Cycle 2 of 6"
    assert sub_step(page) == "Judge 3" and "0.30" in tells(page) and "reject" in tells(page)
    page.locator(".sd-step [data-part=next]").click()
    assert sub_step(page) == "Replace" and "fills the gap" in tells(page)
    page.locator(".sd-steps button", has_text="Judge 3").click()
    page.locator(".sd-step [data-part=coin]").fill("0.1")
    assert tells(page).startswith("What if:") and "keep" in tells(page)
    assert "Bonus" in page.inner_text(".sd-steps") and page.locator(".sd-part.sd-grey").count() == 4
    page.locator(".sd-step [data-part=k]").fill("2")
    assert "1 fewer to draft" in page.inner_text(".sd-step [data-part=kanswer]")
    page.get_by_role("button", name="Back to what really happened").click()
    assert page.locator(".sd-part.sd-grey").count() == 0 and "Replace" in page.inner_text(".sd-steps")
    assert page.locator(".sd-step option:disabled").count() == 2  # no draws of the target's, and no h
    assert "too old for shared noise" in page.inner_text(".sd-step [data-part=ruleanswer]")


def test_keys_and_words_lead_from_decision_to_decision(open_page):
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    page.get_by_role("tab", name="Step through").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    page.focus(".sd-step [data-part=grid]")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".sd-step [data-part=title]") == "Cycle 3 of 6" and sub_step(page) == "Draft"
    for name in ("Check all", "Judge 1", "Judge 2", "Never judged", "Replace", "Commit", "Draft"):
        page.keyboard.press(" ")
        assert sub_step(page) == name and page.inner_text(".sd-step [data-part=announce]") == tells(page)
    page.locator(".sd-word", has_text="own1").click()
    assert page.inner_text(".sd-step [data-part=title]") == "Cycle 1 of 6" and sub_step(page) == "Bonus"
    page.keyboard.press("End")  # a click on a word takes no key away
    assert "<script>alert(1)</script>" in page.inner_text(".sd-whole") and "${alert(1)}" in page.inner_text(".sd-whole")
    page.locator(".sd-step [data-name=chen]").click()
    assert "min(1, q(x)/p(x))" not in page.inner_text(".sd-asks") and "p and q swap" in page.inner_text(".sd-asks")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_tree_is_taken_apart_sibling_by_sibling(open_page):
    page = open_page(reduced_motion="reduce")
    play_recorded(page, "Facts")
    page.get_by_role("tab", name="Step through").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    assert page.inner_text(".sd-step [data-part=title]") == "Cycle 2 of 3"
    assert page.inner_text(".sd-steps").split("\n") == [
        "Draft", "Check all", "Judge 1", "Judge 2", "Judge 3", "Judge 4", "Never judged", "Replace", "Commit"
    ]  # fmt: skip
    assert page.locator(".sd-whole .sd-tok.sd-acc").count() == 1
    assert "chains only" in page.inner_text(".sd-step [data-part=ruleanswer]")


SLIDE = """async (names) => {
    for (const name of names) for (let i = 1; i <= 10; i++) {
        const input = document.querySelector(`.sd-theory [data-part=${name}]`);
        input.value = +input.min + ((input.max - input.min) * i) / 11;
        input.dispatchEvent(new Event("input"));
        await new Promise(requestAnimationFrame);
    }
}"""


def open_theory(page):
    page.get_by_role("tab", name="Theory").click()
    page.wait_for_selector(".sd-theory [data-part=headline]:not(:empty)")
    return lambda name: page.inner_text(f".sd-theory [data-part={name}]")


def test_the_formulas_start_at_the_run_follow_the_sliders_and_come_back(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    assert [part(name) for name in ("alphavalue", "kvalue", "cvalue", "vvalue")] == ["0.67", "3", "0.250", "1.00"]
    assert "you are here" in part("curves") and "measured 1.44×" in part("curves")
    assert "Measured 1.44× lies inside" in part("measuredsay") and "1.44×" in part("measured")
    assert "1 (5)" in part("positions") and "your run" in part("table")
    page.get_by_role("button", name="α .8, K 4, c .1").click()
    assert "2.40× by the formula: 3.36 tokens per cycle, and each cycle costs 1.40 passes" in part("headline")
    assert part("announce") == part("headline") and "you are here" not in part("curves")
    assert "E4 = 0.00" in part("recursion") and "E0 = 2.36" in part("recursion").replace("\n", "")
    assert "α must exceed 0.10: 0.80 does." in part("breakeven")
    page.locator(".sd-theory [data-part=alpha]").fill("0.05")
    assert "slower than plain decoding" in part("headline") and "no K pays" in part("tablesub")
    page.locator(".sd-theory [data-part=k]").focus()
    page.keyboard.press("ArrowRight")
    assert part("kvalue") == "5"
    page.get_by_role("button", name="Your last run").click()
    assert part("kvalue") == "3" and "you are here" in part("curves")


def test_the_memory_wall_and_the_claims_are_worked_out(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    claims = part("claims")
    assert "2.40× if c is the cost of one" in claims and "3.06×" in claims and "2.86×" in claims and "141 GB" in claims
    page.get_by_role("button", name="Set the machine").click()
    assert "reads 141 GB" in part("wallsay") and "costs as much as one" in part("wallsay")
    assert "Too much for one H200" in part("memory")
    page.locator(".sd-theory [data-part=batch]").fill("9")
    assert part("batchvalue") == "512" and "bound by computing" in part("wallsay")
    page.locator(".sd-theory [data-part=target]").select_option("moe30")
    page.locator(".sd-theory [data-part=batch]").fill("0")
    assert "wakes other experts" in part("wallsay")
    page.get_by_role("button", name="Set the sliders").first.click()
    assert part("headline").startswith("2.40×") and part("vvalue") == "1.25"


def test_a_slider_of_the_formulas_moves_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    open_theory(page)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the processor: others may be at work here

    def spent():
        return next(m["value"] for m in tools.send("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    before, names = spent(), ["alpha", "k", "c", "v", "o", "batch", "context"]
    page.evaluate(SLIDE, names)
    assert 0 < (spent() - before) / (10 * len(names)) < 0.05  # seconds a frame, layout and painting and all


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_formulas_need_no_sideways_scrolling(open_page, width):
    page = open_page(width, reduced_motion="reduce")
    open_theory(page)
    page.locator(".sd-theory summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def open_methods(page):
    page.get_by_role("tab", name="Methods").click()
    page.wait_for_selector("#arena-chart .heatmaplayer image")
    page.wait_for_selector("#kind-chart .heatmaplayer image")


def cells(page, chart):
    return page.locator(f"#{chart}-chart .heatmaplayer text").all_text_contents()


def no_engine(*_):
    raise AssertionError("a model was asked for")


def test_the_arena_shows_what_was_recorded_and_loads_no_model(open_page, monkeypatch):
    monkeypatch.setattr(session, "_engine", no_engine)
    page = open_page(reduced_motion="reduce")
    assert page.evaluate("typeof window.Plotly") == "undefined"  # fetched when the tab is first opened
    open_methods(page)
    assert sorted(cells(page, "arena"))[:3] == ["0.80", "0.90", "1.00"] and len(cells(page, "arena")) == 12
    assert page.locator(".sd-recorded-badge p").all_inner_texts()[0] == "Recorded"
    assert "Draft model on Story (1.80×)" in page.inner_text("#findings")
    page.get_by_label("Tokens per cycle τ").check()
    page.wait_for_function("document.querySelector('#arena-chart .heatmaplayer').textContent.includes('2.80')")
    assert cells(page, "position") == ["0.80", "0.70", "0.60"] * 3
    assert "least about digits (0.25)" in page.locator("#methods .sd-pair2").inner_text()
    page.locator(".sd-choices").get_by_label("Code").check()
    assert page.locator("#cards section").count() == 6 and page.locator("#cards svg[role=img]").count() == 6


def test_the_table_is_sorted_by_a_press_and_saved_as_a_file(open_page):
    page = open_page(reduced_motion="reduce")
    open_methods(page)
    table = page.get_by_role("grid", name="All figures")
    assert "Prompt lookup" in table.get_by_role("row").nth(1).inner_text()
    heading = table.get_by_role("columnheader", name="Speed-up ×")
    heading.get_by_role("button").click()
    page.get_by_role("menuitem", name="Sort descending").click()
    page.wait_for_function("document.querySelector('[role=row][aria-rowindex=\"2\"]').textContent.includes('1.80')")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert saved.value.suggested_filename == "specdec-methods.csv"
    assert len(lines) == 13 and lines[0].startswith("drafter,domain,temperature,k,measured_speedup")


def test_a_measurement_here_stands_beside_the_record_and_stops_when_told(open_page, monkeypatch):
    def race(*_, **__):
        for event in toyrun.events():
            time.sleep(0.02)
            yield event

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), race))
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    open_methods(page)
    assert "Nothing measured yet" in page.inner_text("#methods .sd-progress")
    page.click("#measure")
    page.wait_for_selector("#live-chart .scatterlayer .point >> nth=-1", state="attached")
    assert page.locator(".sd-live-badge p").all_inner_texts()[0] == "Live"
    assert "races done" in page.inner_text("#methods .sd-progress")
    page.click("#halt")
    page.wait_for_selector("#measure:enabled")
    page.locator("#methods .sd-progress", has_text="Stopped").wait_for()
    deadline = time.monotonic() + 10
    while session._machine.locked() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not session._machine.locked()
    assert "Stopped" in page.inner_text("#methods .sd-progress")
    assert "Draft model" in page.inner_text("#live-table") and page.locator("#live-chart .point").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_reduced_motion_opens_at_the_first_rejection_and_stands_still(open_page):
    page = open_page(reduced_motion="reduce")
    assert "first rejection" in say(page)
    before = page.input_value("[data-part=scrub]")
    time.sleep(1.5)
    assert page.input_value("[data-part=scrub]") == before


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 375, 768, 1280])
def test_nothing_needs_sideways_scrolling(open_page, width, theme):
    page = open_page(width, query=f"?__theme={theme}", reduced_motion="reduce")
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.querySelector('.sd-stage')).backgroundColor")
    assert dark == ("rgb(11, 16, 32)" if theme == "dark" else "rgb(255, 255, 255)")


def test_bad_input_is_explained_and_loses_nothing(open_page):
    page = open_page(reduced_motion="reduce")
    before = page.inner_text("[data-part=lane0]")
    page.fill("textarea >> nth=0", "   ")
    page.click("#run")
    page.wait_for_selector(".sd-notice.sd-wrong")
    assert "prompt is empty" in page.inner_text(".sd-notice")
    assert page.inner_text("[data-part=lane0]") == before and page.inner_text(".sd-badge") == "Recorded"
    assert page.is_enabled("#run")


def test_example_prompts_and_recorded_runs_are_one_press_away(open_page):
    page = open_page(reduced_motion="reduce")
    page.locator(".sd-box .sd-pill", has_text="Facts").click()
    page.wait_for_function("document.querySelector('textarea').value.startsWith('Q: ')")
    page.locator(".sd-recorded .sd-pill", has_text="Story").click()
    page.wait_for_selector("[data-source=recorded]")


class SlowEngine:
    """The toy run, over and over, with pauses: a run that somebody will want to stop."""

    closed = 0

    def race(self, *_, **__):
        try:
            for event in toyrun.events():
                time.sleep(0.05)
                yield event
            time.sleep(600 if self.closed else 0.05)
        finally:
            SlowEngine.closed += 1

    def describe(self):
        return {"target": {"parameters": 1_000_000}, "draft_model": {"parameters": 100_000}}


def test_stop_keeps_the_text_and_frees_the_machine(open_page, monkeypatch):
    engine = SlowEngine()
    monkeypatch.setattr(session, "_engine", lambda *_: (engine, engine.race))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    page.wait_for_function("document.querySelectorAll('[data-part=lane0] .sd-tok:not(.sd-fut)').length > 3")
    page.click("#stop")
    page.wait_for_selector("#run:enabled")
    wait_for(page, "done")
    assert visible_tokens(page, 0) > 3
    assert "Stopped" in say(page) and "Stopped" in page.inner_text(".sd-notice")
    deadline = time.monotonic() + 10
    while session._machine.locked() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not session._machine.locked() and SlowEngine.closed == 1


def test_an_engine_that_breaks_leaves_what_was_written(open_page, monkeypatch):
    def broken(*_, **__):
        yield from toyrun.events()[:20]
        raise RuntimeError("secret")

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), broken))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector(".sd-notice.sd-wrong")
    assert "secret" not in page.inner_text("body")
    assert visible_tokens(page, 0) > 1
    page.wait_for_selector("#run:enabled")


@real_models
def test_a_live_run_of_the_real_models_finishes(open_page):
    page = open_page()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    assert page.inner_text(".sd-badge") == "Live"
    page.click("[data-slow='1']")
    wait_for(page, "done")
    page.wait_for_selector("#run:enabled")
    assert visible_tokens(page, 0) >= visible_tokens(page, 1) > 10
    assert float(page.inner_text(".sd-hero dd").rstrip("×")) > 0


def test_the_app_prints_its_address_within_seconds(tmp_path):
    import subprocess
    import sys

    app = Path(__file__).resolve().parent.parent / "app.py"
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-u", str(app)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any("http://" in line for line in process.stdout)
        assert time.monotonic() - began < 30  # six on an idle machine
    finally:
        process.terminate()
        process.wait(10)


def certificate(page):
    page.get_by_role("tab", name="Lossless?").click()
    page.wait_for_selector(".sd-proof [data-part=verdict] h2")


def verdict(page):
    return page.inner_text(".sd-proof [data-part=verdict]")


def break_it(page, key):
    page.locator(f".sd-bug[data-key={key}]").click()


def test_the_certificate_is_green_until_it_is_broken(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    assert "Lossless\n" in verdict(page) and page.inner_text(".sd-proof [data-part=badge]") == "Recorded"
    assert page.locator(".sd-proof .sd-small.sd-good").count() == 3
    break_it(page, "from_target")
    assert verdict(page).count("Not lossless") == 1 and "two of three checks fail" in verdict(page)
    assert "Greedy text still matches" in verdict(page) and page.locator(".sd-cross").count() == 3
    break_it(page, "extra_bonus")
    assert "The next token hides it" in verdict(page)
    assert page.get_attribute(".sd-bug[data-key=from_target]", "aria-checked") == "false"
    page.locator(".sd-proof [data-part=more]").click()
    break_it(page, "ratio_epsilon")
    assert "million" in verdict(page) and page.locator(".sd-cross").count() == 0
    break_it(page, "ratio_epsilon")
    assert "Lossless\n" in verdict(page)


def test_fewer_draws_show_less(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    break_it(page, "one_coin")
    assert page.locator(".sd-cross").count() > 0
    page.locator(".sd-proof [data-part=draws]").fill("0")
    assert "100 times" in page.inner_text(".sd-proof [data-part=sampled]") and page.locator(".sd-cross").count() == 0


def test_a_guess_is_compared_with_what_the_next_token_shows(open_page):
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    certificate(page)
    page.locator(".sd-guesses label", has_text="One coin").locator("input").check()
    page.locator(".sd-guesses label", has_text="Resample from").locator("input").check()
    page.get_by_role("button", name="Reveal").click()
    assert page.inner_text(".sd-proof [data-part=score]") == "6 of 8 right."
    guesses = page.inner_text(".sd-guesses")
    assert guesses.count("hidden") == 2 and guesses.count("seen at once") == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_live_certificate_of_a_broken_loop_turns_red(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    break_it(page, "argmax_draft")
    page.locator(".sd-proof [data-part=draws]").fill("1")
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    page.wait_for_selector(".sd-proof [data-part=run]:enabled")
    assert "1,000 times" in page.inner_text(".sd-proof [data-part=sampled]")
    assert page.inner_text(".sd-proof [data-part=badge]") == "Live" and page.locator(".sd-cross").count() == 3
    break_it(page, "argmax_draft")
    assert page.inner_text(".sd-proof [data-part=badge]") == "Recorded"


def slow_certificate(request):
    """One that somebody will want to stop."""
    told = json.loads(session.recorded_certificates())["toy"][request.mistake]
    for done in range(1, 2000):
        yield {**told, "sampled": [], "done": done}
        time.sleep(0.05)


def test_a_certificate_can_be_stopped(open_page, monkeypatch):
    monkeypatch.setattr(session, "_certificate", slow_certificate)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    page.locator(".sd-proof [data-part=said]", has_text=" of 20,000").wait_for()
    page.locator(".sd-proof [data-part=stop]").click()
    page.locator(".sd-proof [data-part=said]", has_text="Stopped after").wait_for()
    deadline = time.monotonic() + 10
    while session._machine.locked() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not session._machine.locked() and page.is_enabled(".sd-proof [data-part=run]")
