"""What stands on the stage can be read: on a phone, in either theme, from the first moment to the last."""

from __future__ import annotations

import pytest
from chrome import expect, part, pytestmark  # noqa: F401

MOMENT = "(t) => { const p = document.querySelector('.sd-player'); p.show({ t: t ?? p.kit.horizon(p.run()) }); }"
CHECKING = "() => { const [c] = document.querySelector('.sd-player').run().lanes.speculative.cycles.slice(1); return (c.check.start + c.check.end) / 2; }"  # noqa: E501
BROKEN = """() => {
  const player = document.querySelector(".sd-player"), lines = player.log().trim().split("\\n").map((line) => JSON.parse(line));
  const first = lines.find((line) => line.event === "committed");
  Object.assign(first, { pieces: [":\\n    "], text: ":\\n    " });
  player.load(lines.map((line) => JSON.stringify(line)).join("\\n") + "\\n");
}"""  # noqa: E501


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_label_of_a_pass_is_read_while_it_fills(open_page, theme):
    page = open_page(query=f"?__theme={theme}")
    page.evaluate(MOMENT, page.evaluate(CHECKING))
    empty, filled = page.locator(".sd-flowpass span"), page.locator(".sd-flowpass i")
    assert empty.inner_text() == filled.inner_text() != ""
    ink, other = (one.evaluate("(node) => getComputedStyle(node).color") for one in (empty, filled))
    assert ink != other
    right = float(filled.evaluate("(node) => node.style.clipPath").split()[1].rstrip("%"))
    assert 0 < right < 100


def test_the_speed_that_plays_is_the_one_that_is_shown(open_page):
    page = open_page()
    pressed = page.locator("[data-part=speed] [aria-pressed=true]")
    slow = page.evaluate("document.querySelector('.sd-player').moment().slow")
    assert pressed.inner_text() == f"auto 1/{slow}"
    page.click("[data-slow='10']")
    expect(pressed).to_have_text("1/10")
    page.click("[data-slow=auto]")
    expect(pressed).to_contain_text("auto")
    phone = open_page(375, 812)
    shown = phone.locator("[data-part=speed] button:visible")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("auto")
    for name in ("1×", "1/10", "1/100", "1/400", "auto"):
        shown.click()
        expect(shown).to_contain_text(name)


def test_no_label_of_the_time_line_is_cut(open_page):
    page = open_page(375, 812)
    page.evaluate(MOMENT, None)
    page.click("[data-zoom=run]")
    over = """() => {
      const { right } = document.querySelector("[data-part=gantt]").getBoundingClientRect();
      return [...document.querySelectorAll("[data-part=gantt] text")].filter((one) => one.getBoundingClientRect().right > right + 1).map((one) => one.textContent);
    }"""  # noqa: E501
    assert page.evaluate(over) == []


def test_an_indentation_begins_its_line(open_page):
    page = open_page(reduced_motion="reduce")
    page.evaluate(BROKEN)
    ends = page.locator("[data-part=lane0] > .sd-tok:not(.sd-fut)")
    for full, told in ((False, [":", ""]), (True, [":↵", "×4"])):
        if full:
            part(page, "all").click()
        assert [one.inner_text().strip() for one in ends.all()] == told
        (above, below) = (one.bounding_box() for one in ends.all())
        assert below["y"] > above["y"] + 10 and below["x"] < above["x"]
