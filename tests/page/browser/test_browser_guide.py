"""The guided tour and the tab Guide in a real Chromium, on recorded traces: no model is loaded."""

from __future__ import annotations

import re

import pytest
import toyrun
from chrome import expect, pytestmark  # noqa: F401

from specdec.traces.file import Trace
from specdec.ui import session
from specdec.ui.tabs import labels
from specdec.ui.text import strings

STEPS = strings("guide")["tour"]["steps"]
NO_OVERLAP = """() => {
    const ring = document.querySelector(".sd-ring"), panel = document.querySelector(".sd-tour");
    if (ring.hidden) return false;
    const a = ring.getBoundingClientRect(), b = panel.getBoundingClientRect();
    const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    return apart && a.top >= 0 && a.bottom <= innerHeight && a.width > 20;
}"""


@pytest.fixture(autouse=True)
def no_engine(monkeypatch):
    def refuse(family):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(session, "_engine", refuse)


def open_guide(page, sub_page="Ask"):
    page.get_by_role("tab", name="Guide").click()
    page.locator(".sd-gd-nav").get_by_role("link", name=sub_page, exact=True).click()
    page.wait_for_selector(".sd-gd-page:visible section >> nth=-1")


def start_tour(page):
    open_guide(page, "Learn")
    page.get_by_role("button", name="Start the tour").click()
    page.wait_for_selector(".sd-tour:visible")


def part(page, name):
    return page.locator(f".sd-tour [data-part={name}]")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), pytest.param(375, 740, marks=pytest.mark.long)])
def test_the_tour_shows_every_step_and_covers_none_of_them(open_page, width, height):
    page = open_page(width, height, reduced_motion="reduce")
    start_tour(page)
    for number, (name, told) in enumerate(STEPS.items(), start=1):
        assert part(page, "title").inner_text() == told["title"]
        assert part(page, "count").inner_text() == f"{number} of {len(STEPS)}"
        page.wait_for_function(NO_OVERLAP)
        if "task" in told:
            assert told["task"] in part(page, "task").inner_text(), name
            part(page, "show").click()
            page.wait_for_selector(".sd-task.sd-done")
            assert told["after"] in part(page, "task").inner_text(), name
            page.wait_for_function(NO_OVERLAP)
        part(page, "next").click()
    assert not page.locator(".sd-tour").is_visible() and not page.locator(".sd-ring").is_visible()
    assert page.get_by_role("tab", name="Race").get_attribute("aria-selected") == "true"


@pytest.mark.long
def test_the_tour_waits_for_the_visitors_own_deed_and_tidies_up(open_page):
    page = open_page(reduced_motion="reduce")
    start_tour(page)
    for _ in range(list(STEPS).index("break")):
        part(page, "next").click()
    switch = page.get_by_role("switch", name="Resample from the target")
    assert "Your turn" in part(page, "task").inner_text()
    switch.click()
    page.wait_for_selector(".sd-task.sd-done")
    part(page, "next").click()
    page.get_by_role("tab", name="Lossless?").click()
    assert switch.get_attribute("aria-checked") == "false"


@pytest.mark.long
def test_the_tour_dims_nothing_and_is_not_content_with_another_token(open_page):
    page = open_page(reduced_motion="reduce", query="?tour")
    page.wait_for_selector(".sd-tour:visible")
    part(page, "next").click()
    page.wait_for_function(NO_OVERLAP)
    page.locator("[data-part=lane0] .sd-acc:not(.sd-fut)").first.hover()
    page.wait_for_selector(".sd-card:visible")
    page.wait_for_timeout(100)  # some frames, in each of which it looks
    assert "Your turn" in part(page, "task").inner_text()
    page.locator("[data-part=lane0] .sd-rej:not(.sd-fut)").first.hover()
    page.wait_for_selector(".sd-task.sd-done")
    shadow = page.evaluate("getComputedStyle(document.querySelector('.sd-ring')).boxShadow")
    assert max(float(one) for one in re.findall(r"([\d.]+)px", shadow)) < 20, shadow


