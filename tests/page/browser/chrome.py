"""The page in a real Chromium, for tests: how it is opened, watched and asked."""

import json
import os
import shutil
import time
from contextlib import contextmanager, ExitStack, suppress

import pytest

from specdec.ui.session import session
from tests import toyrun
from tests.page import test_line

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WHOLE = "(one) => one.scrollHeight <= one.clientHeight + 1"
PATIENCE = 60_000  # milliseconds; a busy machine draws slowly
# What the page does takes its time, so a test waits for it. What one stroke of the page draws is there at once: after
# waiting for a part of it, the rest may simply be asked for.
expect = playwright.expect
expect.set_options(timeout=PATIENCE)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
# What reaches over the edge of the page, unless it lies in a box that scrolls or fades out on purpose.
CUT = """() => [...document.querySelectorAll("main *, footer *")].filter((node) => {
    const { left, right, width, height } = node.getBoundingClientRect();
    if (!width || !height || (left >= -1 && right <= innerWidth + 1) || node.closest("svg, .sd-hidden")) return false;
    for (let box = node.parentElement; box; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (/auto|scroll/.test(style.overflowX) || style.maskImage !== "none") return false;
    }
    return true;
}).map((node) => node.outerHTML.slice(0, 120))"""
# Pairs of texts that lie over each other, around the status of a run on a phone. The notice covers all of the pace.
OVERLAPS = """() => {
    const texts = [...document.querySelectorAll("#notice *, .sd-badge *, .sd-setup, .sd-scene *, .sd-lid")]
        .filter((node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim()))
        .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(".sd-flow"));
    const isOver = (one, other) => {
        const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    };
    return texts.flatMap((one, i) => texts.slice(i + 1).filter((other) => !one.contains(other) && isOver(one, other))
        .map((other) => [one.textContent, other.textContent]));
}"""
# Both lanes of that prompt have finished.
OVER = """(prompt) => { const { header, names, lanes } = document.querySelector('.sd-player').run();
  return header.prompt === prompt && names.every((name) => lanes[name].finished); }"""
LOAD = "(log) => document.querySelector('.sd-player').load(log)"
LOG = "document.querySelector('.sd-player').log()"


class Chromium:
    """A browser, and one page of it that tests open in turn: a browser that has read our scripts opens them in a third
    of the time. A second page beside it, or one that needs what a page cannot change, has a context of its own."""

    def __init__(self, browser):
        self.browser = browser
        self.new_context = browser.new_context
        self.page = browser.new_page()
        self.taken = False

    @contextmanager
    def opened(self, address, width, height, reduced_motion="reduce", **options):
        """A page as a new visitor has it: nothing stored, the pointer nowhere."""
        size = {"width": width, "height": height}
        if self.taken or options:
            context = self.browser.new_context(viewport=size, reduced_motion=reduced_motion, **options)
            yield context.new_page()
            context.close()
            return
        self.taken, page = True, self.page
        page.set_viewport_size(size)
        page.emulate_media(reduced_motion=reduced_motion)
        page.mouse.move(0, 0)
        page.goto(address + "manifest.json")
        page.evaluate("sessionStorage.clear(); localStorage.clear()")
        page.context.clear_cookies()
        yield page
        page.goto("about:blank")
        self.taken = False


@contextmanager
def pages(chromium, address):
    """Opens the page; afterwards nothing may have gone wrong or have been fetched from elsewhere."""
    complaints = []
    with ExitStack() as stack:

        def opener(width=1280, height=800, query="", **options):
            page = stack.enter_context(chromium.opened(address, width, height, **options))
            for listener in watch(page, complaints, lambda url: url.startswith((address, "data:", "blob:"))).items():
                stack.callback(page.remove_listener, *listener)
            page.goto(address + query)
            page.wait_for_selector("#first", state="detached")  # Gradio has taken over
            page.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")  # maybe on a tab not shown
            return page

        yield opener
    assert complaints == [], complaints


