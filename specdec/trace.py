"""A run as a file: one JSON header, then one JSON event a line (NDJSON). Live stream, download and recording are one.

The header says what ran where. A trace written by an older version still opens; a newer one is refused by name.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import machine
from .events import Event, from_dict, SCHEMA, to_dict

MAX_BYTES, MAX_LINES = 16_000_000, 50_000


class TraceError(ValueError):
    """The text is no readable trace; the message says why in one sentence."""


@dataclass(frozen=True)
class Header:
    """`source` is "live" or "recorded"; `lanes` are the names in the order of the page, the plain one last."""

    run: str
    source: str
    prompt: str
    lanes: tuple[str, ...]
    schema: int = SCHEMA
    kind: str = ""  # story, code, facts, …
    models: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    created: str = ""

    def line(self) -> str:
        return dump({"event": "header", **self.__dict__, "lanes": list(self.lanes)})


@dataclass(frozen=True)
class Trace:
    header: Header
    events: tuple[Event, ...]

    def dumps(self) -> str:
        return self.header.line() + "".join(map(line, self.events))

    def save(self, path: Path) -> None:
        partial = path.with_suffix(path.suffix + ".partial")
        partial.write_text(self.dumps(), encoding="utf-8")
        partial.replace(path)

    @classmethod
    def loads(cls, text: str) -> Trace:
        if len(text) > MAX_BYTES:
            raise TraceError(f"the trace is larger than {MAX_BYTES // 1_000_000} MB")
        lines = text.removesuffix("\n").split("\n")
        if not text.strip():
            raise TraceError("the trace is empty")
        if len(lines) > MAX_LINES:
            raise TraceError(f"the trace has more than {MAX_LINES} lines")
        header = read_header(parse(lines[0], 1))
        events = []
        for number, content in enumerate(lines[1:], start=2):
            try:
                events.append(from_dict(parse(content, number)))
            except (ValueError, RecursionError) as error:
                raise TraceError(f"line {number}: {error}") from error
        return cls(header, tuple(events))

    @classmethod
    def load(cls, path: Path) -> Trace:
        return cls.loads(path.read_text(encoding="utf-8"))


def live_header(prompt: str, models: dict[str, Any], kind: str = "", peer: bool = False) -> Header:
    """The header of a run that starts now, on this machine."""
    lanes = ("speculative", "transformers", "plain") if peer else ("speculative", "plain")
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Header(
        run=uuid.uuid4().hex[:12], source="live", prompt=prompt, lanes=lanes, kind=kind,
        models=models, machine=machine.describe(), created=now,
    )  # fmt: skip


def line(event: Event) -> str:
    return dump(to_dict(event))


def dump(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


def parse(content: str, number: int) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"line {number} is not JSON") from error
    if not isinstance(data, dict):
        raise TraceError(f"line {number} is not an object")
    return data


def read_header(data: dict[str, Any]) -> Header:
    if data.get("event") != "header":
        raise TraceError("the first line is not a trace header")
    if not isinstance(data.get("schema"), int) or data["schema"] > SCHEMA:
        raise TraceError(f"the trace has schema {data.get('schema')}; this version reads up to {SCHEMA}")
    wanted = {"run": str, "source": str, "prompt": str, "lanes": list}
    for name, kind in wanted.items():
        if not isinstance(data.get(name), kind):
            raise TraceError(f"the header lacks {name!r}")
    known = {name: data[name] for name in Header.__dataclass_fields__ if name in data}
    return Header(**{**known, "lanes": tuple(map(str, data["lanes"]))})
