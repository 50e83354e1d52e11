"""The other tabs: their sections open and are drawn, and what is computed follows what is chosen."""

import json
import re

import pytest

from specdec.ui.text import of_drafters, strings
from tests.page.browser.chrome import expect, no_engine, open_fold, part, press_tab

pytestmark = pytest.mark.long
SHORT = 2400  # pixels of the whole page: three screens of a laptop
HEIGHT = "document.documentElement.scrollHeight"
TABS = {
    "theory": (
        ("[data-part=wall] svg", "[data-part=curves] svg"),
        {
            "Which K?": ("[data-part=table] tbody tr", "[data-part=map] td b"),
            "Rules and temperature": ("[data-part=rules] svg rect", "[data-part=heat] svg rect"),
            "Formula and clock": ("[data-part=measured] svg rect", "[data-part=kept] svg rect"),
            "Quoted figures, worked out": ("[data-part=introductions] article p", "[data-part=atlas] article i"),
            "The memory wall": ("[data-part=roof] svg path",),
        },
    ),
    "methods": (
        ("#arena tbody td", "#findings p"),
        {
            "How each method drafts": ("#cards svg[role=img]",),
            "Two questions": (".sd-questions h3",),
            "All figures": ("[data-fold=figures] tbody tr",),
        },
    ),
}


@pytest.mark.parametrize("name", TABS)
def test_a_tab_is_short_and_every_section_opens_by_keyboard_and_is_drawn(page, name):
    page.locator(f"#{name}-button").click()
    tab, (first, folds) = page.locator(f"#{name}"), TABS[name]
    for one in first:
        expect(tab.locator(one).first).to_be_visible()
    assert page.evaluate(HEIGHT) <= SHORT
    lids = tab.locator(".sd-section > summary")
    assert lids.locator("h2").all_inner_texts() == list(folds)
    assert all(lids.locator("span").all_inner_texts())  # what each answers
    lids.first.focus()
    for i, parts in enumerate(folds.values()):
        if i:
            page.keyboard.press("Tab")  # nothing of a section that is shut is on the way
        expect(lids.nth(i)).to_be_focused()
        assert not tab.locator(parts[0]).first.is_visible()
        page.keyboard.press("Enter" if i % 2 else "Space")
        for one in parts:
            expect(tab.locator(one).first).to_be_visible()
        edge = lids.nth(i).locator("xpath=..").bounding_box()
        for chart in tab.locator(".sd-section[open] .sd-chart > svg:visible").all():
            box = chart.bounding_box()
            assert box["width"] > 200 and box["x"] + box["width"] <= edge["x"] + edge["width"] + 1
        page.keyboard.press("Enter")
    assert page.evaluate(HEIGHT) <= SHORT


def stands_at(page, cycle, sub_step):
    expect(page.locator(".sd-step [data-part=title]")).to_have_text(cycle)
    expect(page.locator(".sd-steps [aria-current]")).to_have_text(sub_step)


def test_keys_and_words_lead_from_decision_to_decision(open_page):
    page = open_page(375, query="?__theme=dark")
    press_tab(page, "step")
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    page.focus(".sd-step [data-part=grid]")
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    stands_at(page, "Cycle 3 of 6", "Draft")
    for name in ("Check all", "Judge 1", "Judge 2", "Never judged", "Replace", "Commit", "Draft"):
        page.keyboard.press(" ")
        expect(page.locator(".sd-steps [aria-current]")).to_have_text(name)
        assert page.inner_text(".sd-step [data-part=announce]") == page.inner_text(".sd-step [data-part=say]")
    page.locator(".sd-word", has_text="own1").click()
    stands_at(page, "Cycle 1 of 6", "Bonus")
    page.keyboard.press("End")  # a click on a word takes no key away
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 6 of 6")
    assert "<script>alert(1)</script>" in page.inner_text(".sd-whole")
    assert "${alert(1)}" in page.inner_text(".sd-whole")
    page.locator(".sd-step [data-name=chen]").click()
    expect(page.locator(".sd-asks").first).to_contain_text("p and q swap")
    assert "min(1, q(x)/p(x))" not in page.inner_text(".sd-asks")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    fits = "[...document.querySelectorAll('.sd-bar > button')].every((one) => one.scrollWidth <= one.clientWidth)"
    assert page.evaluate(fits)


