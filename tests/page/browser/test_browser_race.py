"""The tab Race: what it draws, from the first moment to the last, and what a visitor keeps of it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from specdec.events import Finished
from specdec.traces.file import Trace
from specdec.ui import recorded
from specdec.ui.text import ASSETS
from tests import toyrun
from tests.page.browser.chrome import expect, LOAD, part, play_recorded, says, step, wait_for

pytestmark = pytest.mark.long
SEEN = ("lane0", "lane1", "figures", "gantt", "play", "say", "why", "showAll")
SHOW = """(share) => {
    const player = document.querySelector(".sd-player");
    player.show({ t: share * Math.max(...Object.values(player.run().lanes).map((lane) => lane.endMs)) });
}"""
WRITTEN = """() => [...document.querySelectorAll(
    ".sd-lane .sd-tok:not(.sd-rejected, .sd-discarded, .sd-cut) > .sd-token-text")]
    .map((word) => word.textContent).join("")"""
PLACES = """(names) => names.map((name) => {
    const { x, y, right, bottom } = document.querySelector(`.sd-player [data-part=${name}]`).getBoundingClientRect();
    return [x, y, right, bottom].map(Math.round);
})"""


CUT_LABELS = """() => {
    const chart = document.querySelector("[data-part=gantt]"), { left, right } = chart.getBoundingClientRect();
    return [...chart.querySelectorAll("text")].filter((text) => {
        const box = text.getBoundingClientRect();
        return text.style.visibility !== "hidden" && (box.left < left - 1 || box.right > right + 1);
    }).length;
}
"""
UNSTYLED = """() => [...document.querySelectorAll(".sd-player svg :is(path, rect)")]
    .filter((node) => getComputedStyle(node).fill === "rgb(0, 0, 0)" && !node.closest("defs"))
    .map((node) => node.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
def test_lanes_charts_and_run_are_in_the_window_from_the_first_to_the_last_frame(open_page, width, height):
    page = open_page(width, height)
    page.evaluate(LOAD, Trace(toyrun.header(), tuple(toyrun.events(cycles=40, tokens=100))).dumps())
    first = None
    for share in (0, 0.01, 0.1, 0.3, 0.6, 0.9, 1):
        page.evaluate(SHOW, share)
        assert page.evaluate(UNSTYLED) == [], "SVG's black shows through where a style is missing"
        assert page.evaluate(CUT_LABELS) == 0
        places = page.evaluate(PLACES, SEEN)
        for name, (x, y, right, bottom) in zip(SEEN, places, strict=True):
            assert x >= 0 and y >= 0 and right <= width and bottom <= height, (name, share)
        assert page.locator("#run").bounding_box()["y"] < places[0][1]
        first = first or places
        assert places == first, "something moved"
    lane0, lane1, meters = places[:3]
    assert lane0[1] == lane1[1] and lane0[2] < lane1[0] < meters[0]  # beside each other


def test_a_phone_shows_the_text_and_the_timeline_above_the_transport_and_the_tab_that_is_open(open_page):
    page = open_page(375, 812)
    page.fill("#prompt textarea", "Write a Python function that computes the sum of a list.")  # two lines
    expect(part(page, "tour")).to_be_visible()  # below the stage
    expect(page.locator(".sd-pill").first).to_be_in_viewport(ratio=1)

    def bottom(one):
        box = page.locator(one).bounding_box()
        assert box["y"] >= 0, one
        return box["y"] + box["height"]

    transport = page.locator(".sd-transport").bounding_box()["y"]
    shown = ("#prompt textarea", "[data-part=play]", "[data-part=lane0]", "[data-part=lane1]")
    timeline = ("[data-part=gantt]", "[data-part=zoom]")
    assert max(map(bottom, ("[data-part=flow]", "[data-part=say]", *shown[2:], *timeline))) <= transport
    for width, height, seen in ((375, 812, 4), (375, 667, 3), (320, 640, 2)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("wide => document.documentElement.scrollWidth === wide", arg=width)  # scripts fit it
        assert max(map(bottom, shown[:seen])) <= height
        assert bottom("[data-part=lane0]") <= page.locator(".sd-transport").bounding_box()["y"]
        for name in ("Guide", "Race"):
            tab = page.get_by_role("tab", name=name)
            tab.click()
            expect(tab).to_be_in_viewport(ratio=1)


def test_every_draft_of_a_cycle_is_in_the_picture_of_the_narrowest_phone(open_page):
    page = open_page(320, 640)
    page.evaluate(LOAD, (ASSETS / "traces" / "tips.jsonl").read_text("utf-8"))
    page.press("[data-part=stage]", "Home")
    for _ in range(10):
        step(page)
        assert page.locator(".sd-flow > .sd-tok:visible", has_text="…").count() == 0
        assert page.locator(".sd-flow > [data-place]:visible").count() == 4


def test_the_first_run_is_never_behind_and_ends_twice_as_fast(page):
    log = (ASSETS / "traces" / f"{recorded.FIRST[0]}.jsonl").read_text("utf-8")
    page.evaluate(LOAD, log)
    told, first, names = [], None, set()
    for i in range(41):
        page.evaluate(SHOW, i / 40)
        names.add(page.locator("[data-part=figures] dt").last.evaluate("name => name.getBoundingClientRect().x"))
        assert page.locator(".sd-legend [data-of]:visible").count() == 7
        told.append(page.locator("[data-part=figures] .sd-hero dd").first.inner_text())
        first = first or page.evaluate(PLACES, SEEN)
        assert page.evaluate(PLACES, SEEN) == first, "something moved"
    ratios = [float(said.removesuffix("×")) for said in told if "×" in said]
    assert len(names) == 1  # whatever the figure beside it
    assert len(ratios) > 20 and min(ratios) >= 1 and ratios[-1] >= 2
    expect(part(page, "setup")).to_have_text("SmolLM2 (135 M) · Draft model (5.7 M) · 2 CPU cores")
    expect(part(page, "pace")).to_be_empty()
    expect(part(page, "swatches")).to_contain_text("+n tokens it gave")
    assert page.locator("[data-part=bars] .sd-mean").get_attribute("stroke-dasharray")
    wanted = ["".join(one.text.split()) for one in Trace.loads(log).events if isinstance(one, Finished)]
    assert len(wanted) == 2 and all(text in "".join(page.evaluate(WRITTEN).split()) for text in wanted)


def test_a_token_and_a_figure_explain_themselves_by_mouse_and_by_keyboard(page):
    card = part(page, "card")
    page.hover("[data-part=lane0] .sd-rejected:not(.sd-future)")
    expect(card).to_contain_text("Coin u")
    assert "0.30" in card.inner_text()
    page.keyboard.press("Escape")  # the mouse stays, the focus is elsewhere
    expect(card).to_be_hidden()
    page.mouse.move(5, 5)
    tab_to_a_token(page)
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.locator(".sd-term", has_text="Block efficiency").click()
    expect(card).to_contain_text("K + 1")


def tab_to_a_token(page):
    """From the stage past its links, the timeline's and the transport's buttons."""
    page.focus("[data-part=stage]")
    for _ in range(18):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.sd-lane .sd-tok')"):
            return
    raise AssertionError("no token has a place in the tab order")


def test_a_tree_hangs_its_siblings_below_each_other_and_leaves_its_path_when_past(page):
    play_recorded(page, "Facts")
    step(page)
    assert page.locator(".sd-tree .sd-tok:visible").count() == 3  # as prose the path alone
    part(page, "showAll").click()
    page.focus("[data-part=stage]")
    expect(says(page)).to_contain_text("one path, t1 t5")
    assert "2 of 2 levels" in part(page, "figures").text_content()
    tree, card = page.locator(".sd-tree:not(.sd-future):not(.sd-past)"), part(page, "card")
    place = {chip.inner_text()[:2]: chip.bounding_box() for chip in tree.locator(".sd-tok").all()}
    assert place["t0"]["x"] == place["t1"]["x"] and place["t0"]["y"] < place["t3"]["y"] < place["t1"]["y"]
    assert place["t0"]["x"] < place["t2"]["x"] < place["t6"]["x"] and place["t0"]["y"] == place["t6"]["y"]
    assert place["ow"]["y"] == place["t1"]["y"]  # the bonus token stands behind the path
    tree.locator(".sd-discarded", has_text="t6").hover()
    expect(card).to_contain_text("level 3 of 3")
    page.keyboard.press("ArrowRight")
    first = page.locator(".sd-tree").first
    expect(first).to_have_class(re.compile("sd-past"))
    assert [chip.inner_text()[:2] for chip in first.locator(".sd-tok:visible").all()] == ["t1", "t5", "ow"]
    assert tree.count() == 1 and tree.locator(".sd-tok:visible").count() == 8


def test_a_lossy_rule_is_labelled_wherever_its_run_is(page):
    assert page.locator(".sd-tag:visible").count() == 0
    play_recorded(page, "Code")
    for moment, reached in (("Home", "paused"), ("End", "done")):
        page.keyboard.press(moment)
        wait_for(page, reached)
        assert page.locator(".sd-lane .sd-tag:visible").count() == 1
        assert page.locator("[data-part=figures] .sd-hero .sd-tag:visible").count() == 1
    expect(part(page, "foot")).to_contain_text("is lossy")
    expect(part(page, "foot")).to_contain_text("ran on the GPU step by step, not as captured graphs: a toy.")


def test_a_busy_machine_spoils_the_clock_alone_and_one_press_measures_again(page, toy_engine):
    toy_engine()
    header = toyrun.header("live")
    busy = replace(header, machine=header.machine | {"busy": True}, run="busy")
    page.evaluate(LOAD, Trace(busy, tuple(toyrun.events())).dumps())
    wait_for(page, "done")
    assert "passes instead of 14" in page.inner_text(".sd-finish h2")
    expect(page.locator(".sd-finclock")).to_contain_text("but the machine was busy")
    page.get_by_role("button", name="Measure again").click()
    page.wait_for_function("() => document.querySelector('.sd-player').run().header.run !== 'busy'")
    wait_for(page, "done")
    expect(part(page, "figures").locator("dt button").first).to_have_text("Passes saved")  # as from its start on
    legend = page.locator(".sd-legend [data-of]").evaluate_all("(all) => all.map((one) => one.dataset.of)")
    assert legend == ["pending", "accepted", "rejected", "discarded", "resampled", "bonus", "plain"]
    assert page.evaluate("document.querySelector('.sd-player').run().header.prompt") == busy.prompt


def test_the_end_is_a_picture_to_keep_and_a_long_text_stays_in_its_box(page):
    page.press("[data-part=stage]", "End")
    wait_for(page, "done")
    assert page.inner_text(".sd-finish h2").endswith("passes instead of 14, same odds")
    assert "faster on the clock" in page.inner_text(".sd-finish")
    expect(page.locator("[data-zoom=run]")).to_have_attribute("aria-pressed", "true")  # both lanes are in sight
    before = part(page, "gantt").bounding_box()["width"]
    page.set_viewport_size({"width": 1200, "height": 900})
    page.wait_for_function("before => document.querySelector('[data-part=gantt] svg').clientWidth < before", arg=before)
    assert page.locator(".sd-finish").is_visible() and page.locator(".sd-flow").count() == 0
    with page.expect_download() as saved:
        page.click(".sd-finacts button >> nth=0")
    assert Path(saved.value.path()).read_bytes()[:4] == b"\x89PNG"
    trace = toyrun.trace()
    page.evaluate(LOAD, replace(trace, header=replace(trace.header, prompt="line\n" * 300)).dumps())
    assert part(page, "lane0").bounding_box()["height"] < 300


def test_on_a_phone_a_dark_chinese_page_is_so_from_the_first_paint_and_stands_where_gradios_will(early):
    page, release = early("zh?__theme=dark", width=375, reduced_motion="reduce")
    page.wait_for_selector("#first .sd-player:not([data-state=empty])")
    expect(page.locator("#first")).to_have_css("background-color", "rgb(11, 16, 32)")
    assert "设置" in page.inner_text("#first .sd-console > .sd-sub")
    way = page.locator("nav.sd-first-tabs a").nth(1)
    assert way.evaluate("(link) => link.href").endswith("/zh?__theme=dark&tab=step")
    release()
