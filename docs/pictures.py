"""`python docs/pictures.py`: film the page and take one picture of each tab, into docs/pictures.

It starts the page, opens it in a headless Chromium, and lets the landing run play on a clock that stands still between
two pictures. So a slow machine gets the same film as a fast one. Needs playwright (requirements-dev.txt), Chromium,
and a font with Chinese characters.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
PREVIEW = ROOT / "assets" / "preview.png"  # what others show of a link to the page
LINKED = {"width": 1200, "height": 630}
ALONE = ".sd-console, .sd-links, .sd-finacts, .sd-languages, .sd-quiet, .sd-tabs > .tab-wrapper { display: none !important }"  # noqa: E501
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
TABS = ("race", "step", "lossless", "methods", "theory", "guide")
SCREEN, FILM = {"width": 1280, "height": 800}, {"width": 1280, "height": 1000}  # pixels of the window
FRAME, LENGTH, LAST = 120, 28_000, 2_500  # ms: one frame of the film, all of it, how long the last frame stays
LONGEST = 2_500  # ms: a still moment of the page is no longer than this in the film
MOST, QUALITIES = 1_450_000, (62, 50, 40, 30, 20)  # bytes of one film; of lossy WebP, the best that fits is taken
PATIENCE = 120_000  # ms
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; caret-color: transparent }"
# What is filmed: sentence, cycle, timeline and words.
BOX = """() => {
  document.querySelector(".sd-player").scrollIntoView();
  const { x, y, width, height } = document.querySelector(".sd-stage").getBoundingClientRect();
  return { x, y, width, height };
}"""
AGAIN = """() => { const root = document.querySelector(".sd-player"); root.load(root.log()); }"""
ENDED = """() => {
  const slider = document.querySelector(".sd-player [data-part=scrub]");
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  scrollTo(0, 0);
}"""


def main() -> int:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with page_served() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        for theme in ("light", "dark"):
            save(FOLDER / f"race-{theme}.webp", *film(browser, f"{address}?__theme={theme}"))
        preview(browser, f"{address}?__theme=light", PREVIEW)
        for tab in TABS:
            picture(browser, f"{address}?tab={tab}&__theme=light", FOLDER / f"{tab}.webp")
        browser.close()
    for path in sorted(FOLDER.glob("*.webp")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")
    return 0


@contextmanager
def page_served() -> Iterator[str]:
    """The page in a process of its own, on a free port; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "specdec", "app", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield answered(server, f"http://127.0.0.1:{port}/")
    finally:
        server.terminate()
        server.wait()


def answered(server: subprocess.Popen[bytes], address: str) -> str:
    """The address, as soon as it answers; RuntimeError if the page ends before that."""
    while True:
        try:
            urlopen(address, timeout=10).close()
            return address
        except (URLError, OSError):
            try:
                server.wait(0.5)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError("the page did not start") from None


def opened(browser: Any, address: str, window: dict[str, int], film: bool = False) -> Any:
    page = browser.new_page(viewport=window, locale="en-US")
    page.set_default_timeout(PATIENCE)
    if film:
        page.clock.install()
    page.goto(address)
    page.wait_for_selector("#first", state="detached")
    page.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")
    page.evaluate("document.fonts.ready.then(() => true)")
    page.add_style_tag(content=STILL)
    return page


def film(browser: Any, address: str) -> tuple[list[Image.Image], list[int]]:
    """The landing run from its begin, as a visitor sees it: frames, and how many ms each is shown."""
    page = opened(browser, address, FILM, film=True)
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.evaluate(AGAIN)
    page.clock.run_for(FRAME)
    box = page.evaluate(BOX)
    frames: list[Image.Image] = []
    times: list[int] = []
    shown = b""
    for _ in tqdm(range(0, LENGTH, FRAME), desc="filming", unit="frame"):
        page.clock.run_for(FRAME)
        png = page.screenshot(clip=box)
        if png == shown:
            times[-1] = min(times[-1] + FRAME, LONGEST)
            continue
        shown = png
        frames.append(Image.open(io.BytesIO(png)).convert("RGB"))
        times.append(FRAME)
    times[-1] = max(times[-1], LAST)
    page.close()
    return frames, times


def save(path: Path, frames: list[Image.Image], times: list[int]) -> None:
    """RuntimeError if the film is too large at any quality."""
    first, *rest = frames
    for quality in QUALITIES:
        film = io.BytesIO()
        first.save(
            film, "webp", save_all=True, append_images=rest, duration=times, loop=0, quality=quality, minimize_size=True
        )  # fmt: skip
        if film.tell() <= MOST:
            path.write_bytes(film.getvalue())
            return
    raise RuntimeError(f"{path.name} has {film.tell()} bytes at the lowest quality: film less")


def preview(browser: Any, address: str, path: Path) -> None:
    """The landing run at its end, without what can only be pressed, in a palette, which keeps it small."""
    page = opened(browser, address, LINKED)
    page.add_style_tag(content=ALONE)
    page.evaluate(ENDED)
    page.wait_for_timeout(500)
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        shot.convert("RGB").quantize(128).save(path, optimize=True)
    page.close()


def picture(browser: Any, address: str, path: Path) -> None:
    """One tab above the fold, as it stands some seconds after Gradio is there; a replay at its first rejection."""
    page = opened(browser, address, SCREEN)
    page.wait_for_selector("#first", state="detached")
    if path.stem == "race":
        page.wait_for_selector(".sd-player[data-state=first-rejection]")
    page.wait_for_timeout(4000)  # charts draw themselves after they have come
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        shot.convert("RGB").save(path, quality=80, method=6)
    page.close()


if __name__ == "__main__":
    raise SystemExit(main())
