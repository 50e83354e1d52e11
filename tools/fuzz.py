"""`python -m tools.fuzz [--minutes 20] [--only api] [--seed N] [--json]`: inputs that coverage leads to.

An input that reaches a new arc between two lines, is answered otherwise or takes longer than any before joins the
corpus; most inputs are one of the corpus with a change. `api` is every route and every function behind one.

A process of its own sends them. What takes more than LIMIT seconds of its processor time ends it and is sent again
without tracing, so neither a busy machine nor the tracing makes a hang. The exit code is 0 if nothing is wrong. For
Linux and macOS.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import faulthandler
import importlib
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.trust import garbage

ROOT = Path(__file__).resolve().parents[1]
DOORS = {"api": "tools.fuzz_doors:api"}
LIMIT, TRACED = 2.0, 6.0  # seconds of the processor; how many times as many while it is traced
MOST = 100_000  # characters of an input
MEMORY = 300  # MB that one input may add to the peak
KINDS = ("hangs", "deaths", "uncaught", "5xx", "unanswered", "memory")
ASIDE = "aside"  # what Gradio writes into the log by itself: told, and not counted as wrong


class Wrong(Exception):
    """What must not be, of one of KINDS; or ASIDE."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


@dataclass
class Door:
    """`send` tells how an input was answered, in a few words, or raises; "" where it was not sent.

    An input is any JSON. Coverage is that of the files in `within`.
    """

    send: Callable[[Any], str]
    seeds: list[Any]
    words: list[str] = field(default_factory=list)
    change: Callable[..., Any] | None = None  # as `near`, which is the default
    longest: int = MOST  # characters, as JSON
    within: Path = ROOT / "specdec"