def watch(page, complaints, is_ours, levels=("error",)):
    """Notes whatever goes wrong on a page, or is fetched from elsewhere; returns what listens."""
    page.set_default_timeout(PATIENCE)
    listeners = {
        "pageerror": lambda error: complaints.append(f"page error: {error}"),
        "console": lambda said: complaints.append(said.text) if said.type in levels else None,
        "dialog": lambda dialog: (complaints.append("a token ran as code"), dialog.dismiss()),
        "request": lambda sent: is_ours(sent.url) or complaints.append(sent.url),
    }
    for listener in listeners.items():
        page.on(*listener)
    return listeners


def wait_for(page, name):
    page.wait_for_selector(f".sd-player[data-state={name}]")


def until(page, name):
    """Seconds pass for the page, whose clock is installed, and not for us."""
    for _ in range(600):
        if (state := page.get_attribute(".sd-player", "data-state")) == name:
            return
        page.clock.run_for(100)
    raise AssertionError(f"after a minute of the page's own time it is {state}, not {name}")


def part(page, name):
    return page.locator(f".sd-player [data-part={name}]")


def says(page):
    return part(page, "say")


def tokens(page, lane):
    return page.locator(f"[data-part=lane{lane}] .sd-tok:not(.sd-future)")


def until_free():
    test_line.until(lambda: not session.turns.busy())


def stop(page):
    page.click("#stop")
    page.wait_for_selector("#run:enabled")


def step(page, times=1):
    for _ in range(times):
        page.press("[data-part=stage]", "ArrowRight")


class SlowEngine:
    """A toy run that begins briskly and then takes its time: one that somebody will want to stop, and that leaves the
    page time to notice, however busy the machine is."""

    closed = 0

    def race(self, *_, **__):
        try:
            for count, event in enumerate(toyrun.events(cycles=1000, tokens=2500)):
                time.sleep(0.05 if count < 40 else 0.5)
                yield event
        finally:
            self.closed += 1


def slowed(log):
    """The run with speculative times three times as long: it lost."""

    def later(one):
        times = {"start", "end", "at", "prefill"} & one.keys()
        return {**one, **{name: 3 * one[name] for name in times}}

    lines = map(json.loads, log.splitlines())
    return "".join(json.dumps(later(one) if one.get("lane") == "speculative" else one) + "\n" for one in lines)


def cut_off(page):
    """What is, once charts have followed the page's width; and whether the page is wider than its window."""
    wide = "document.documentElement.scrollWidth > innerWidth"
    with suppress(playwright.TimeoutError):
        page.wait_for_function(f"() => !({CUT})().length && !({wide})", timeout=20_000)
    return page.evaluate(CUT) + ["the page"] * page.evaluate(wide)


def axe_violations(page, *rules):
    """A paragraph for each of the rules, by default all, that the page breaks: where, and what axe measured there."""
    lines = []
    options = {"resultTypes": ["violations"]} | ({"runOnly": {"type": "rule", "values": rules}} if rules else {})
    for one in axe.Axe().run(page, options=options).response["violations"]:
        lines.append(f"{one['id']}: {one['help']}")
        for node in one["nodes"]:
            why = "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])
            lines += [f"  {' '.join(map(str, node['target']))}", f"    {why}", f"    {node['html'][:200]}"]
    return "\n".join(lines)


def no_engine(*_):
    raise AssertionError("a model was asked for")


def open_fold(page, heading):
    lid = page.get_by_role("heading", name=heading, exact=True, level=2)
    fold = page.locator("details.sd-section:visible", has=lid)
    if fold.get_attribute("open") is None:
        fold.locator("> summary").click()
    return fold


def press_tab(page, name):
    page.locator(f"#{name}-button").click()
    expect(page.locator(f"#{name}")).to_be_visible()


def unfold(page, what):
    lid = page.locator(f".sd-lid[aria-controls={what}]")
    if lid.get_attribute("aria-expanded") == "false":
        lid.click()


def settings(page, advanced=False):
    unfold(page, "settings")
    if advanced:
        page.get_by_role("button", name="Advanced").click()


def play_recorded(page, name):
    page.locator(".sd-pills .sd-pill", has_text=name).click()
    expect(part(page, "sub0")).to_contain_text("tree")
    page.focus("[data-part=stage]")
    page.keyboard.press("Home")