def test_the_first_screen_of_step_holds_the_chances_and_the_pictures(page):
    press_tab(page, "step")
    page.locator(".sd-steps button", has_text="Check all").click()
    chances = page.locator(".sd-places").all_inner_texts()
    assert len(chances) > 1 and all(chances[:-1])  # under the pass that gives them
    for name, rows in (("Draft", 2), ("Check all", 3), ("Commit", 4)):  # times, the last of plain decoding
        page.locator(".sd-steps button", has_text=name).click()
        assert page.locator(".sd-tell tbody tr").count() == rows
        assert (box := page.locator(".sd-tell table").bounding_box()) and box["y"] + box["height"] <= 800
    expect(page.locator(".sd-tell h3")).to_contain_text("times as fast as plain decoding")
    next_y = page.locator(".sd-step [data-part=next]").bounding_box()["y"]
    for name in ("Judge 1", "Replace"):
        page.locator(".sd-steps button", has_text=name).click()
        assert page.locator(".sd-step [data-part=next]").bounding_box()["y"] == next_y
        for chart in page.locator(".sd-tell > div > svg").all():
            assert (box := chart.bounding_box()) and box["y"] + box["height"] <= 800
            assert chart.evaluate("svg => svg.getBBox().width - svg.parentElement.clientWidth") <= 40


def test_the_certificate_is_green_until_it_is_broken_and_a_live_one_turns_red(page):
    press_tab(page, "lossless")
    verdict, badge = (page.locator(f".sd-proof [data-part={name}]") for name in ("verdict", "badge"))
    title = verdict.locator("h2")

    def break_it(key):
        page.locator(f".sd-bug[data-key={key}]").click()

    expect(title).to_have_text("Lossless on this toy pair")
    expect(badge).to_have_text("Recorded")
    expect(verdict).to_contain_text("All 1,925 ways")
    assert page.locator(".sd-proof [data-part=sampled] [data-part=run]").bounding_box()["y"] < 900  # beside the verdict
    page.get_by_text("The test behind it: G = ").click()
    expect(page.get_by_text("degrees of freedom, here 94")).to_be_visible()
    assert page.locator("[data-part=choices] .sd-bug").evaluate_all("all => all.map((one) => one.dataset.key)") == [
        "typical"
    ]
    expect(page.locator(".sd-proof .sd-small.sd-good")).to_have_count(3)
    break_it("from_target")
    expect(title).to_have_text("Not lossless")
    assert "two of three checks fail" in verdict.inner_text()
    assert "Greedy text still matches" in verdict.inner_text() and page.locator(".sd-cross").count() == 3
    page.locator(".sd-proof [data-part=more]").click()
    break_it("coarse_ratio")
    expect(verdict).to_contain_text("million")
    assert page.locator(".sd-cross").count() == 0
    break_it("coarse_ratio")
    expect(title).to_have_text("Lossless on this toy pair")
    break_it("argmax_draft")
    page.locator(".sd-proof [data-part=draws]").fill("1")
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    page.wait_for_selector(".sd-proof [data-part=run]:enabled")
    expect(page.locator(".sd-proof [data-part=sampled]")).to_contain_text("1,000 times")
    expect(badge).to_have_text("Live")
    assert page.locator(".sd-cross").count() == 3
    break_it("argmax_draft")
    expect(badge).to_have_text("Recorded")
    status = page.locator(".sd-proof [data-part=status]")
    page.locator(".sd-proof [data-part=draws]").fill("4")
    page.locator(".sd-proof [data-part=run]").click()
    page.locator(".sd-proof [data-part=stop]").click()  # at once: a busy page would come too late
    expect(status).to_contain_text("Stopped.")
    break_it("from_target")
    expect(badge).to_have_text("Recorded")
    expect(status).to_be_empty()  # it was of another sample


