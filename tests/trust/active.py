"""Text that would run as code if anything took it for markup, in every place that shows text, in a real Chromium.

Each payload calls `hit` with its own name. A payload counts for a sink only where its name is found among what the
sink shows; in an unguarded sink (`innerHTML`) many of the same payloads do run, or this test could not fail.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote, urlencode

import toyrun

from specdec import cli
from specdec.events import Committed, Failed
from specdec.traces.file import Trace
from specdec.ui import classroom, session
from specdec.ui.build import build
from specdec.ui.standalone import standalone
from specdec.ui.theme import launch_settings

from .figures import at_least, Figure, none, skipped

HIT = "hit('%s')"
MARKUP = (
    "<script>HIT</script>", "<img src=x onerror=HIT>", "<svg onload=HIT>", "<svg/onload=HIT>", "<body onload=HIT>",
    '"><img src=x onerror=HIT>', "'><img src=x onerror=HIT>", "</script><script>HIT</script>",
    "--><script>HIT</script>",
    "</textarea><img src=x onerror=HIT>", "</title><img src=x onerror=HIT>", "</style><img src=x onerror=HIT>",
    "<iframe srcdoc='<script>parent.HIT</script>'></iframe>", "<iframe src='javascript:parent.HIT'></iframe>",
    "<details open ontoggle=HIT>", "<video><source onerror=HIT></video>", "<audio src=x onerror=HIT>",
    "<input autofocus onfocus=HIT>", "<select autofocus onfocus=HIT>", "<textarea autofocus onfocus=HIT>",
    "<style>@import 'http://evil.invalid/x.css';</style>", "<link rel=stylesheet href=http://evil.invalid/x.css>",
    "<img src=http://evil.invalid/x.png>", "<object data=http://evil.invalid/x></object>",
    "<embed src=http://evil.invalid/x>",
    "<base href=http://evil.invalid/>", "<meta http-equiv=refresh content='0;url=http://evil.invalid/'>",
    "<a href=javascript:HIT autofocus onfocus=HIT>x</a>", "<math><mtext></mtext><mglyph><svg onload=HIT></math>",
    "<svg><script>HIT</script></svg>", "<svg><animate onbegin=HIT attributeName=x dur=1s></svg>",
    "<svg><set onbegin=HIT attributeName=x></svg>", "<noscript><p title='</noscript><img src=x onerror=HIT>'>",
    "<template><img src=x onerror=HIT></template>", "<img src=x onerror=&#104;it&#40;'P'&#41;>", "<x onclick=HIT>x</x>",
    "<img src='x' onerror='HIT' ", "<<img src=x onerror=HIT>", "<img/src=x/onerror=HIT>", "<IMG SRC=x OnErRoR=HIT>",
    "<div style='background:url(http://evil.invalid/x)'>", "<p style='x:expression(HIT)'>", "<marquee onstart=HIT>",
    "${HIT}", "`${HIT}`", "{{HIT}}", "{% HIT %}", "<%= HIT %>", "#{HIT}", "@@data@@HIT", "${props.value}HIT",
    "{value}HIT",
    "');HIT;//", "\");HIT;//", "`);HIT;//", "\\');HIT;//", "\n;HIT//", "\u2028HIT//", "*/HIT/*", "]]>HIT",
    "\\u003cscript>HIT</script>",
    "javascript:HIT", "data:text/html,<script>parent.HIT</script>", "=HYPERLINK(\"http://evil.invalid\",\"HIT\")",
    "+HIT", "-HIT", "@HIT",
    "$x = HIT$", "\\(HIT\\)", "[x](javascript:HIT)", "![x](http://evil.invalid/x.png)HIT", "<!--HIT",
    "\u202e<script>HIT</script>",
    "\x1b]0;HIT\x07", "\x1b[31mHIT", "%3Cscript%3EHIT%3C/script%3E", "&lt;img src=x onerror=HIT&gt;",
    "\ufeff<script>HIT</script>",
    "<scr", "ipt>HIT</scr", "ipt>HIT", "<img src=x one", "rror=HIT>", "<script", ">HIT</script>",
)  # fmt: skip
PAYLOADS = [
    text.replace("HIT", HIT % f"p{n:03}q") if "HIT" in text else f"{text} p{n:03}q" for n, text in enumerate(MARKUP)
]
NAMES = [f"p{n:03}q" for n in range(len(MARKUP))]
SEEN = """() => {
  const seen = [], walk = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walk.currentNode; node; node = walk.nextNode()) {
    const code = /^(SCRIPT|STYLE|NOSCRIPT)$/.test((node.nodeType === 3 ? node.parentNode : node).nodeName);
    if (node.nodeType === 3 && !code) seen.push(node.data);
    if (node.nodeType !== 1 || code) continue;
    for (const one of node.attributes) seen.push(one.value);
    if ("value" in node) seen.push(String(node.value));
  }
  return seen.join("\\n");
}"""


def run_of(payloads: Sequence[str], source: str = "recorded") -> Trace:
    """A run whose every text is a payload: pieces, names, reasons, facts."""
    every = " ".join(payloads)
    with mock.patch.object(toyrun, "NASTY", tuple(payloads)):
        told = toyrun.events(cycles=len(payloads), tokens=len(payloads) + 2)
    changed = []
    for event in told:
        changed.append(replace(event, pieces=tuple(event.pieces)) if hasattr(event, "pieces") else event)
        if len(changed) == 8:
            changed.append(
                Failed("speculative", 3, "drafter", every, False, getattr(event, "at", getattr(event, "end", 0.0)))
            )
    started = replace(changed[0], drafter=payloads[0], rule=payloads[1])  # type: ignore[call-arg]
    header = replace(toyrun.header(source), run=payloads[2], prompt=every, kind=payloads[3], created=payloads[4])
    facts = {
        "family": payloads[5],
        "dtype": payloads[6],
        "device": payloads[7],
        payloads[8]: {"parameters": payloads[9]},
    }
    header = replace(header, models=facts, machine={"cpu": payloads[10], payloads[11]: payloads[12]})
    return Trace(header, (started, *changed[1:]))


def by_server(payloads: Sequence[str]) -> Trace:
    """A run that a server told."""
    told = toyrun.server_trace(beside=True)
    names = itertools.cycle(payloads)
    events = []
    for event in told.events:
        if hasattr(event, "pieces"):
            event = replace(event, pieces=tuple(next(names) for _ in event.pieces))
        if hasattr(event, "server"):
            event = replace(event, server=payloads[1])
        events.append(event)
    facts = {
        "kind": payloads[0],
        "version": payloads[1],
        "model": payloads[2],
        "context": 512,
        "speculates": True,
        "k": 2,
    }
    return Trace(
        replace(told.header, prompt=" ".join(payloads), models={"server": facts, "plain_server": facts}), tuple(events)
    )


class Browser:
    """Pages that note what ran: calls of `hit`, dialogs, and requests to anywhere but here."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        self.address, self.executed, self.shown = address, set[str](), dict[str, set[str]]()
        self.hits: list[str] = []  # here, where no navigation loses them
        self.context.expose_binding("hit", lambda _, name: self.hits.append(str(name)))
        self.context.on("dialog", lambda dialog: (self.executed.add(f"dialog {dialog.message}"), dialog.dismiss()))
        self.context.route("**/*", self.ours)
        self.context.set_default_timeout(60_000)

    def ours(self, route: Any) -> None:
        if route.request.url.startswith((self.address, "data:", "blob:", "file:", "about:")):
            route.continue_()
        else:
            self.executed.add(f"request {route.request.url}")
            route.abort()

    @contextlib.contextmanager
    def page(self) -> Iterator[Any]:
        page = self.context.new_page()
        try:
            yield page
        finally:
            page.close()

    def look(self, page: Any, sink: str) -> None:
        """What this sink shows now, and what ran meanwhile."""
        told = page.evaluate(SEEN)
        self.shown.setdefault(sink, set()).update(name for name in NAMES if name in told)
        self.note(sink)

    def note(self, sink: str) -> None:
        self.executed |= {f"{sink}: {name}" for name in self.hits}
        self.hits.clear()