@pytest.mark.long
def test_the_tour_goes_by_keys_and_gives_the_run_back(open_page):
    page = open_page(reduced_motion="reduce")
    page.locator(".sd-pills .sd-pill", has_text="Repetitive").click()
    page.wait_for_selector("[data-part=peer]:visible")
    start_tour(page)
    page.wait_for_selector("[data-part=peer]", state="hidden")  # the recorded run is on the stage
    page.keyboard.press("ArrowRight")
    assert part(page, "count").inner_text().startswith("2 of")
    assert STEPS["rejection"]["title"] in page.inner_text(".sd-touring > [aria-live]")
    page.keyboard.press("ArrowLeft")
    assert part(page, "count").inner_text().startswith("1 of")
    page.keyboard.press("Escape")
    assert not page.locator(".sd-tour").is_visible()
    page.get_by_role("tab", name="Race").click()
    page.wait_for_selector("[data-part=peer]:visible")
    assert Trace.loads(page.evaluate("document.querySelector('.sd-player').log()")).header == toyrun.peer_trace().header


@pytest.mark.long
def test_the_tour_leaves_a_run_alone_that_is_going_on(open_page):
    page = open_page(reduced_motion="reduce")
    going = Trace(toyrun.header("live"), toyrun.trace().events[:6]).dumps()
    page.evaluate("log => document.querySelector('.sd-player').load(log)", going)
    start_tour(page)
    assert part(page, "title").inner_text() == "Not now" and not part(page, "next").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".sd-tour").is_visible()
    assert page.evaluate("document.querySelector('.sd-player').log()") == going


def test_a_link_may_begin_with_the_tour(open_page):
    page = open_page(query="?tour", reduced_motion="reduce")
    page.wait_for_selector(".sd-tour:visible")
    assert part(page, "title").inner_text() == STEPS["race"]["title"]


@pytest.mark.long
def test_a_question_is_answered_after_a_guess_and_leads_to_its_tab(open_page):
    page = open_page(reduced_motion="reduce")
    open_guide(page, "Learn")
    first = page.locator(".sd-gd-quiz > li").first
    first.get_by_role("button", name="Reveal").click()
    assert first.locator(".sd-gd-why").inner_text() == "Choose an answer first."
    first.get_by_label("3", exact=True).check()
    first.get_by_role("button", name="Reveal").click()
    assert "Not quite." in first.inner_text() and "4: Three drafts and the bonus token." in first.inner_text()
    first.get_by_label("4", exact=True).check()
    first.get_by_role("button", name="Reveal").click()
    assert "Right." in first.inner_text()
    first.get_by_role("button", name="See it: Race").click()
    assert page.get_by_role("tab", name="Race").get_attribute("aria-selected") == "true"


@pytest.mark.long
def test_a_class_gets_the_same_settings_by_its_link(open_page, address):
    page = open_page(reduced_motion="reduce")
    open_guide(page, "Teach")
    page.get_by_label("Class seed").fill("1234")
    link = page.input_value(".sd-gd-link")
    assert link.startswith(address)
    other = open_page(query=link.removeprefix(address))
    other.wait_for_function("() => document.querySelector('.sd-inline-number input')?.value === '1234'")


