"""Words that nobody else may see: in prompts, runs, names, keys. Then the log, files and others' answers are searched.

Everything is sent right and wrong: with too few arguments, of wrong types, to what is not there, in bytes that cannot
be read.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import toyrun

from .figures import at_least, Figure, none


class Canaries:
    """Each is sent once. A word of letters alone, so that no encoding hides it."""

    def __init__(self) -> None:
        self.numbers, self.sent = itertools.count(), list[str]()

    def word(self) -> str:
        letters = "".join("abcdefghij"[int(digit)] for digit in f"{next(self.numbers):05}")
        self.sent.append(f"canary{letters}word")
        return self.sent[-1]

    def found(self, text: str) -> set[str]:
        return {word for word in self.sent if word in text}


def wrong_and_right(canaries: Canaries) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests, each with a word of its own."""
    for name in ("run", "run_zh", "compare", "summarise", "audit", "explain", "certify", "theory", "nothing"):
        for count in (0, 1, 2, 5, 40):
            yield "POST", f"gradio_api/call/{name}", {"json": {"data": [canaries.word() for _ in range(count)]}}
        yield (
            "POST",
            f"gradio_api/call/v2/{name}",
            {"json": {"prompt": canaries.word(), "trace": canaries.word(), "x": 1}},
        )
        yield "POST", f"gradio_api/call/{name}", {"json": {"data": canaries.word()}}
        yield "POST", f"gradio_api/call/{name}", {"content": canaries.word().encode() + b"\xff"}
        yield "POST", f"gradio_api/run/{name}", {"json": {"data": [canaries.word()]}}
    for index in range(0, 90, 3):
        word = canaries.word()
        yield (
            "POST",
            "gradio_api/queue/join",
            {"json": {"data": [word] * 30, "fn_index": index, "session_hash": canaries.word()}},
        )
        yield (
            "POST",
            "gradio_api/queue/join",
            {"json": {"data": [{"value": canaries.word()}], "fn_index": index, "session_hash": "a"}},
        )
    for place in ("", "zh", "class", "class/events", "gradio_api/file=x", "nowhere"):
        yield (
            "GET",
            place,
            {"params": {"prompt": canaries.word(), "drafter": canaries.word(), "phone": canaries.word()}},
        )
    for place in ("class/vote", "class/teach"):
        yield "POST", place, {"content": canaries.word().encode()}
        yield (
            "POST",
            place,
            {"json": {"phone": canaries.word(), "log": canaries.word()}, "headers": {"x-teach": canaries.word()}},
        )
    for params in ({"arguments": canaries.word()}, {"arguments": {canaries.word(): canaries.word()}}, canaries.word()):
        called = params if isinstance(params, str) else {"name": "theory", **params}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        headers = {"Accept": "application/json, text/event-stream"}
        yield "POST", "gradio_api/mcp/", {"json": sent, "headers": headers}
    yield "POST", "gradio_api/upload", {"files": {"files": (canaries.word(), canaries.word().encode())}}


def asked(url: str, canaries: Canaries) -> int:
    """Sends all of it; how many answers held somebody else's word."""
    others = 0
    with httpx.Client(base_url=url, timeout=600) as client:
        for method, path, sent in wrong_and_right(canaries):
            before = len(canaries.sent) - 40  # words of this request are the last ones
            try:
                with client.stream(method, path, **sent) as answer:
                    streamed = "event-stream" in answer.headers.get("content-type", "")
                    told = "" if streamed else answer.read().decode("utf-8", "replace")
            except httpx.TransportError:  # an upload is refused before it is read
                continue
            if answer.status_code == 200 and '"event_id"' in told:
                event = json.loads(told)["event_id"]
                name = path.rpartition("/")[2]
                if "/call/" in path:
                    told += client.get(f"gradio_api/call/{name}/{event}").text
            others += any(word in told for word in canaries.sent[: max(0, before)])
        trace = toyrun.trace().dumps().replace("old keeper", canaries.word())
        for question in ("summarise", "audit", "explain"):
            for text in (trace, trace[:-200], trace.replace("accepted", canaries.word(), 1)):
                event = client.post(f"gradio_api/call/v2/{question}", json={"trace": text}).json()["event_id"]
                client.get(f"gradio_api/call/{question}/{event}")
    return others


def keys(canaries: Canaries) -> str:
    """All that is said and kept of servers that misbehave, asked with a key."""
    from stub import Reply, Stub
    from test_bad import ANSWERS, METRICS, MODELS, PARAMS, QUICK, STREAMS, vllm

    from specdec.servers import lane
    from specdec.servers.base import ServerError
    from specdec.servers.connect import connect
    from specdec.traces.file import line

    assert METRICS and MODELS
    said = []
    slow = [name for name in STREAMS if "silen" in name or "signs" in name]
    replies = {name: Reply.stream(told) for name, (told, _) in STREAMS.items() if name not in slow}
    for name, reply in {**replies, **{name: told for name, (told, _) in ANSWERS.items()}}.items():
        with Stub(vllm(lambda _, reply=reply: reply)) as stub:
            try:
                server = connect(stub.address, canaries.word(), QUICK)
                *_, last = lane.race(server, None, [1, 2], PARAMS)
                said += [*map(line, last.events), repr(server.facts), repr(lane.about(server))]  # type: ignore[union-attr]
            except ServerError as error:
                said.append(f"{name}: {error}")
    return "\n".join(said)


def count(long: bool) -> list[Figure]:
    canaries = Canaries()
    with tempfile.TemporaryDirectory() as folder:
        places = {"TMPDIR": folder, "GRADIO_TEMP_DIR": f"{folder}/gradio", "HOME": folder}
        with mock.patch.dict(os.environ, places), mock.patch.object(tempfile, "tempdir", folder):
            from .bad_input import served

            logging.getLogger().setLevel(logging.INFO)
            for ours in ("httpx", "httpcore"):  # of the client, which is in this process, too
                logging.getLogger(ours).setLevel(logging.WARNING)
            with served() as (url, _, log):
                others = asked(url, canaries)
            told = keys(canaries)
        logged = canaries.found("\n".join(log))
        kept = set[str]()
        for path in Path(folder).rglob("*"):
            kept |= canaries.found(str(path) + (path.read_bytes().decode("latin-1") if path.is_file() else ""))
    return [
        at_least("words sent", len(canaries.sent), 600),
        none("found in the log", len(logged)),
        none("found in a file", len(kept)),
        none("found in others' answers", others),
        none("keys found in what is said or kept of a server", len(canaries.found(told))),
        *(Figure(f"logged: {where(log, word)}", "", "", False) for word in sorted(logged)[:5]),
    ]


def where(log: list[str], word: str) -> str:
    text = "\n".join(log)
    at = text.index(word)
    return repr(text[max(0, at - 150) : at + 40])
