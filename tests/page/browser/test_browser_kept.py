"""What a visitor made stays: over a reload, in another language, in a file, in a link, in a page of its own."""

import re
from pathlib import Path

import pytest

from specdec.traces.file import Trace
from specdec.ui.components.traces import standalone
from specdec.ui.tabs import labels
from specdec.ui.text import strings
from tests import toyrun
from tests.page.browser import chrome
from tests.page.browser.chrome import expect, LOAD, part, press_tab, says, settings, step, wait_for
from tests.page.browser.test_browser_access import DRAWN
from tests.page.test_traces import FACTS, STORY, tampered

pytestmark = pytest.mark.long
SERVED = Path(__file__).parents[3] / "docs" / "vllm-race.jsonl"


def addressed(page, *parts):
    for one in parts:
        page.wait_for_function("part => location.search.includes(part)", arg=one)


def test_settings_run_and_tab_outlive_a_reload_and_another_language(page, toy_engine):
    toy_engine()
    page.locator("#prompt textarea").fill("My own words")
    page.locator("#run").click()
    expect(page.locator(".sd-badge").first).to_have_text("Ran live")
    wait_for(page, "done")
    settings(page)
    page.get_by_label("Seed").fill("41")
    press_tab(page, "theory")
    addressed(page, "prompt=My+own+words", "seed=41", "tab=theory")
    page.reload()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()
    press_tab(page, "race")
    expect(page.locator("#prompt textarea")).to_have_value("My own words")
    expect(page.get_by_label("Seed")).to_have_value("41")
    expect(page.locator(".sd-badge").first).to_have_text("Recorded")  # it goes on no more
    wait_for(page, "done")
    page.reload()  # the run that this page began with is not taken for the server's own
    wait_for(page, "done")
    expect(part(page, "prompt")).to_have_text("My own words")
    page.get_by_role("link", name="中文").click()
    expect(part(page, "prompt")).to_have_text("My own words")
    expect(page.locator("#prompt textarea")).to_have_value("My own words")
    assert "lang=zh" in page.url


def test_back_and_forward_walk_through_the_tabs(page):
    press_tab(page, "theory")
    addressed(page, "tab=theory")
    press_tab(page, "guide")
    addressed(page, "tab=guide")
    page.go_back()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()
    page.go_back()
    page.get_by_role("tab", name="Race", selected=True).wait_for()
    page.go_forward()
    page.get_by_role("tab", name="Theory", selected=True).wait_for()


ENGLISH = """() => {
  const apart = ".sd-tok, .sd-prompt, .sd-languages, .sd-tk, .sd-recorded-badge, [data-part=text]"
    + ", a, code, mark, footer, textarea, option, script, style";
  const spoken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const box = node.parentElement;
    if (!box.closest(apart) && box.checkVisibility()) spoken.push(node.data.replace(/“[^”]*”/g, "").trim());
  }
  // Our own labels: those of Gradio's widgets are its business; a fold of ours may hold a column of them.
  const isOurs = (box) => box.closest(".html-container, .column").matches(".html-container");
  for (const box of document.querySelectorAll(".html-container [aria-label]"))
    if (!box.closest(apart) && isOurs(box)) spoken.push(box.getAttribute("aria-label"));
  const isEnglish = (said) => /[A-Za-z]{3,} [a-z]{3,}/.test(said) || /^(?=.*[a-z]{4})[A-Za-z ,.’]+$/.test(said);
  return spoken.filter(isEnglish);
}"""
FITS = "document.documentElement.scrollWidth <= innerWidth"
# The last is the prompt that a toy run names on the stage.
NAMES = {"transformers", "Medusa", "specdec", "Leviathan", "Chen", "The old keeper <b>&"}


def left_in_english(page):
    return set(page.evaluate(ENGLISH)) - NAMES


