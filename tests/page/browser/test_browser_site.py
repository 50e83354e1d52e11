"""The page as files, below a path of a plain file server: all tabs, recorded runs, links, no request elsewhere."""

import json
import re
from contextlib import ExitStack

import pytest

from specdec.families.export import browser_files
from specdec.traces import audit
from specdec.traces.file import Trace
from specdec.ui import site
from specdec.ui.tabs import labels
from specdec.ui.text import speaking
from tests.page.browser import chrome
from tests.page.browser.chrome import expect, press_tab
from tools.bench.browsers import serving

pytestmark = pytest.mark.long
TABS = labels()
AT_ONCE = 1_500_000  # bytes before the first press


@pytest.fixture(scope="module", autouse=True)
def toys():
    """A site has the app's own runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("host")
    site.write(root / "some/path", "1.0", browser_files)
    return root


@pytest.fixture(scope="module")
def address(folder):
    with serving(folder, isolated=False) as (root, _):
        yield f"{root}some/path/"


@pytest.fixture
def opened(browser, address):
    complaints = []
    with ExitStack() as stack:

        def opener(where=address, width=1280, height=800, **options):
            context = browser.new_context(viewport={"width": width, "height": height}, **options)
            page = stack.enter_context(context).new_page()
            ours = "file:" if where.startswith("file:") else where.split("some/path")[0], "data:", "blob:"
            chrome.watch(page, complaints, lambda url: url.startswith(ours), ("error", "warning"))
            page.goto(where)
            page.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")
            return page

        yield opener
    assert complaints == []


def unfold(page):
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")


def test_every_tab_works_from_files(opened):
    page = opened()
    assert page.locator("[role=tab]").all_inner_texts() == list(TABS.values())
    expect(page.locator(".sd-player[data-state=playing]")).to_be_visible()  # by itself
    for lane in (0, 1):
        expect(chrome.tokens(page, lane).nth(1)).to_be_visible()

    sizes = "performance.getEntriesByType('resource').map((one) => one.decodedBodySize)"
    assert 0 < sum(page.evaluate(sizes)) <= AT_ONCE

    page.locator("[data-kind=story]").click()
    expect(page.locator("#prompt textarea")).to_have_value(re.compile("lighthouse"))
    page.locator(".sd-lid").first.click()
    expect(page.locator("#settings code")).to_contain_text("python app.py")
    page.select_option("#drafter", "eagle3")
    expect(page.locator(".sd-lid").first).to_contain_text("EAGLE-3")
    assert "drafter=eagle3" in page.url

    press_tab(page, "step")
    expect(page.locator(".sd-step[data-state=ready]")).to_be_visible()

    press_tab(page, "lossless")
    expect(page.locator(".sd-verdict h2")).to_have_text("Lossless on this toy pair")
    page.locator(".sd-proof [data-part=pair] button").last.click()
    expect(page.locator(".sd-proof [data-part=place]")).to_contain_text("built-in models")
    expect(page.locator(".sd-proof [data-part=run]")).to_be_hidden()

    press_tab(page, "methods")
    expect(page.locator("#arena tbody td").first).to_be_visible()

    press_tab(page, "theory")
    expect(page.locator("[data-part=wall] svg")).to_be_visible()

    press_tab(page, "guide")
    expect(page.locator(".sd-gd-page:visible section").first).to_be_visible()
    page.get_by_role("searchbox").fill("distillation vocabulary")
    expect(page.get_by_role("button", name="See it: Methods").filter(visible=True)).to_be_visible()


def test_links_lead_to_a_recorded_run_a_tab_and_the_other_language(opened, address):
    page = opened(address + "?tab=theory")
    expect(page.locator("#theory-button")).to_have_attribute("aria-selected", "true")
    page.locator(".sd-languages [lang=zh-CN]").click()
    with speaking("zh"):
        expect(page.locator("#theory-button")).to_have_text(labels()["theory"])
    expect(page.locator("#theory-button")).to_have_attribute("aria-selected", "true")  # its script has begun
    assert "/some/path/zh/" in page.url and page.locator("html").get_attribute("lang") == "zh-CN"
    press_tab(page, "race")
    field = page.locator("#prompt textarea")
    landing = field.input_value()
    page.locator("[data-kind=facts]").click()
    expect(field).not_to_have_value(landing)
    prompt = field.input_value()
    page.reload()
    expect(field).to_have_value(prompt)
    page.locator(".sd-lid").last.click()
    page.locator("#traces [data-part=link]").click()
    link = page.locator("#traces [data-part=copy]")
    expect(link).not_to_have_value("")
    again = opened(link.input_value())
    expect(again.locator("#prompt textarea")).to_have_value(prompt)
    for wrong in ("?prompt=none+of+ours", "#run=broken"):
        expect(opened(address + wrong).locator("#link-notice .sd-wrong")).to_be_visible()


def log(page):
    return [json.loads(line) for line in page.evaluate(chrome.LOG).splitlines()]


def settle(page, prompt):
    page.wait_for_function(chrome.OVER, arg=prompt)
    expect(page.locator("#run")).to_have_text("Run live")


def test_a_prompt_of_ones_own_runs_here_without_a_network(opened):
    page = opened()
    field, button, line = page.locator("#prompt textarea"), page.locator("#run"), page.locator("#notice p")
    field.fill("Once upon a time there was")
    button.click()
    settle(page, "Once upon a time there was")
    chosen = log(page)[1]["k"]
    expect(line).to_contain_text("one token at a time" if chosen == 1 else f"K {chosen}")
    (times,) = page.evaluate("Object.values(JSON.parse(localStorage['specdec.times']).times)")
    assert times["draft"] < times["passes"]["1"] < times["passes"]["5"]
    page.context.set_offline(True)
    field.fill("The fox said to the moon")
    page.locator(".sd-lid").first.click()
    for name, value in (("temperature", "1"), ("max_tokens", "40"), ("k", "3"), ("seed", "7")):
        page.locator(f"#settings [name={name}]").fill(value)
    button.click()
    settle(page, "The fox said to the moon")
    expect(line).to_contain_text("the method, not knowledge")
    header, *events = log(page)
    assert events[0]["k"] == 3
    assert header["prompt"] == "The fox said to the moon" and header["models"]["kernels"] == "wasm"
    trace = Trace.loads("\n".join(json.dumps(one) for one in (header, *events)))
    assert audit.faultless(audit.audit(trace.header.lanes, trace.events))
    known = log(page)
    for name, value, refusal in (
        ("k", "99", "Drafted per cycle, K (0: auto): a number"),
        ("stop", "a\n" * 9, "At most 4 stop"),
    ):
        place = page.locator(f"#settings [name={name}]")
        before = place.input_value()
        place.fill(value)
        button.click()
        expect(line).to_contain_text(refusal)
        place.fill(before)
    field.fill(" ")
    button.click()
    expect(line).to_contain_text("Type a few words")
    field.fill("word " * 600)
    button.click()
    expect(line).to_contain_text("Shorten it")
    assert log(page) == known  # a refusal leaves what is there

    field.fill("A long story")
    most = page.locator("#settings [name=max_tokens]")
    most.fill(most.get_attribute("max"))
    button.click()
    expect(button).to_have_text("Stop")
    page.wait_for_function("document.querySelector('.sd-player').run().header.prompt === 'A long story'")
    # Pressed in one stroke, since it may end by itself, and however long a page waits that has no processor.
    page.evaluate("(run => run.textContent === 'Stop' && run.click())(document.querySelector('#run'))")
    expect(button).to_have_text("Run live")


def test_it_opens_from_a_disk(opened, folder):
    page = opened((folder / "some/path/index.html").as_uri())
    page.locator("[data-kind=code]").click()
    page.locator(".sd-badge").first.click()
    expect(page.locator("[data-part=meta]")).to_contain_text("Draft model")
    page.locator("#run").click()
    expect(page.locator("#notice p")).to_contain_text("python -m http.server")
    press_tab(page, "methods")
    expect(page.locator("#arena tbody td").first).to_be_visible()


def test_a_phone_needs_no_sideways_scrolling(opened):
    page = opened(width=375, height=812, reduced_motion="reduce")
    for name in TABS:
        press_tab(page, name)
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, name
