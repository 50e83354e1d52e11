"""`python -m tools.fuzz [--minutes 20] [--seed N] [--json]`: prompts and settings that coverage leads to, run.

An input that reaches a new arc between two lines or is answered otherwise joins the corpus; most inputs are one of the
corpus with a change. They go through what the page checks into a race of tiny models.

A process of its own sends them. What takes more than LIMIT_S of its processor time ends it, so a busy machine makes no
hang. The exit code is 0 if nothing is wrong. For Linux and macOS.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOORS = {"engine": "tools.fuzz:engine"}
LIMIT_S = 12.0  # of the processor, while every line is traced
LONGEST = 20_000  # characters of an input, as JSON
ODD: tuple[Any, ...] = (
    0, -1, 1, 17, 65, 2**31, 2**64, -0.0, 0.5, 1e-45, 1e300, float("nan"), float("inf"), True, None, "", " ", "\0",
    "\ud800", "\u202e", "%s%n", "../../etc/passwd", "NaN", "1e999", "a/b + c/d", "http://[::1", "日本語", [], {},
)  # fmt: skip


@dataclass
class Door:
    """`send` tells how an input, any JSON, was answered, in a few words, or raises. `within` is what coverage is of."""

    send: Callable[[Any], str]
    seeds: list[Any]
    words: list[str] = field(default_factory=list)
    within: Path = ROOT / "specdec"


@contextlib.contextmanager
def engine() -> Iterator[Door]:
    """A run of a visitor: settings as they come, checked, and the race that they ask for."""
    import shallow
    import torch

    from specdec.families import zoo
    from specdec.lanes.race import race
    from specdec.methods import METHODS, RULES
    from specdec.settings import SETTINGS
    from specdec.ui.request import check, InputError

    with tempfile.TemporaryDirectory() as folder:
        family = zoo.load(str(shallow.write(Path(folder) / "family")), torch.float32)

    def send(settings: Any) -> str:
        if not isinstance(settings, dict) or not settings.keys() <= SETTINGS.keys() or "prompt" not in settings:
            return "unknown settings"
        try:
            request = check(**settings | {"family": "embedded", "max_tokens": 4})
            events = [*race(family, **request.arguments, details=False)]
        except (InputError, ValueError) as refusal:
            return f"refused {refusal}"
        return str(events[-1])[:40]

    usual = {one.name: one.default for one in SETTINGS.values()} | {"prompt": "Once"}
    seeds = [usual | {"temperature": t, "drafter": name} for t in (0.0, 0.8) for name in family.drafters]
    yield Door(send, seeds, [*SETTINGS, *METHODS, *RULES])


class Arcs:
    """Which line follows which in this thread."""

    def __init__(self, within: Path) -> None:
        self.within = f"{within}{os.sep}"
        self.seen: set[tuple[str, int, int]] = set()
        self.names: dict[CodeType, str] = {}
        sys.settrace(self.call)

    def call(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code not in self.names:
            path = code.co_filename
            self.names[code] = path.removeprefix(self.within) if path.startswith(self.within) else ""
        name, before = self.names[code], -1
        if not name:
            return None

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal before
            if event == "line":
                self.seen.add((name, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line


def near(value: Any, rng: random.Random, words: list[str]) -> Any:
    """The same JSON, with one place changed."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        changed = value.copy()
        place: Any = rng.choice([*value] if isinstance(value, dict) else range(len(value)))
        changed[place] = near(value[place], rng, words)
        return changed
    if isinstance(value, dict):
        name = rng.choice([*value, *words])
        return {n: v for n, v in value.items() if n != name} if name in value else value | {name: rng.choice(ODD)}
    if isinstance(value, str) and rng.random() < 0.9:
        at = rng.randrange(len(value) + 1)
        end = min(len(value), at + rng.choice((0, 1, 3, 20)))
        part = value[at:end]
        put = rng.choice(("", rng.choice(words or [""]), part * rng.choice((2, 30, 900)), chr(rng.randrange(0x3000))))
        return value[:at] + put + value[end:]
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.7 and abs(value) < 1e300:
        return rng.choice((value + 1, value - 1, value * 2, value * 0.5, -value))
    return rng.choice(ODD)


