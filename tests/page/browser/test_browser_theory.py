"""*Theory* in a real Chromium: the formulas at the run, and their sliders."""

from __future__ import annotations

import re

import pytest
from chrome import expect, open_fold, processor, pytestmark  # noqa: F401

SLIDE = """async (names) => {
    for (const name of names) for (let i = 1; i <= 10; i++) {
        const input = document.querySelector(`.sd-theory [data-part=${name}]`);
        input.value = +input.min + ((input.max - input.min) * i) / 11;
        input.dispatchEvent(new Event("input"));
        await new Promise(requestAnimationFrame);
    }
}"""


def open_theory(page):
    """Its parts by name."""
    page.get_by_role("tab", name="Theory").click()
    page.wait_for_selector(".sd-theory [data-part=headline]:not(:empty)")
    return lambda name: page.locator(f".sd-theory [data-part={name}]")


def test_the_formulas_start_at_the_run_follow_the_sliders_and_come_back(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    for name, value in {"alphavalue": "0.67", "kvalue": "3", "cvalue": "0.250", "vvalue": "1.00"}.items():
        expect(part(name)).to_have_text(value)
    expect(part("curves")).to_contain_text("you are here")
    assert "measured 1.44×" in part("curves").inner_text()
    for heading in ("Which K?", "Formula and clock", "What the formula assumes"):
        open_fold(page, heading)
    expect(part("measuredsay")).to_contain_text("Measured 1.44× lies inside")
    expect(part("measured")).to_contain_text("1.44×")
    expect(part("positions")).to_contain_text("1 (5)")
    assert "your run" in part("table").inner_text()
    page.get_by_role("button", name="α .8, K 4, c .1").click()
    expect(part("headline")).to_contain_text("2.40× by the formula: 3.36 tokens per cycle, and each cycle costs 1.40")
    assert part("announce").inner_text() == part("headline").inner_text()
    assert "you are here" not in part("curves").inner_text()
    recursion = part("recursion").inner_text().replace("\n", "")
    assert "E4 = 0.00" in recursion and "E0 = 2.36" in recursion
    assert "α must exceed 0.10: 0.80 does." in part("breakeven").inner_text()
    part("alpha").fill("0.05")
    expect(part("headline")).to_contain_text("slower than plain decoding")
    assert "no K pays" in part("tablesub").inner_text()
    part("k").focus()
    page.keyboard.press("ArrowRight")
    expect(part("kvalue")).to_have_text("5")
    page.get_by_role("button", name="Your last run").click()
    expect(part("kvalue")).to_have_text("3")
    assert "you are here" in part("curves").inner_text()


@pytest.mark.long
def test_the_memory_wall_and_the_claims_are_worked_out(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    open_fold(page, "Often quoted figures, worked out")
    expect(part("claims")).to_contain_text("2.40× if c")
    claims = part("claims").inner_text()
    assert "2.40× if c is the cost of one" in claims and "3.06×" in claims and "2.86×" in claims and "141 GB" in claims
    assert not part("wallsay").is_visible()
    page.get_by_role("button", name="Set the machine").click()  # which opens the section that it leads to
    expect(part("walltitle")).to_be_in_viewport()
    expect(part("wallsay")).to_contain_text("reads 139 GB")
    assert "costs as much as one" in part("wallsay").inner_text()
    assert "Too much for one H200" in part("memory").inner_text()
    part("batch").fill("9")
    expect(part("batchvalue")).to_have_text("512")
    assert "bound by computing" in part("wallsay").inner_text()
    part("target").select_option("moe30")
    part("batch").fill("0")
    expect(part("wallsay")).to_contain_text("wakes other experts")
    page.get_by_role("button", name="Set the sliders").first.click()
    expect(part("headline")).to_have_text(re.compile(r"^2\.40×"))
    assert part("vvalue").inner_text() == "1.25"


def test_many_texts_at_once_as_reckoned_and_as_measured(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    open_fold(page, "The memory wall")
    expect(part("tradesay")).to_contain_text("Batch 1: plain decoding gives each 222 tokens/s, all 222; speculation")
    told = part("batchsay").inner_text()
    part("machine").select_option("t4")
    assert "Batch 1: plain decoding gives each 21 tokens/s" in part("tradesay").inner_text()
    assert part("batchsay").inner_text() != told and "Experts" in part("batches").inner_text()
    assert page.evaluate("typeof window.Plotly") == "undefined"  # fetched when a chart is first looked at
    open_fold(page, "Many texts at once")
    page.wait_for_selector("#batch-chart .scatterlayer .point")
    expect(page.locator("#batch-chart .scatterlayer .trace")).to_have_count(4)
    expect(page.locator("#rates-chart .scatterlayer .trace")).to_have_count(6)
    assert "64, K 7: 1.60× with 1 text, 0.90× with 4." in page.inner_text("#batch-lines")
    table = page.get_by_role("table", name="Many texts at once")
    assert table.locator("tbody tr").count() == 8


@pytest.mark.long
def test_a_slider_of_the_formulas_moves_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    open_theory(page)
    spent, names = processor(page), ["alpha", "k", "c", "v", "o", "batch", "context"]
    page.evaluate(SLIDE, names)
    assert 0 < spent() / (10 * len(names)) < 0.05
