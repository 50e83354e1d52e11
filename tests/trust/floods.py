"""One machine floods a class: made-up phones, streams under one name, votes, and places in the line for the machine.

The app has a process of its own, in class mode, with the embedded models. Addresses of the loopback network stand for
machines: a flooder, a phone elsewhere, the teacher. No time is judged; what is counted is who got in, and who came
before whom.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import httpx

from specdec.exposure import CLASS, EXPOSURE
from specdec.ui.classroom import COOKIE, GRACE, STREAMS

from .figures import at_least, at_most, Figure, none
from .load import app, PATIENCE

PHONES, RUNS = 200, 40
FLOODER, ELSEWHERE, TEACHER = "127.0.0.2", "127.0.0.3", "127.0.0.4"


def machine(url: str, address: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=2_000, max_keepalive_connections=0)
    transport = httpx.AsyncHTTPTransport(local_address=address, limits=limits)
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE, transport=transport)


class Phones:
    """Streams that stay open until they are left."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client, self.open = client, contextlib.AsyncExitStack()
        self.lines = list[AsyncIterator[str]]()  # one that nobody holds is closed

    async def join(self, name: str) -> bool:
        """Whether the class lets it in, and tells it something."""
        answer = await self.open.enter_async_context(self.client.stream("GET", f"class/events?phone={name}"))
        if answer.status_code != 200:
            return False
        self.lines.append(answer.aiter_lines())
        async for line in self.lines[-1]:
            if line.startswith("data: "):
                return True
        return False

    async def flood(self, names: list[str]) -> int:
        return sum(await asyncio.gather(*map(self.join, names)))

    async def vote(self, question: str, names: list[str]) -> int:
        sent = [self.client.post("class/vote", json={"phone": x, "question": question, "choice": 1}) for x in names]
        return sum(answer.status_code == 204 for answer in await asyncio.gather(*sent))


class Class:
    def __init__(self, url: str, secret: str) -> None:
        self.secret = secret
        self.flooder, self.elsewhere, self.teacher = (machine(url, one) for one in (FLOODER, ELSEWHERE, TEACHER))

    async def teach(self, **sent: Any) -> httpx.Response:
        return await self.teacher.post("class/teach", json=sent, headers={"x-teach": self.secret})

    async def told(self) -> dict[str, Any]:
        """What the teacher's page is told now."""
        async with self.teacher.stream("GET", f"class/events?teach={self.secret}") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    return dict(json.loads(line[6:]))
        raise ValueError("the teacher is told nothing")

    async def phones(self) -> list[Figure]:
        crowd, other = Phones(self.flooder), Phones(self.elsewhere)
        names = [f"{number:032x}" for number in range(PHONES)]
        joined = await crowd.flood(names)
        another = await other.join("f" * 32)
        told = await self.told()
        await self.teach(ask={"kind": "keep", "piece": " the", "choices": 2})
        question = (await self.told())["question"]["id"]
        votes = await crowd.vote(question, names)
        await crowd.open.aclose()
        await asyncio.sleep(2 * GRACE)  # until those who left are forgotten
        await crowd.flood(others := [f"{number:032x}" for number in range(PHONES, 2 * PHONES)])
        votes += await crowd.vote(question, others)
        again = await other.join("f" * 32)  # on a slow machine its first stream may be over
        voted = another and again and bool(await other.vote(question, ["f" * 32]))
        counted = sum((await self.told())["counts"])
        await crowd.open.aclose()
        await asyncio.sleep(2 * GRACE)
        streams = await crowd.flood(["a" * 32] * PHONES)
        await crowd.open.aclose()
        await self.teach(admit=True)
        raised = await other.flood(names[: PHONES // 2])
        await other.open.aclose()
        return [
            at_least("made-up phones of one address that ask to join", PHONES, 200),
            at_most("of them let in", joined, CLASS.phones_of_address),
            none("phones elsewhere kept out by it", 1 - another),
            at_least("turned away, as the teacher's page is told", told["turned_away"], PHONES - joined),
            at_most("votes of that address, by names that come and go", votes, CLASS.phones_of_address),
            none("votes elsewhere that do not count", 1 - voted + (counted - votes - voted)),
            at_most("streams that one name holds", streams, STREAMS),
            at_least("phones of one address, once the teacher lets all in", raised, PHONES // 2),
        ]

    async def ask(self, client: httpx.AsyncClient, name: str, **sent: Any) -> str:
        return str((await client.post(f"gradio_api/call/v2/{name}", json=sent)).json()["event_id"])

    async def answers(self, client: httpx.AsyncClient, name: str, event: str) -> AsyncIterator[Any]:
        async with client.stream("GET", f"gradio_api/call/{name}/{event}") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    async def places(self) -> list[Figure]:
        """The flooder's certificates fill the line; then one stranger asks for a run, and the teacher after it."""
        ended = list[str]()

        in_line = asyncio.Event()  # the stranger

        async def wait(client: httpx.AsyncClient, who: str, name: str, **sent: Any) -> dict[str, Any]:
            said: dict[str, Any] = {}
            async for answer in self.answers(client, name, await self.ask(client, name, **sent)):
                said = answer[0] if answer else {}
                if who == "stranger":
                    in_line.set()
            ended.append("refused" if "error" in said else who)
            return said

        run = {"prompt": "Once", "max_tokens": 4}
        await wait(self.teacher, "at first", "compare", **run)  # the models are loaded
        ended.clear()
        asking = [wait(self.flooder, "flooder", "certify", draws=20_000, seed=seed) for seed in range(RUNS)]
        flood = [asyncio.create_task(one) for one in asking]
        while "refused" not in ended:  # until the line is full
            await asyncio.sleep(0.2)
        before = ended.count("flooder")
        stranger = asyncio.create_task(wait(self.elsewhere, "stranger", "compare", **run))
        await in_line.wait()
        teacher = asyncio.create_task(wait(self.teacher, "teacher", "compare", **run))
        said = await asyncio.gather(stranger, teacher)
        first = [one for one in ended[: max(map(ended.index, ("stranger", "teacher")))] if one == "flooder"]
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        return [
            at_least("runs asked for by one address", RUNS, 34),
            none("runs of others refused for it", 2 - sum(bool(one.get("same_text")) for one in said)),
            at_most("runs of that address before both others'", len(first) - before, 3),
            none("teacher's run behind the stranger's", int(ended.index("teacher") > ended.index("stranger"))),
        ]


async def flooded(url: str, secret: str) -> list[Figure]:
    room = Class(url, secret)
    async with room.flooder, room.elsewhere, room.teacher:
        answer = await room.teach()
        forged = httpx.Cookies({COOKIE: "x" * len(secret)})
        proof = [none("a class whose teacher's page has no proof for its runs", int(COOKIE not in answer.cookies))]
        room.flooder.cookies = forged
        return [*proof, *await room.phones(), *await room.places()]


def secret_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"\?teach=([\w-]+)", line):
            return found[1]
    raise RuntimeError("the app told no secret")


def count(long: bool) -> list[Figure]:
    with app("--class", SPECDEC_PUBLIC="", **{EXPOSURE: "class"}) as (url, process):
        return asyncio.run(flooded(url, secret_of(process)))