def test_the_whole_page_is_chinese_and_fits(open_page):
    page = open_page(query="?lang=zh", locale="zh-CN")
    assert page.title() == "specdec · 亲眼看推测解码"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    for name in [*labels()][:-1]:  # the Guide names tools and papers in English
        page.locator(f"#{name}-button").click()
        page.wait_for_selector(DRAWN.get(name, (".sd-stage",))[0])
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(FITS)  # charts are drawn anew
        assert left_in_english(page) == set(), name
    press_tab(page, "race")
    expect(page.locator(".sd-badge").first).to_have_text("录制")
    expect(says(page)).to_contain_text("第一次拒绝")
    page.hover("[data-part=lane0] .sd-rejected:not(.sd-future)")
    assert "硬币 u" in page.inner_text("[data-part=card]")
    chrome.unfold(page, "deeds")
    page.get_by_role("button", name="核查", exact=True).click()
    expect(said(page)).to_contain_text("核查")
    assert left_in_english(page) == set()


def test_a_standalone_page_plays_from_its_file(browser, tmp_path):
    (tmp_path / "run.html").write_text(standalone(toyrun.trace()), encoding="utf-8")
    complaints, asked = [], []
    page = browser.browser.new_page(offline=True, reduced_motion="no-preference")
    page.context.clock.install()
    chrome.watch(page, complaints, lambda url: asked.append(url) or url[:5] in ("file:", "blob:"))
    page.goto((tmp_path / "run.html").as_uri())
    chrome.until(page, "first-rejection")  # by itself
    assert part(page, "pace").inner_text() == "goes on in a moment"
    page.click("[data-slow='1']")  # and at once by a press of a speed
    chrome.until(page, "done")
    assert "Done:" in says(page).inner_text()
    part(page, "showAll").click()  # at the end what was thrown away is a tick
    assert "<script>alert(1)</script>" in page.inner_text("[data-part=lane0]")
    page.press("[data-part=stage]", "Home")
    step(page, 2)
    page.get_by_role("button", name="Take this decision apart").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 2 of 6")
    with page.expect_download() as saved:
        page.locator(".sd-status [data-part=download]").click()
    assert Trace.load(Path(saved.value.path())) == toyrun.trace()
    page.close()
    assert complaints == [] and asked


def said(page):
    return page.locator(".sd-traces [data-part=said]")


def press(page, button):
    chrome.unfold(page, "deeds")
    page.locator(".sd-traces button", has_text=button).click()


def choose(page, button, path):
    with page.expect_file_chooser() as chooser:
        press(page, button)
    chooser.value.set_files(path)


DROP = """([name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name));
    for (const type of ["dragover", "drop"]) {
        const event = new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true });
        document.querySelector(".sd-stage").dispatchEvent(event);
        if (!event.defaultPrevented) throw new Error("the browser would leave the page");
    }
}"""


