"""Many visitors at once, of every kind that a server meets: they run, stop, reload, leave, ask twice, switch languages.

The app has a process of its own and the embedded models; it is in class mode, and phones hold streams. No
time is judged. What was asked for is answered, refused with a sentence, or was given up by whoever asked: all else is
lost. An answer that holds another visitor's prompt is mixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx

from specdec.ui.text import strings

from .figures import at_least, Figure, none

PATIENCE = 1_800.0  # seconds; a busy machine takes its time
ACTS = ("run", "run", "stop", "left", "twice", "reload", "language", "theory", "theory", "audit", "phone")
MARK = re.compile(r"visitor[0-9]+x[0-9]+")
REFUSALS = ("Too many", strings("page")["notice"]["unheard"])
FULL = "Queue is full"  # Gradio's own words to programs; visitors of the page read ours


class Refused(Exception):
    """There is no place in the line."""


@contextlib.contextmanager
def app(*options: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The app in a process of its own: its address, and the process."""
    command = [sys.executable, "-u", "-m", "specdec", "app", "--host", "127.0.0.1", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}
    )
    assert process.stdout is not None
    try:
        told = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", told)):
            if not (line := process.stdout.readline()):
                raise RuntimeError(f"the app did not start: {told[-2000:]}")
            told += line
        yield found[0], process
    finally:
        process.kill()
        process.wait()


class Crowd:
    def __init__(self, url: str) -> None:
        self.url, self.counts, self.mixed, self.lost = url, Counter[str](), 0, list[str]()
        # A connection for each request: one kept open may be closed by the server just as the next one is sent.
        limits = httpx.Limits(max_connections=2_000, max_keepalive_connections=0)
        self.client = httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits)
        self.most = self.now = 0

    async def visit(self, number: int, acts: int) -> None:
        rng = random.Random(number)
        self.now += 1
        self.most = max(self.most, self.now)
        for act in range(acts):
            kind = rng.choice(ACTS)
            name = f"visitor{number}x{act}"
            self.counts["requests"] += 1
            self.counts[kind] += 1
            try:
                await getattr(self, kind)(name, rng)
            except Refused:
                self.counts["refused"] += 1
            except (httpx.HTTPError, ValueError, KeyError) as error:
                self.lost.append(f"{kind}: {type(error).__name__} {error}"[:160])
        self.now -= 1

    async def ask(self, name: str, **arguments: Any) -> str:
        self.counts["requests"] += 1
        told = await self.client.post(f"gradio_api/call/v2/{name}", json=arguments)
        if told.status_code == 503 and FULL in told.text:
            raise Refused
        return str(told.json()["event_id"])

    async def in_the_end(
        self, act: Callable[[str, random.Random], Awaitable[None]], mark: str, rng: random.Random
    ) -> None:
        """Asks again until there is a place in the line."""
        while True:
            try:
                return await act(mark, rng)
            except Refused:
                await asyncio.sleep(1)

    async def lines(self, name: str, event: str) -> AsyncIterator[tuple[str, Any]]:
        """Its answers as they come: the kind of each, and what it holds."""
        kind = ""
        async with self.client.stream("GET", f"gradio_api/call/{name}/{event}") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    yield kind, json.loads(line[6:])

    async def answered(self, name: str, event: str, mark: str) -> Any:
        last = ("", None)
        async for last in self.lines(name, event):
            self.look(last[1], mark)
        if last[0] != "complete":
            raise ValueError(f"ended with {last[0]!r}: {str(last[1])[:80]}")
        return last[1][0] if isinstance(last[1], list) and last[1] else last[1]

    def look(self, told: Any, mark: str) -> None:
        self.mixed += bool({*MARK.findall(json.dumps(told))} - {mark})

    def judge(self, told: Any, mark: str) -> None:
        """A whole answer, or a refusal in words."""
        if isinstance(told, dict) and told.get("error", "").startswith(REFUSALS):
            self.counts["refused"] += 1
        elif isinstance(told, dict) and "texts" in told and mark in told["prompt"] and told["same_text"]:
            self.counts["complete"] += 1
        else:
            raise ValueError(f"no answer: {str(told)[:120]}")

    async def run(self, mark: str, rng: random.Random) -> None:
        event = await self.ask("compare", prompt=f"Once {mark} said", max_tokens=rng.randint(1, 4))
        self.judge(await self.answered("compare", event, mark), mark)

    async def twice(self, mark: str, rng: random.Random) -> None:
        asked = [await self.ask("compare", prompt=f"Once {mark} said", max_tokens=2) for _ in range(2)]
        for told in await asyncio.gather(*(self.answered("compare", event, mark) for event in asked)):
            self.judge(told, mark)

    async def stop(self, mark: str, rng: random.Random) -> None:
        """Hangs up after a few answers."""
        event = await self.ask("run", prompt=f"Once {mark} said", max_tokens=48)
        left = rng.randint(1, 5)
        async for _, told in self.lines("run", event):
            self.look(told, mark)
            left -= 1
            if not left:
                break
        self.counts["given up"] += 1

    async def left(self, mark: str, rng: random.Random) -> None:
        """Asks, and never listens."""
        await self.ask("run", prompt=f"Once {mark} said", max_tokens=48)
        self.counts["given up"] += 1

    async def reload(self, mark: str, rng: random.Random) -> None:
        page = await self.client.get("")
        self.expect(page, b"specdec")

    async def language(self, mark: str, rng: random.Random) -> None:
        page = await self.client.get("?lang=zh", follow_redirects=True)
        self.expect(page, "推测解码".encode())

    def expect(self, page: httpx.Response, text: bytes) -> None:
        if page.status_code != 200 or text not in page.content:
            raise ValueError(f"status {page.status_code}")
        self.counts["complete"] += 1

    async def theory(self, mark: str, rng: random.Random) -> None:
        told = await self.answered("theory", await self.ask("theory", alpha=0.7, k=4), mark)
        if told["expected_tokens"] != 2.7731:
            raise ValueError(f"theory said {told}")
        self.counts["complete"] += 1

    async def audit(self, mark: str, rng: random.Random) -> None:
        told = await self.answered("audit", await self.ask("audit", trace=mark), mark)
        if "no run" not in told["error"]:
            raise ValueError(f"audit said {told}")
        self.counts["complete"] += 1

    async def phone(self, mark: str, rng: random.Random) -> None:
        """Holds a stream for a while; a class that is full says so."""
        name = f"{rng.getrandbits(64):016x}"
        async with self.client.stream("GET", f"class/events?phone={name}") as answer:
            if answer.status_code == 503:
                self.counts["refused"] += 1
                return
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    break
            await asyncio.sleep(rng.random() * 3)
        self.counts["complete"] += 1