@contextlib.contextmanager
def served(first: Trace) -> Iterator[tuple[str, str]]:
    """The app with that run as its first one, and a class."""

    def race(family: Any, prompt: str, *_: Any, **__: Any) -> Iterator[Any]:
        yield from first.events[:60]
        raise ValueError(prompt)

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(session, "TRACES", Path(folder)))
        stack.enter_context(mock.patch.object(session, "_engine", lambda *_: (toyrun.Family(), race)))
        first.save(Path(folder) / "story.jsonl")
        room = classroom.Room("127.0.0.1")
        demo = build(teaching=True)
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings(room))
        try:
            yield url, room.secret
        finally:
            demo.close()


def ready(page: Any) -> None:
    page.wait_for_selector("#first", state="detached")
    page.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")


def first_screen(browser: Browser) -> None:
    """The run in the page's own HTML, before any script of Gradio's."""
    with browser.page() as page:
        page.goto(browser.address)
        browser.look(page, "first screen")
        ready(page)
        stage = page.locator("[data-part=stage]").first
        stage.press("End")
        page.wait_for_selector(".sd-player[data-state=done]")
        browser.look(page, "player")
        for _ in range(12):
            stage.press("ArrowLeft")
            browser.look(page, "player")
        page.get_by_role("tab", name="Step through").click()
        page.wait_for_selector(".sd-step[data-state=ready]")
        for _ in PAYLOADS:
            page.click(".sd-step [data-part=following]") if page.is_enabled(".sd-step [data-part=following]") else None
            browser.look(page, "step by step")
        for name in ("Lossless?", "Methods", "Theory", "Guide"):
            page.get_by_role("tab", name=name).click()
            page.wait_for_timeout(200)
        browser.look(page, "step by step")