def test_the_arena_shows_what_was_recorded_and_loads_no_model(open_page, toy_engine):
    toy_engine(no_engine)
    page = open_page()
    press_tab(page, "methods")
    fold = page.locator("#methods .sd-section").first
    place = fold.bounding_box()["y"]
    page.wait_for_selector("#methods .js-plotly-plot")
    assert abs(fold.bounding_box()["y"] - place) <= 2  # the chart, which comes late, has its room
    cells = page.locator("#arena tbody td")
    expect(cells).to_have_text(["1.53", "1.80", "1.30", "1.45", "1.40", "1.50", "0.99", "0.90", "1.10"])
    expect(page.locator("#arena [data-side=below]")).to_have_text(["0.99", "0.90"])
    expect(page.locator("#arena [data-best]")).to_have_text(["1.53", "1.80", "1.50"])
    spans = page.locator("#arena .sd-span")
    expect(spans.nth(0)).not_to_have_attribute("role", "img")  # a mean: a bar from plain decoding
    expect(spans.nth(1)).to_have_attribute("aria-label", "1.75 – 1.90")
    page.locator("#arena").get_by_role("button", name="T = 0.8").click()
    expect(page.locator("#arena [data-side=below]")).to_have_text(["0.92", "0.80"])
    expect(page.locator("#arena [data-best]")).to_have_text(["1.22", "1.20", "1.25"])
    expect(page.locator("#methods .js-plotly-plot").filter(visible=True)).to_have_count(1)  # the chart of this choice
    expect(page.locator("#arena [data-near]")).to_have_text(["1.10"])  # 1.05 to 1.20 reaches it
    expect(page.locator(".sd-recorded-badge .sd-badge").first).to_have_text("Recorded")
    assert "of 2 kinds of text: Draft model (2)" in page.inner_text("#findings")  # of this choice
    open_fold(page, "How each method drafts")
    cards = len(of_drafters("card"))
    assert page.locator("#cards section").count() == page.locator("#cards svg[role=img]").count() == cards


def test_formulas_start_at_the_run_and_follow_the_sliders_and_quoted_figures_the_costs_of_a_place(page):
    press_tab(page, "theory")

    def part(name):
        return page.locator(f".sd-theory [data-part={name}]")

    expect(part("headline")).not_to_be_empty()
    for name, value in {"alphavalue": "0.667", "kvalue": "3", "cvalue": "0.250", "vvalue": "1.00"}.items():
        expect(part(name)).to_have_text(value)
    for chart, text in (("wall", "wallfirst"), ("curves", "longer")):  # what is drawn stands before what is said of it
        assert part(chart).bounding_box()["y"] < part(text).bounding_box()["y"]
    expect(part("curves")).to_contain_text("measured 1.44×")
    assert "K·c + v + o = 3 × 0.250 + 1.00 + " in part("longer").inner_text()
    assert re.search(r"Draft 4 stays only if .* (more|less) than the \d", part("longer").inner_text())
    for heading in ("Which K?", "Formula and clock"):
        open_fold(page, heading)
    expect(part("measuredsay")).to_contain_text("Measured 1.44× lies inside")
    expect(part("measured")).to_contain_text("1.44×")
    expect(part("measuredsay")).to_contain_text("this share was kept: ")
    assert "this run" in part("table").inner_text()
    page.get_by_role("button", name="A poor draft").click()
    expect(part("longer")).to_contain_text("power 7 = 0.000219 tokens more, for 0.1 steps more. That is 0.00219 tokens")
    page.get_by_role("button", name="A good draft").click()
    expect(part("headline")).to_contain_text("2.40× by the formula: 3.36 tokens per cycle, and each cycle costs 1.40")
    assert part("announce").inner_text() == part("headline").inner_text()
    expect(page.get_by_role("button", name="A good draft")).to_have_attribute("aria-pressed", "true")
    assert "measured" not in part("curves").inner_text()
    part("alpha").fill("0.05")
    expect(part("headline")).to_contain_text("slower than plain decoding")
    assert "no K pays" in part("tablesub").inner_text()
    part("k").focus()
    page.keyboard.press("ArrowRight")
    expect(part("kvalue")).to_have_text("5")
    page.get_by_role("button", name="The run on show").click()
    expect(part("kvalue")).to_have_text("3")
    assert "measured 1.44×" in part("curves").inner_text()
    open_fold(page, "Quoted figures, worked out")
    expect(part("introductions").locator("article")).to_have_count(8)
    claim = part("atlas").locator("[data-claim=vllm_8b]")
    expect(claim).to_contain_text("3.08 tokens per cycle at 1.75×: a cycle cost K·c + v + o = 1.76 plain steps.")
    rows = [{"drafter": "x", "k": 4, "tau": 3, "draft_cost": 0.1, "verify_cost": 1.1, "measured_speedup": 2}]
    report = json.dumps({"rows": rows, "machine": {"gpu": "Mine"}}).encode()
    part("report").set_input_files({"name": "own.json", "mimeType": "application/json", "buffer": report})
    expect(claim).to_contain_text("a cycle 1.5, so expect 2.05×")  # 4 · .1 + 1.1: nothing is left for o
    part("place").select_option(label="The run on show")
    expect(claim).not_to_contain_text("2.05×")
    part("report").set_input_files({"name": "own.json", "mimeType": "application/json", "buffer": b"{}"})
    expect(part("reportsay")).to_contain_text("no report of specdec bench")