class Arcs:
    """Which line follows which, in every thread that begins after this."""

    def __init__(self, within: Path) -> None:
        self.within, self.on = f"{within}{os.sep}", True
        self.seen: set[tuple[str, int, int]] = set()
        self.names: dict[CodeType, str] = {}
        threading.settrace(self.call)
        sys.settrace(self.call)

    def call(self, frame: FrameType, event: str, told: Any) -> Any:
        if not self.on:
            return None
        code = frame.f_code
        name = self.names.get(code)
        if name is None:
            path = code.co_filename
            name = self.names[code] = path[len(self.within) :] if path.startswith(self.within) else ""
        if not name:
            return None
        before, add = -1, self.seen.add

        def line(frame: FrameType, event: str, told: Any) -> Any:
            nonlocal before
            if event == "line":
                add((name, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line


# ---- changes ----


def near(value: Any, rng: random.Random, words: list[str]) -> Any:
    """The same JSON, with one place changed."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        changed = value.copy()
        place: Any = rng.choice([*value] if isinstance(value, dict) else range(len(value)))
        changed[place] = near(value[place], rng, words)
        return changed
    kind = rng.randrange(4)
    if isinstance(value, dict):
        name = rng.choice([*value, rng.choice(words)])
        return value | {rng.choice(words): value.get(name)} if kind else {n: v for n, v in value.items() if n != name}
    if isinstance(value, list):
        at = rng.randrange(len(value) + 1)
        put = (value[at:] * 2, [], [garbage.value(rng)], value[::-1])[kind]
        return [*value[:at], *put, *value[at + (kind == 1) :]]
    if isinstance(value, str) and rng.random() < 0.95:
        return near_text(value, rng, words)
    if isinstance(value, int | float) and not isinstance(value, bool) and kind < 3 and abs(value) < 1e300:
        return (value + rng.choice((-1, 1)), value * rng.choice((-1, 2, 0.5)), int(value))[kind]
    return garbage.value(rng)


def near_text(text: str, rng: random.Random, words: list[str]) -> str:
    if text[:1] in ("{", "[") and rng.random() < 0.7:  # JSON, perhaps a line each
        lines = text.splitlines()
        at = rng.randrange(len(lines))
        with contextlib.suppress(ValueError, RecursionError):
            lines[at] = json.dumps(near(json.loads(lines[at]), rng, words))
            return "\n".join(lines)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 3, 20, 400)))
        if rng.random() < 0.4 and (marks := [i for i, mark in enumerate(text) if mark in "([{"]):  # what is in brackets
            at = rng.choice(marks)
            end = rng.choice([at, *(i + 1 for i, mark in enumerate(text) if mark in ")]}" and i > at)][-9:])
        part, word = text[at:end][:400], rng.choice(words)
        put = rng.choice((
            "", word, word + part, part * 2, part * rng.choice((3, 30, 900)), part[::-1], chr(rng.randrange(0x3000)),
            f"({part}){word}", text[rng.randrange(len(text) + 1) :][:60], str(rng.choice(garbage.NUMBERS)),
        ))  # fmt: skip
        text = text[:at] + put + text[end:]
        if len(text) > MOST:
            break
    return text


def literals(*folders: str) -> list[str]:
    """The short strings that the code knows."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    found = {one.value for tree in trees for one in ast.walk(tree) if isinstance(one, ast.Constant)}
    return sorted(text for text in found if isinstance(text, str) and 0 < len(text) <= 30)


# ---- in the process that sends ----


class Sender:
    """Sends through a door what stands in `folder`, and more; writes there what joins the corpus and what is wrong."""

    def __init__(self, door: Door, folder: Path, most: int, limit: float) -> None:
        self.door, self.folder, self.most, self.limit = door, folder, most, limit
        self.trace = (folder / "trace").open("w")  # kept open: it is written where nothing else can be
        faulthandler.register(signal.SIGPROF, self.trace, chain=True)  # which then ends this process
        self.sent = json.loads(read(folder / "now") or "{}").get("n", 0)
        self.arcs: Arcs | None = None

    def again(self) -> None:
        """What took too long while it was traced."""
        self.one(json.loads((self.folder / "again").read_text()))
        (self.folder / "again").unlink()

    def explore(self, seconds: float, rng: random.Random) -> None:
        groups: dict[str, list[Any]] = {}  # the corpus, by the first word of the answer
        for kept in map(json.loads, read(self.folder / "corpus").splitlines()):
            groups.setdefault(kept["said"].split()[0], []).append(kept)
        seen = {tuple(one) for like in groups.values() for kept in like for one in kept["new"]}
        until, left = time.monotonic() + seconds, [] if groups else [*self.door.seeds]
        self.arcs = Arcs(self.door.within)
        words, change = self.door.words or [""], self.door.change or near
        while time.monotonic() < until and self.sent < self.most:
            if left:
                sent = left.pop()
            else:  # a kind of answer, then one of it: a new or a quick one sooner, or a slow one
                like = rng.choice([*groups.values()])
                some, of_both = [rng.choice(like), rng.choice(like[-30:])], max if rng.random() < 0.25 else min
                sent = change(of_both(some, key=lambda one: one["took"])["sent"], rng, words)
                for _ in range(rng.choice((0, 0, 1, 2))):
                    sent = change(sent, rng, words)
                if len(json.dumps(sent)) > self.door.longest:
                    continue
            self.arcs.seen.clear()
            said, took = self.one(sent)
            if not said:
                continue
            kind, grade = " ".join(said.split()[:2]), round(2 * math.log2(took + 1e-3))
            found = {*self.arcs.seen, (f"said {said}", 0, 0), (f"{kind} took {grade}", 0, 0)}
            if took > self.limit:
                sys.settrace(None)
                self.arcs.on = False
                self.one(sent)
                self.arcs.on = True
                sys.settrace(self.arcs.call)
            if not found <= seen:
                kept = {"sent": sent, "took": took, "said": said, "new": sorted(found - seen)}
                groups.setdefault(said.split()[0], []).append(kept)
                seen |= found
                words += [text for text in leaves(sent) if len(text) <= 60]
                write(self.folder / "corpus", kept)

    def one(self, sent: Any) -> tuple[str, float]:
        """How it was answered, and in which time."""
        traced, before = bool(self.arcs and self.arcs.on), peak()
        self.sent += not self.arcs or traced
        now = {"sent": sent, "traced": traced, "n": self.sent, "peak": before}
        (self.folder / "now").write_text(json.dumps(now))
        signal.setitimer(signal.ITIMER_PROF, self.limit * (TRACED if traced else 1.0))
        began = time.process_time()
        try:
            said = self.door.send(sent)
        except Wrong as wrong:
            said = self.wrong(wrong.kind, str(wrong), sent)
        except Exception:
            said = self.wrong("uncaught", traceback.format_exc(), sent)
        took = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        if (more := peak() - before) > MEMORY:
            self.wrong("memory", f"{more:,.0f} MB more", sent)
        return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", said)[:80], took

    def wrong(self, kind: str, what: str, sent: Any) -> str:
        note(self.folder, kind, what, sent)
        return f"{kind} {place_of(what)}"


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)


def peak() -> float:
    """MB, of this process or a child."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def write(path: Path, told: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(told) + "\n")


def note(folder: Path, kind: str, what: str, sent: Any) -> None:
    where = f"{kind} {place_of(what)}"
    write(folder / "found", {"kind": kind, "where": where, "what": what[-3_000:], "sent": sent})


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def inside(door: str, folder: str, seconds: str, most: str, seed: str, limit: str) -> None:
    from tests.report import ROOMS

    sys.path[:0] = [str(ROOT / room) for room in ROOMS]
    module, _, name = door.partition(":")
    with getattr(importlib.import_module(module), name)() as opened:
        sender = Sender(opened, Path(folder), int(most), float(limit))
        sender.again() if Path(folder, "again").exists() else sender.explore(float(seconds), random.Random(seed))
    os._exit(0)  # whatever threads are left


# ---- in the process that looks on ----


def place_of(what: str) -> str:
    """Where it happened: the last of our lines that are told of."""
    ours = re.findall(r'File "[^"]*?((?:specdec|tests)/[^"]*\.py)", line (\d+)', what)
    errors = re.findall(r"^[\w.]*(?:Error|Exception)\b[^\n]{,60}", what, re.M) or [what.strip().partition("\n")[0][:80]]
    place = ":".join(ours[0 if "Current thread" in what else -1]) if ours else ""
    return re.sub(r"'\w*\d\w*'", "…", f"{place} {errors[-1]}".strip())


def fuzz(door: str, seconds: float, most: int, seed: str = "0", limit: float = LIMIT) -> dict[str, Any]:
    """Through that door, for so long or so many inputs: what was sent and reached, and each wrong thing once."""
    began, now = time.monotonic(), {"n": 0, "peak": 0}
    with tempfile.TemporaryDirectory() as made:
        folder, starts = Path(made), 0
        while ((left := began + seconds - time.monotonic()) > 0 and now["n"] < most) or (folder / "again").exists():
            starts += 1
            told = [door, made, str(left), str(most), f"{seed} {starts}", str(limit)]
            done = subprocess.run([sys.executable, "-m", "tools.fuzz", "--inside", *told], cwd=ROOT, text=True,
                                  capture_output=True)  # fmt: skip
            now |= json.loads(read(folder / "now") or "{}")
            if done.returncode == 0:
                continue
            if done.returncode == -signal.SIGPROF and now["traced"]:
                (folder / "again").write_text(json.dumps(now["sent"]))
                continue
            (folder / "again").unlink(missing_ok=True)
            kind = "hangs" if done.returncode == -signal.SIGPROF else "deaths"
            what = read(folder / "trace") or f"exit code {done.returncode}: {done.stderr}"
            note(folder, kind, what, now.get("sent"))
            if not now["n"]:  # it did not come so far as to send anything
                break
        arcs = [one for line in read(folder / "corpus").splitlines() for one in json.loads(line)["new"] if one[2]]
        found: dict[str, dict[str, Any]] = {}
        for line in read(folder / "found").splitlines():
            one = json.loads(line)
            kept = found.setdefault(one["where"], one | {"times": 0})
            kept["times"] += 1
        took = time.monotonic() - began
        return {
            "inputs": now["n"],
            "per_second": round(now["n"] / took, 1),
            "corpus": len(read(folder / "corpus").splitlines()),
            "lines": len({(name, line) for name, _, line in arcs}),
            "edges": len(arcs),
            "peak_mb": round(now["peak"]),
            "processes": starts,
            "seconds": round(took),
            "found": found,
        }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="of all doors together")
    parser.add_argument("--inputs", type=int, default=10**9, help="at most so many a door: the same for every machine")
    parser.add_argument("--only", choices=DOORS, help="this door alone")
    parser.add_argument("--seed", default="0", help="of the changes")
    parser.add_argument("--json", action="store_true", help="one JSON document as the last line")
    parser.add_argument("--inside", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        inside(*options.inside)
    doors = [options.only] if options.only else [*DOORS]
    told = {}
    for name in doors:
        told[name] = done = fuzz(DOORS[name], options.minutes * 60 / len(doors), options.inputs, options.seed)
        print(f"{name}: " + ", ".join(f"{what.replace('_', ' ')} {done[what]:,}" for what in done if what != "found"))
        for where, one in done["found"].items():
            print(f"  {one['times']} × {where}\n{one['what'][-900:]}\n  {json.dumps(one['sent'])[:600]}")
        kinds = [one["kind"] for one in done["found"].values()]
        print("  " + ", ".join(f"{kind} {kinds.count(kind)}" for kind in (*KINDS, ASIDE)), flush=True)
    if options.json:
        print(json.dumps(told))
    return 1 if any(one["kind"] != ASIDE for done in told.values() for one in done["found"].values()) else 0


if __name__ == "__main__":
    from tools.fuzz import main  # the one that the doors import

    raise SystemExit(main())