@pytest.mark.long
def test_the_worksheet_prints_alone(open_page):
    page = open_page(reduced_motion="reduce")
    open_guide(page, "Teach")
    page.evaluate("window.print = () => { window.printed = true; }")
    page.get_by_role("button", name="Print the worksheet").click()
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    assert page.locator(".sd-gd-paper").is_visible()
    assert page.locator(".sd-gd-paper li").count() == len(strings("guide")["quiz"]["list"]) >= 10
    for hidden in (".sd-head", ".tab-wrapper", "footer", "[data-section=glossary]", ".sd-gd-nav"):
        assert not page.locator(hidden).first.is_visible(), hidden
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.locator(".sd-gd-paper").is_visible()


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1280])
def test_the_guide_needs_no_sideways_scrolling_and_all_tabs_are_in_sight(open_page, width):
    page = open_page(width, reduced_motion="reduce")
    told = strings("guide")
    for name in told["pages"].values():
        open_guide(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert page.locator(".sd-gd-body section h2").all_text_contents() == list(told["sections"].values())
    for name in labels().values():
        box = page.get_by_role("tab", name=name, exact=True).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


HEIGHT = 2400  # pixels of a sub-page as it opens, at 1280 x 800


def test_each_sub_page_is_short_and_reached_by_keyboard(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.get_by_role("tab", name="Guide").click()
    ways = page.locator(".sd-gd-nav a")
    expect(ways).to_have_text(list(strings("guide")["pages"].values()))
    ways.first.focus()
    for number in range(ways.count()):
        if number:
            page.keyboard.press("Tab")
        expect(ways.nth(number)).to_be_focused()
        page.keyboard.press("Enter")
        expect(ways.nth(number)).to_have_attribute("aria-current", "page")
        expect(ways.nth(number)).to_be_focused()
        assert page.locator(".sd-gd-nav [aria-current=page]").count() == 1
        shown = page.locator(".sd-gd-page:visible")
        assert shown.count() == 1 and shown.evaluate("(one) => [...one.parentElement.children].indexOf(one)") == number
        assert page.evaluate("document.documentElement.scrollHeight") <= HEIGHT, ways.nth(number).inner_text()
    for before in reversed(range(number)):  # to the first, whose address has no section
        page.go_back()
        expect(ways.nth(before)).to_have_attribute("aria-current", "page")


def test_a_link_to_a_section_opens_its_sub_page(open_page):
    page = open_page(1280, 800, reduced_motion="reduce", query="?tab=guide#sheet")
    section = page.locator("[data-section=sheet]")
    expect(section.get_by_role("heading")).to_be_in_viewport()
    page.locator(".sd-gd-page:visible").get_by_role("link", name="Without a computer").click()
    heading = page.locator("[data-section=game] h2")
    expect(heading).to_be_focused()
    assert page.url.endswith("?tab=guide#game")
    page.evaluate("scrollTo({ top: 0 })")
    page.locator(".sd-gd-page:visible").get_by_role("link", name="Without a computer").click()  # once more
    expect(heading).to_be_in_viewport()


def test_two_clicks_open_an_answer_and_the_converter_converts(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("tab", name="Guide").click()  # opens with the questions
    told = strings("guide")["answers"]
    for name in ("which", "convert"):
        here = page.locator(f"[data-answer={name}]")
        here.locator("summary").click()
        expect(here.get_by_text(told["list"][name]["say"][-1][:40])).to_be_visible()
        assert "2026-11-2" in here.locator(".sd-sub", has_text="Checked").first.inner_text()
    fields = {name: here.get_by_label(label, exact=True) for name, label in told["fields"].items()}
    assert {name: field.input_value() for name, field in fields.items()} == {
        "k": "4", "rate": "40.0", "alpha": "0.666", "tau": "2.60",
    }  # fmt: skip
    fields["alpha"].fill("0.8")
    assert fields["rate"].input_value() == "59.0" and fields["tau"].input_value() == "3.36"
    fields["k"].fill("1")
    assert fields["rate"].input_value() == "80.0" and fields["tau"].input_value() == "1.80"
    fields["tau"].fill("9")
    assert fields["alpha"].input_value() == "" and "There is no such run" in here.inner_text()
    here.get_by_role("link", name="See it: Glossary").click()
    assert page.evaluate("document.activeElement.textContent") == strings("guide")["sections"]["glossary"]
    assert page.locator("[data-section=glossary]").is_visible() and not here.is_visible()
    open_guide(page)
    here.get_by_role("button", name="See it: Theory").click()
    assert page.get_by_role("tab", name="Theory").get_attribute("aria-selected") == "true"


def test_an_answer_leads_to_the_section_of_a_tab_and_opens_it(open_page):
    page = open_page(reduced_motion="reduce")
    for _ in range(2):  # the tab's first showing, and a later one
        open_guide(page)
        here = page.locator("[data-answer=load]")
        here.evaluate("(fold) => { fold.open = true }")
        here.get_by_role("button", name="See it: Theory").click()
        wall = page.locator("#theory [data-fold=wall]")
        expect(wall.locator("[data-part=roof] svg")).to_be_visible()
        expect(wall.locator("> summary")).to_be_focused()
        expect(wall.locator("> summary")).to_be_in_viewport()
        wall.evaluate("(fold) => { fold.open = false }")