async def crowd(url: str, visitors: int, acts: int) -> Crowd:
    found = Crowd(url)
    async with found.client:
        await found.run("visitor0x0", random.Random(0))  # the models load
        await asyncio.gather(*(found.visit(number, acts) for number in range(1, visitors + 1)))
        found.now = -1
        try:  # the machine is free again: those who left hold nothing up
            await found.in_the_end(found.run, "visitor999999x0", random.Random(0))
        except (httpx.HTTPError, ValueError, KeyError) as error:
            found.lost.append(f"afterwards: {error}")
            found.now = -2
    return found


def count(long: bool) -> list[Figure]:
    visitors, acts = (200, 8) if long else (24, 6)
    with app("--class", SPECDEC_PUBLIC="") as (url, process):
        found = asyncio.run(crowd(url, visitors, acts))
        died = process.poll() is not None
    counts = found.counts
    told = ", ".join(f"{name} {counts[name]:,}" for name in ("complete", "refused", "given up"))
    return [
        at_least("visitors at once", found.most, visitors),
        at_least("requests", counts["requests"], 2_000 if long else 150),
        none("lost", len(found.lost)),
        none("mixed", found.mixed),
        none("machine not freed, or dead", int(found.now == -2) + died),
        Figure("of the acts", told, "", True),
        *(Figure(one, "", "", False) for one in found.lost[:5]),
    ]