class Sender:
    """Sends through a door, and writes into `folder` what joins the corpus and what is wrong."""

    def __init__(self, door: Door, folder: Path, most: int, limit_s: float) -> None:
        self.door, self.folder, self.most, self.limit_s = door, folder, most, limit_s
        self.trace = (folder / "trace").open("w")
        faulthandler.register(signal.SIGPROF, self.trace, chain=True)  # which then ends this process
        self.sent = json.loads(read(folder / "now") or "{}").get("n", 0)

    def explore(self, seconds: float, rng: random.Random) -> None:
        corpus = [json.loads(line) for line in read(self.folder / "corpus").splitlines()]
        seen = {tuple(arc) for one in corpus for arc in one["new"]}
        until, left = time.monotonic() + seconds, [] if corpus else [*self.door.seeds]
        arcs = Arcs(self.door.within)
        while time.monotonic() < until and self.sent < self.most:
            if left:
                sent = left.pop()
            else:
                sent = rng.choice([rng.choice(corpus), rng.choice(corpus[-30:])])["sent"]
                for _ in range(rng.choice((1, 1, 2, 3))):
                    sent = near(sent, rng, self.door.words)
                if len(json.dumps(sent)) > LONGEST:
                    continue
            arcs.seen.clear()
            answer = self.send(sent)
            found = {*arcs.seen, (f"answered {answer}", 0, 0)}
            if not found <= seen:
                corpus.append({"sent": sent, "new": sorted(found - seen)})
                seen |= found
                write(self.folder / "corpus", corpus[-1])

    def send(self, sent: Any) -> str:
        """How it was answered, without numbers and names."""
        self.sent += 1
        (self.folder / "now").write_text(json.dumps({"sent": sent, "n": self.sent}))
        signal.setitimer(signal.ITIMER_PROF, self.limit_s)
        try:
            answer = self.door.send(sent)
        except Exception:
            answer = note(self.folder, "uncaught", traceback.format_exc(), sent)
        signal.setitimer(signal.ITIMER_PROF, 0)
        return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", answer)[:80]


def write(path: Path, value: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(value) + "\n")


def note(folder: Path, kind: str, what: str, sent: Any) -> str:
    """Write down what is wrong; its kind and place."""
    ours = re.findall(r'File "[^"]*?((?:specdec|tests)/[^"]*\.py)", line (\d+)', what)
    errors = re.findall(r"^[\w.]*(?:Error|Exception)\b[^\n]{,60}", what, re.M) or [what.strip().partition("\n")[0][:80]]
    where = f"{kind} {':'.join(ours[0 if 'Current thread' in what else -1]) if ours else ''} {errors[-1]}"
    write(folder / "found", {"kind": kind, "where": where, "what": what[-3_000:], "sent": sent})
    return where


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def inside(door: str, folder: str, seconds: str, most: str, seed: str, limit_s: str) -> None:
    """In the process that sends."""
    from tests.report import ROOMS

    sys.path[:0] = [str(ROOT / room) for room in ROOMS]
    module, _, name = door.partition(":")
    with getattr(importlib.import_module(module), name)() as opened:
        Sender(opened, Path(folder), int(most), float(limit_s)).explore(float(seconds), random.Random(seed))
    os._exit(0)  # whatever threads are left


def fuzz(door: str, seconds: float, most: int, seed: str = "0", limit_s: float = LIMIT_S) -> dict[str, Any]:
    """Through that door, for so long or so many inputs: what was sent and reached, and each wrong thing once."""
    began, now = time.monotonic(), {"n": 0}
    with tempfile.TemporaryDirectory() as made:
        folder, starts = Path(made), 0
        while (left := began + seconds - time.monotonic()) > 0 and now["n"] < most:
            starts += 1
            options = [door, made, str(left), str(most), f"{seed} {starts}", str(limit_s)]
            command = [sys.executable, "-m", "tools.fuzz", "--inside", *options]
            done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
            now |= json.loads(read(folder / "now") or "{}")
            if done.returncode:
                kind = "hangs" if done.returncode == -signal.SIGPROF else "deaths"
                what = read(folder / "trace") or f"exit code {done.returncode}: {done.stderr}"
                note(folder, kind, what, now.get("sent"))
                if not now["n"]:  # it did not come so far as to send anything
                    break
        corpus = [json.loads(line) for line in read(folder / "corpus").splitlines()]
        found = {one["where"]: one for one in map(json.loads, read(folder / "found").splitlines())}
    edges = sum(arc[2] > 0 for one in corpus for arc in one["new"])
    return {"inputs": now["n"], "corpus": len(corpus), "edges": edges, "processes": starts, "found": found}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--inputs", type=int, default=10**9, help="at most so many: the same for every machine")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--json", action="store_true", help="one JSON document as the last line")
    parser.add_argument("--inside", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        inside(*options.inside)
    done = {name: fuzz(door, options.minutes * 60, options.inputs, options.seed) for name, door in DOORS.items()}
    for name, one in done.items():
        print(f"{name}: {one['inputs']:,} inputs, {one['corpus']} kept, {one['edges']:,} ways from line to line")
        for wrong in one["found"].values():
            print(f"  {wrong['where']}\n    {json.dumps(wrong['sent'])[:300]}")
    if options.json:
        print(json.dumps(done))
    return int(any(one["found"] for one in done.values()))


if __name__ == "__main__":
    from tools.fuzz import main  # the one that the doors import

    raise SystemExit(main())