def opened(browser: Browser, folder: Path) -> None:
    """Files opened, compared, audited, embedded; and files that are no runs."""
    with browser.page() as page:
        page.goto(browser.address)
        ready(page)
        page.click(".sd-lid[aria-controls=deeds]")
        told = run_of(PAYLOADS[::-1])
        replace(told, events=tuple(map(otherwise, told.events))).save(folder / "other.jsonl")
        for number, trace in enumerate((told, by_server(PAYLOADS))):
            path = folder / f"{number}.jsonl"
            trace.save(path)
            choose(page, "Open a trace", path)
            page.wait_for_function(
                "document.querySelector('.sd-traces [data-part=said]').textContent.includes('.jsonl')"
            )
            page.locator("[data-part=stage]").first.press("End")
            browser.look(page, "opened")
            choose(page, "Compare with", folder / "other.jsonl")
            page.wait_for_selector(".sd-traces [data-part=parting]:not([hidden])")
            browser.look(page, "compared")
        page.locator(".sd-traces button", has_text="Embed").click()
        page.wait_for_function("document.querySelector('.sd-traces [data-part=copy]').value !== ''")
        snippet = page.locator(".sd-traces [data-part=copy]").input_value()
        page.locator(".sd-traces button", has_text="Copy link").click()
        page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", snippet)
        browser.look(page, "link and frame")
        for number, text in enumerate(PAYLOADS):
            path = folder / "bad.jsonl"
            line = {**json.loads(toyrun.header().line()), "schema": text} if number % 2 else {"event": text}
            path.write_text(json.dumps(line) if number % 2 else toyrun.header().line() + json.dumps(line), "utf-8")
            choose(page, "Open a trace", path)
            page.wait_for_function(
                "document.querySelector('.sd-traces [data-part=said]').classList.contains('sd-wrong')"
            )
            browser.look(page, "refused")
            page.evaluate("document.querySelector('.sd-traces [data-part=said]').classList.remove('sd-wrong')")


def otherwise(event: Any) -> Any:
    """With other tokens, where tokens join the text."""
    if not isinstance(event, Committed):
        return event
    count = len(event.tokens)
    return replace(event, pieces=tuple(PAYLOADS[-count:]), tokens=tuple(range(90, 90 + count)))