STEPS = strings("guide")["tour"]["steps"]
NO_OVERLAP = """() => {
    const ring = document.querySelector(".sd-ring"), panel = document.querySelector(".sd-tour");
    if (ring.hidden) return false;
    const a = ring.getBoundingClientRect(), b = panel.getBoundingClientRect();
    const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    return apart && a.top >= 0 && a.bottom <= innerHeight && a.width > 20;
}"""


def test_the_row_of_tabs_stays_in_its_place(page):
    for width, height in ((1920, 1080), (1280, 800), (768, 1024), (375, 812)):
        page.set_viewport_size({"width": width, "height": height})
        places = set()
        for one in page.get_by_role("tab").all():
            one.click()
            expect(one).to_have_attribute("aria-selected", "true")
            places.add(one.bounding_box()["y"])
        assert len(places) == 1, (width, places)


def test_on_a_phone_the_guides_sections_fold_and_a_link_opens_its_own(open_page):
    page = open_page(375, 812, query="?tab=guide#quiz")
    page.locator(".sd-gd-question input").first.check()
    expect(page.locator(".sd-gd-why").first).to_contain_text("Not quite. 4: Three drafts and the bonus token.")
    folds = page.locator("[data-section] > .sd-fold")
    assert folds.evaluate_all("(folds) => folds.filter((fold) => fold.open).length") == 1


def test_an_answer_of_the_quiz_moves_only_what_is_below_it(open_page):
    page = open_page(query="?tab=guide#quiz")
    questions = page.locator(".sd-gd-question")
    places = "(all) => all.map((one) => [one.offsetLeft, one.offsetTop].join())"
    before = questions.evaluate_all(places)
    questions.nth(5).locator("input").first.check()  # the last one of the first of two columns
    expect(questions.nth(5).locator(".sd-gd-why")).not_to_be_empty()
    assert questions.evaluate_all(places) == before


def open_guide(page, sub_page="Ask"):
    press_tab(page, "guide")
    page.locator(".sd-gd-nav").get_by_role("link", name=sub_page).click()
    page.wait_for_selector(".sd-gd-page:visible section >> nth=-1")


def start_tour(page):
    open_guide(page, "Learn")
    page.get_by_role("button", name="Start the tour").click()
    page.wait_for_selector(".sd-tour:visible")


def tour(page, name):
    return page.locator(f".sd-tour [data-part={name}]")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 740)])
def test_the_tour_shows_every_step_and_covers_none_of_them(open_page, width, height):
    page = open_page(width, height)
    start_tour(page)
    for number, (name, told) in enumerate(STEPS.items(), start=1):
        assert tour(page, "title").inner_text() == told["title"]
        assert tour(page, "count").inner_text() == f"{number} of {len(STEPS)}"
        page.wait_for_function(NO_OVERLAP)
        if name in ("race", "rejection"):  # what the text speaks of is in sight
            scene = [part(page, one).bounding_box() for one in ("flow", "say")]
            end = page.locator(".sd-tour").bounding_box()["y"]
            assert all(box["y"] >= 0 and box["y"] + box["height"] <= end for box in scene), name
        if "task" in told:
            assert told["task"] in tour(page, "task").inner_text(), name
            tour(page, "show").click()
            page.wait_for_selector(".sd-task.sd-done")
            assert told["after"] in tour(page, "task").inner_text(), name
            page.wait_for_function(NO_OVERLAP)
        tour(page, "next").click()
    assert not page.locator(".sd-tour").is_visible() and not page.locator(".sd-ring").is_visible()
    assert page.get_by_role("tab", name="Race").get_attribute("aria-selected") == "true"


