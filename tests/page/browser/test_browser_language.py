"""The page in Chinese, in a real Chromium: all of it, what is told live too; and the way there and back."""

from __future__ import annotations

import pytest
import toyrun
from chrome import expect, part, pytestmark, says, tokens, unfold, wait_for  # noqa: F401

from specdec.ui import session
from specdec.ui.text import speaking, strings

TABS = ["竞速", "逐步拆解", "无损吗？", "方法", "理论"]
# Two English words side by side, or one alone; not in tokens, prompts, names of files and machines, and quotations.
ENGLISH = """() => {
  const apart = ".sd-tok, .sd-prompt, .sd-version, .sd-languages, .sd-tk, .sd-recorded-badge, [data-part=text]"
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
NAMES = {"transformers", "Medusa", "specdec", "Leviathan", "Chen"}


def left_in_english(page):
    return set(page.evaluate(ENGLISH)) - NAMES


@pytest.mark.long
def test_the_whole_page_is_chinese_and_fits(open_page):
    page = open_page(query="?lang=zh", locale="zh-CN", reduced_motion="reduce")
    assert page.title() == "specdec · 亲眼看推测解码"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        page.wait_for_timeout(1500)
        assert left_in_english(page) == set(), name
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(FITS)  # charts are drawn anew
    page.get_by_role("tab", name="竞速").click()
    expect(page.locator(".sd-badge").first).to_have_text("录制")
    expect(says(page)).to_contain_text("第一次拒绝")
    page.hover("[data-part=lane0] .sd-rej:not(.sd-fut)")
    assert "硬币 u" in page.inner_text("[data-part=card]")
    unfold(page, "deeds")
    page.get_by_role("button", name="核查").click()
    page.wait_for_function("document.querySelector('.sd-traces [data-part=said]')?.textContent.includes('核查')")
    assert left_in_english(page) == set()


@pytest.mark.long
def test_what_is_told_live_is_chinese_too(open_page, monkeypatch):
    monkeypatch.setattr(session, "_engine", toyrun.engine)
    page = open_page(query="?lang=zh&k=99", reduced_motion="reduce")
    notice, prompt = page.locator("#notice .sd-notice"), page.locator("#prompt textarea")
    page.wait_for_function("document.querySelector('#link-notice .sd-notice')?.textContent.includes('链接要求')")
    prompt.fill("")
    page.get_by_role("button", name="实时运行").click()
    page.wait_for_function("document.querySelector('#notice .sd-wrong')?.textContent.includes('提示词是空的')")
    prompt.fill("The sea")
    page.get_by_role("button", name="实时运行").click()
    with speaking("zh"):
        done = strings("page")["notice"]["done"]
    expect(notice).to_have_text(done)
    assert page.inner_text(".sd-badge") == "实时"
    wait_for(page, "done")
    expect(says(page)).to_contain_text("推测解码")


@pytest.mark.long
def test_there_and_back_and_a_reload_stays(open_page):
    page = open_page()
    assert page.url.count("zh") == 0 and page.inner_text(".sd-badge") == "Recorded"
    page.get_by_role("tab", name="Theory").click()
    page.get_by_role("link", name="中文").click()
    page.get_by_role("tab", name="理论", selected=True).wait_for()  # the tab that was open
    assert "/zh?" in page.url
    page.reload()
    page.get_by_role("tab", name="理论", selected=True).wait_for()
    assert page.get_by_role("link", name="中文").get_attribute("aria-current") == "true"
    page.get_by_role("link", name="English").focus()
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Theory", selected=True).wait_for()
    assert page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.long
def test_the_browsers_language_comes_first_and_the_visitors_choice_stays(open_page):
    page = open_page(query="?k=5", locale="zh-CN")
    assert page.url.endswith("/zh?k=5")
    page.wait_for_function("[...document.querySelectorAll('input[type=number]')].some((one) => one.value === '5')")
    page.get_by_role("link", name="English").click()
    page.get_by_role("tab", name="Race").wait_for()
    page.reload()
    page.get_by_role("tab", name="Race").wait_for()
    assert "lang=en" in page.url and "k=5" in page.url