def test_a_run_is_downloaded_and_opened_again_by_choice_and_by_dropping_it(page, tmp_path):
    with page.expect_download() as saved:
        press(page, "Download trace")
    assert re.fullmatch(r"specdec-[\w-]+\.jsonl", saved.value.suggested_filename)
    assert Trace.load(Path(saved.value.path())) == toyrun.trace()
    choose(page, "Open a trace", STORY)
    expect(said(page)).to_contain_text("audit holds")
    expect(said(page)).to_have_text(re.compile(r"^story\.jsonl is open\."))
    text, cycle = tampered()
    (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")
    choose(page, "Open a trace", tmp_path / "bad.jsonl")
    expect(said(page)).to_contain_text("audit fails")  # the faults are written in the same stroke
    assert page.inner_text(".sd-faults").startswith(f"cycle {cycle} of the lane speculative")
    before = page.inner_text("[data-part=lane0]")
    (tmp_path / "junk.jsonl").write_text("<script>alert(1)</script>", encoding="utf-8")
    choose(page, "Open a trace", tmp_path / "junk.jsonl")
    expect(said(page)).to_contain_text("not taken")
    assert page.inner_text("[data-part=lane0]") == before and page.locator(".sd-faults:visible").count() == 0
    lane = page.locator("[data-part=lane0]").text_content()
    page.locator(".sd-pills .sd-pill", has_text="Facts").click()
    page.wait_for_function("lane => document.querySelector('[data-part=lane0]').textContent !== lane", arg=lane)
    assert said(page).inner_text() == ""  # what was told of one run is not said of the next
    page.set_viewport_size({"width": 375, "height": 900})
    page.evaluate(DROP, ["facts.jsonl", FACTS.read_text("utf-8")])
    expect(said(page)).to_contain_text("audit holds")
    assert "capital of France" in page.inner_text("[data-part=lane0]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_run_of_a_server_opens_and_is_drawn_with_what_it_reports(page):
    choose(page, "Open a trace", SERVED)
    expect(said(page)).to_contain_text("audit holds")
    expect(part(page, "counted")).to_be_visible()
    expect(part(page, "sub0")).to_contain_text("vLLM 0.32.0, watched from outside")
    unnamed = page.locator("[data-part=lane0] .sd-rejected[data-unnamed]").first
    assert f"{strings('player')['server']['unnamed']}, rejected" in unnamed.get_attribute("aria-label")
    unnamed.click()
    expect(part(page, "card")).to_contain_text(strings("player")["server"]["unnamed_tip"])
    press_tab(page, "step")
    step = page.locator(".sd-step")
    expect(step).to_contain_text(strings("step")["served"]["no_q"])
    expect(step).to_contain_text(strings("step")["lacks"]["server"])
    expect(step.locator("[data-part=rule]")).to_be_disabled()


def test_a_link_brings_the_settings_back_and_the_stage_says_that_its_run_is_another(page, open_page, address):
    press(page, "Copy link")
    copied = page.locator(".sd-traces [data-part=copy]")
    expect(copied).to_have_value(re.compile(re.escape(address) + ".*temperature=0.8"))
    asked = "?prompt=Hello+there&k=6&seed=41&temperature=1.5&rule=shared_noise&drafter=prompt_lookup"
    other = open_page(query=asked)
    expect(other.locator("#prompt textarea")).to_have_value("Hello there")
    for one in (other.locator(".sd-player[data-other]"), part(other, "otherSettings")):
        expect(one).to_be_visible()  # the run on show is of another prompt and of other settings
    expect(part(other, "prompt")).not_to_have_text("Hello there")
    other.locator(".sd-badge").first.click()
    expect(part(other, "meta")).to_be_visible()
    expect(other.get_by_label("Seed")).to_have_value("41")
    expect(other.get_by_label("Drafter")).to_have_value("Prompt lookup")
    expect(other.locator(".sd-rail input[type=number]").first).to_have_value("6")
    assert other.inner_text("#notice").strip() == "" and not other.is_visible("#link-notice")
    wrong = open_page(query="?k=99&seed=5")
    expect(wrong.locator("#link-notice .sd-wrong")).to_contain_text("K must be a whole number from 0 to 16.")
    expect(wrong.get_by_label("Seed")).to_have_value("5")


def test_a_link_brings_the_run_and_another_run_leaves_it(open_page, address):
    sender = open_page(reduced_motion="no-preference")
    sender.evaluate(LOAD, STORY.read_text("utf-8"))
    link = sender.evaluate("document.querySelector('.sd-player').share()")
    assert link["whole"] and "#run=" in link["link"]
    page = open_page(reduced_motion="no-preference", query=link["link"].removeprefix(address))
    expect(says(page)).to_contain_text("You were sent this run.")
    assert page.get_attribute(".sd-player", "data-state") == "done" and page.locator(".sd-finish").is_visible()
    texts = "() => ['lane0', 'lane1'].map((name) => document.querySelector(`[data-part=${name}]`).textContent)"
    sender.press("[data-part=stage]", "End")
    assert page.evaluate(texts) == sender.evaluate(texts)
    assert "#run=" in page.url
    page.get_by_role("button", name="Facts").click()
    page.wait_for_function("() => !location.hash")
    expect(says(page)).not_to_contain_text("You were sent")