def test_the_tour_goes_by_keys_and_gives_the_run_back(page):
    page.locator(".sd-pills .sd-pill", has_text="Repetitive").click()
    page.wait_for_selector("[data-part=peer]:visible")
    page.click("[data-slow='10']")
    start_tour(page)
    page.wait_for_selector("[data-part=peer]", state="hidden")  # the recorded run is on the stage
    page.wait_for_selector("[data-slow=auto][aria-pressed=true]")
    page.keyboard.press("ArrowRight")
    assert STEPS["rejection"]["title"] in page.inner_text(".sd-touring > [aria-live]")
    page.keyboard.press("ArrowLeft")
    assert tour(page, "count").inner_text().startswith("1 of")
    page.keyboard.press("Escape")
    press_tab(page, "race")
    page.wait_for_selector("[data-part=peer]:visible")
    page.wait_for_selector("[data-slow='10'][aria-pressed=true]")


def test_the_guide_begins_with_the_tour_an_answer_opens_and_the_converter_converts(page):
    press_tab(page, "guide")
    links = page.locator(".sd-gd-nav a")
    expect(links).to_have_text(list(strings("guide")["pages"].values()))
    tops = [page.locator(one).first.bounding_box()["y"] for one in ("#guide [data-tour]", ".sd-gd-nav", ".sd-gd-cycle")]
    assert tops == sorted(tops)
    expect(links.nth(0)).to_have_attribute("aria-current", "page")
    assert page.locator("[data-section=start]").is_visible() and not page.locator("[data-answer]").first.is_visible()
    open_guide(page)
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
    fields["tau"].fill("9")
    assert fields["alpha"].input_value() == "" and "There is no such run" in here.inner_text()
    here.get_by_role("link", name="See it: Glossary").click()
    assert page.evaluate("document.activeElement.textContent") == strings("guide")["sections"]["glossary"]
    assert page.locator("[data-section=glossary]").is_visible() and not here.is_visible()
    open_guide(page)
    here.get_by_role("button", name="See it: Theory").click()
    assert page.get_by_role("tab", name="Theory").get_attribute("aria-selected") == "true"


def test_a_search_leaves_the_hits_and_any_way_out_of_it_brings_all_back(page):
    open_guide(page)
    box, answers, terms = (
        page.get_by_role("searchbox"),
        page.locator("[data-answer]"),
        page.locator("[data-section=glossary] dl > div"),
    )
    everything = answers.count()
    box.fill("Prefill")
    for found in (answers, terms):
        assert 0 < found.filter(visible=True).count() < found.count()
        assert all("prefill" in text.lower() for text in found.filter(visible=True).all_text_contents())
    box.press("Enter")
    page.keyboard.press("Enter")  # once to the first hit, once to open it
    expect(page.locator("[data-answer][open]")).to_have_count(1)
    box.press("Escape")
    assert box.input_value() == "" and answers.filter(visible=True).count() == everything
    box.fill("no suchtext")
    expect(page.get_by_text(strings("guide")["search"]["none"])).to_be_visible()
    elsewhere, card = (
        page.get_by_role("heading", name=strings("guide")["search"]["elsewhere"]),
        "distillation vocabulary",
    )
    expect(elsewhere).not_to_be_visible()
    box.fill(card)
    expect(elsewhere).to_be_visible()
    page.get_by_role("button", name="See it: Methods").filter(visible=True).click()
    assert page.get_by_role("tab", name="Methods").get_attribute("aria-selected") == "true"
    open_guide(page)
    box.fill("TEXT WORSE weak draft")
    page.get_by_role("link", name="See it: Common mistakes").filter(visible=True).click()
    expect(page.locator("[data-section=mistakes]")).to_be_visible()
    assert box.input_value() == "" and not elsewhere.is_visible()
    open_guide(page, "Glossary")
    assert box.input_value() == "" and terms.filter(visible=True).count() == terms.count()