def choose(page: Any, button: str, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.locator(".sd-traces button", has_text=button).click()
    chooser.value.set_files(path)


def live(browser: Browser) -> None:
    """A run of one's own whose engine answers with the prompt."""
    with browser.page() as page:
        page.goto(browser.address)
        ready(page)
        for part in (PAYLOADS[:40], PAYLOADS[40:]):
            page.locator("#prompt textarea").fill(" ".join(part).replace("\x1b", "").replace("\x07", ""))
            page.click("#run")
            page.wait_for_selector("#run:not([disabled])")
            page.wait_for_function("document.querySelector('#notice').textContent.trim() !== ''")
            browser.look(page, "live run and its notice")


def asked(browser: Browser) -> None:
    """Links, and addresses that are not there."""
    with browser.page() as page:
        for number, text in enumerate(PAYLOADS):
            query = {
                ("drafter", "family", "rule", "tab", "prompt", "stop", "grammar", "lang", "server")[number % 9]: text,
                "k": text,
            }
            page.goto(f"{browser.address}?{urlencode(query, errors='replace')}")
            ready(page)
            page.wait_for_selector("#link-notice", state="attached")
            browser.look(page, "links")
    with browser.page() as page:
        for text in PAYLOADS:
            for place in (
                "",
                "class/",
                "class/events?phone=",
                "gradio_api/file=",
                "gradio_api/call/",
                "zh?lang=",
                "gradio_api/queue/data?session_hash=",
            ):
                if place.endswith("session_hash="):
                    continue  # a stream, which waits for events
                with contextlib.suppress(Exception):  # a download is no page
                    page.goto(browser.address + place + quote(text, safe=""), wait_until="commit")
                browser.note("addresses")
            browser.shown.setdefault("addresses", set()).add(NAMES[PAYLOADS.index(text)])


def alone(browser: Browser, folder: Path) -> None:
    """The page of one file, and what a notebook draws."""
    for sink, made in (("standalone page", standalone), ("notebook", Trace._repr_html_)):
        for number, trace in enumerate((run_of(PAYLOADS), run_of(PAYLOADS[::-1]), by_server(PAYLOADS))):
            path = folder / f"{sink}{number}.html"
            path.write_text(made(trace), encoding="utf-8")
            with browser.page() as page:
                page.goto(path.as_uri())
                if sink == "standalone page":
                    page.wait_for_selector(".sd-player:not([data-state=empty])")
                    page.press("[data-part=stage]", "End")
                browser.look(page, sink)


def phones(browser: Browser, secret: str) -> None:
    """A teacher who shows the run and asks about each payload, and a phone."""
    with browser.page() as teacher, browser.page() as phone:
        teacher.goto(f"{browser.address}?teach={secret}")
        ready(teacher)
        phone.goto(browser.address + "class")
        phone.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")
        for text in PAYLOADS:
            question = {"ask": {"kind": "keep", "piece": text[:200], "choices": 2}}
            told = teacher.evaluate(
                "([question, secret]) => fetch('class/teach', {method: 'POST', headers: {'x-teach': secret}, "
                "body: JSON.stringify(question)}).then(answer => answer.status)",
                [question, secret],
            )
            assert told == 204, told
            phone.wait_for_timeout(120)
            browser.look(phone, "phone")
        browser.look(teacher, "teacher")


def terminal(browser: Browser, folder: Path) -> None:
    """What the command prints of a file: no control character reaches the terminal."""
    for number, trace in enumerate((run_of(PAYLOADS), by_server(PAYLOADS))):
        path = folder / f"terminal{number}.jsonl"
        trace.save(path)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            cli.main(["trace", str(path), str(path)])
        if set(printed.getvalue()) & {*map(chr, range(32)), "\x7f", "\u202e"} - {"\n", "\t"}:
            browser.executed.add("terminal: a control character")


def unguarded(browser: Browser) -> int:
    """How many run where nothing guards."""
    with browser.page() as page:
        page.goto(browser.address + "manifest.json")
        for text in PAYLOADS:
            with contextlib.suppress(Exception):  # one that leads elsewhere may break off the next
                page.set_content(f"<p>{text}</p>", timeout=10_000)
                page.wait_for_timeout(40)
    return len(set(browser.hits) & set(NAMES))


def count(long: bool) -> list[Figure]:
    try:
        import chrome
    except BaseException as error:  # pytest's way to skip is no Exception
        return [skipped("payload × sink", "≥ 1,000", str(error)[:80])]
    if chrome.CHROMIUM is None:
        return [skipped("payload × sink", "≥ 1,000", "no chromium on this machine")]
    steps: list[Callable[[Browser], None]] = []
    with (
        served(run_of(PAYLOADS)) as (url, secret),
        chrome.playwright.sync_playwright() as driver,
        tempfile.TemporaryDirectory() as made,
    ):
        folder = Path(made)
        chromium = driver.chromium.launch(executable_path=chrome.CHROMIUM, args=chrome.FLAGS)
        browser = Browser(chromium, url)
        steps = [
            first_screen,
            live,
            lambda b: alone(b, folder),
            lambda b: opened(b, folder),
            lambda b: phones(b, secret),
        ]
        steps += [lambda b: terminal(b, folder)]
        steps += [asked] if long else []
        for step in steps:
            step(browser)
        guarded = sorted(browser.executed)
        ran = unguarded(Browser(chromium, url))
        chromium.close()
    shown = {sink: len(names) for sink, names in browser.shown.items()}
    return [
        at_least("payload × sink", sum(shown.values()), 1_000 if long else 500),
        none("executed", len(guarded)),
        at_least("payloads that run where nothing guards", ran, 20),
        Figure("by sink", ", ".join(f"{sink} {n}" for sink, n in shown.items()), "", True),
        *(Figure(one, "", "", False) for one in guarded[:5]),
    ]
