"""Hostile grammars and schemas, each through the doors that a visitor uses: a link, a run, a comparison.

What they cost is counted in seconds of the processor, beyond those of a run without a grammar: in this process, the
page's, and in the engine's with its children.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from specdec.ui import request, session

from .figures import at_least, at_most, Figure, none, skipped

SECONDS, MEGABYTES = 1.0, 500.0
ALPHABET = "ab01(){}[]|*+?.\\^$,-:&~\"'/<>=!#%é中😀\ud800\n\x00pLuxdwsW "
KEYWORDS = (
    "type properties required items prefixItems minItems maxItems enum const anyOf allOf oneOf not if then $ref $defs "
    "pattern format minLength maxLength minimum maximum multipleOf additionalProperties patternProperties x-guidance"
).split()


def nested(wrap: Callable[[Any], Any], depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def expressions() -> Iterator[str]:
    yield "((" + "()" * 900 + "){999}){999}"
    for n in (99, 999, 99_999, 2**31, 2**32 - 1, 2**64):
        yield from (
            f"a{{{n}}}",
            f"(a{{{n}}}){{{n}}}",
            f"((a?){{{n}}}b){{0,{n}}}",
            f"(.{{0,{n}}}){{{n}}}x",
            f"\\p{{L}}{{{n}}}",
        )
    for depth in (10, 100, 240, 1_000, 9_000):
        yield from ("(" * depth + ")" * depth, "[" * depth + "]" * depth, "(?:" * depth + "a" + ")*" * depth)
        yield from (
            nested("(?:{}|b)".format, min(depth, 1_500), "a"),
            nested("({}){{9}}".format, min(depth, 1_500), "a"),
        )
    for n in (5, 20, 60, 500):
        yield from (
            f"(a|b)*a(a|b){{{n}}}",
            f"(.*a){{{n}}}",
            f"(x+x+)+y{{{n}}}",
            f"(a|aa|aaa)*b{{{n}}}c",
            f".*(ab){{{n}}}.*",
        )
    yield from ("|".join(f"{'ab' * n}{n}" for n in range(most)) for most in (10, 100, 130))
    yield "|".join(f"(?:a{{{n}}})*b" for n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47))
    yield from ("a.*" * n for n in (10, 100, 6_000))
    yield from (name * n for name in ("\\p{L}", "[^\\x00-\\x7f]", "(?i)\\w", "[\\s\\S]", "(|)") for n in (1, 99, 1_900))
    yield from (
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        "\\1(a)",
        "(?P<n>a)(?P=n)",
        "\\b\\w+\\b",
        "^$^$",
        "(?R)",
        "\\K",
    )
    yield from (
        "(?-u:\\xff)",
        "\\xff\\xfe",
        "\\ud800",
        "\ud800",
        "a\x00b",
        "[^\\x00-\U0010ffff]",
        "[z-a]",
        "\\",
        "a" * 30_000,
    )
    yield from (
        "a/\nstart: /b/",
        "/\n%import common.WORD\nx: /a",
        '%llguidance {"no_forcing": false}',
        "*",
        "a{",
        "{{",
        "//",
    )


def schemas() -> Iterator[Any]:
    for depth in (10, 40, 45, 90, 200):
        yield from (
            nested(lambda one: {"type": "array", "items": one}, depth, {}),
            nested(lambda one: {"type": "object", "properties": {"a": one}}, depth, {}),
            nested(lambda one: {"anyOf": [one, {"type": "null"}]}, depth, {}),
            nested(lambda one: {"allOf": [one, {"type": "string"}]}, depth, {}),
            {"const": nested(lambda one: [one], depth, 1)},
        )
    loops = ({"$ref": "#"}, {"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]})
    yield from ({**loop, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}} for loop in loops)
    yield from (
        {"$ref": to} for to in ("http://127.0.0.1:1/", "file:///etc/passwd", "#/nowhere", "#/%00", "x" * 999, 7)
    )
    for join in ("anyOf", "allOf", "oneOf"):
        two = {f"a{n}": {join: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
        yield {"$ref": "#/$defs/a0", "$defs": {**two, "a40": {"type": "string"}}}
        yield {"allOf": [{join: [{"properties": {f"{x}{n}": {"const": n}}} for x in "ab"]} for n in range(20)]}
        yield {join: [{"const": "v" * n} for n in range(150)]}
        yield {join: [{"type": "string", "pattern": f".*a{n}.*"} for n in range(40)]}
        yield {join: [{"type": "string", "pattern": f"(a|b)*a(a|b){{{n}}}"} for n in range(5, 25)]}
        yield {join: [{"type": "integer", "multipleOf": n} for n in (97, 89, 83, 79, 73, 71)]}
    yield {f"a{n}": 1 for n in range(2_000)}
    yield from ({"enum": [*range(5_000)]}, {"enum": [*range(3_500)]}, {"enum": [f"v{n}" for n in range(2_000)]})
    yield from ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(m)}} for m in (99, 600))
    for n in (7, 9_973, 99_991, 999_983, 9_999_991, 1e-9, 1e-300, 0, -1):
        yield {"type": "number", "multipleOf": n}
    for n in (999, 10**9, 2**53, 10**30, -5, 0.5):
        yield from ({"type": "array", "items": {}, "minItems": n}, {"type": "string", "minLength": n, "maxLength": n})
        yield from ({"type": "integer", "minimum": n, "maximum": 10 * n}, {"type": "object", "minProperties": n})
    yield from ({"type": "string", "pattern": one} for one in expressions() if len(one) < 300 and "{" in one)
    yield from (
        '{"enum":[1e400]}',
        '{"const":NaN}',
        '{"const":-Infinity}',
        '{"const":"\\ud800"}',
        '{"a":1',
        "{" * 20_000,
    )
    yield {"type": "string", "x-guidance": {"lenient": True, "whitespace_pattern": "(a{999}){999}"}}


def drawn(rng: random.Random) -> str:
    """Garbage, or a schema of real keywords with anything in them."""
    if rng.random() < 0.5:
        return "".join(rng.choice(ALPHABET) for _ in range(4_000))

    def value(depth: int) -> Any:
        if depth and rng.random() < 0.8:
            return {rng.choice(KEYWORDS): value(depth - 1) for _ in range(rng.randint(1, 5))}
        return rng.choice([0, -1, 1e99, True, None, "string", "object", "#", "(", [], {}, [{}], ["a"], 10**9])

    return json.dumps({"anyOf": [value(5)], "type": rng.choice(["object", "array", "string", "integer"])})


def hostile() -> list[str]:
    rng = random.Random(7)
    told = [one if isinstance(one, str) else json.dumps(one) for one in schemas()]
    return [*expressions(), *told, *(drawn(rng) for _ in range(30))]


def cost(pid: int) -> float:
    """Seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / float(os.sysconf("SC_CLK_TCK"))


def highest(pid: int) -> float:
    """MB that it ever held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1_000


def visit(grammar: str, door: int) -> str:
    """What the visitor is told at last: "done", or why not."""
    request.from_link({"grammar": grammar})
    try:
        wanted = request.check("Once", "none", 0, max_tokens=3, grammar=grammar)
    except request.InputError as refusal:
        return str(refusal)
    told = ""
    if door:
        for news in session.run(wanted):
            told = news.text if news.kind == "error" else broken_off(news.text) or told or "done"
        return told
    for item in session.series([wanted]):
        if isinstance(item, session.Raced):
            told = "".join(event.reason for event in item.events if getattr(event, "fatal", False)) or told or "done"
        elif item.kind == "error":
            told = item.text
    return told


def broken_off(lines: str) -> str:
    for line in lines.splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            event = json.loads(line)
            if event.get("event") == "failed" and event.get("fatal"):
                return str(event["reason"])
    return ""


def is_sentence(told: str) -> bool:
    return 0 < len(told) < 400 and told.isprintable() and "panic" not in told and told[-1:] in ".…e"


def count(long: bool) -> list[Figure]:
    grammars = hostile()
    if not Path("/proc/self/stat").exists():
        return [skipped("hostile grammars and schemas", "≥ 200", "there is no /proc here")]
    visit("a*", 0)  # the engine starts, and the models load
    process = session._worker._process
    assert process is not None
    usual = min(spent(process.pid, "")[2] for _ in range(3))
    page = engine = unclear = 0.0
    held = highest(process.pid)
    for number, grammar in enumerate(grammars):
        told, ours, theirs = spent(process.pid, grammar, number % 2)
        page, engine, unclear = max(page, ours), max(engine, theirs - usual), unclear + (not is_sentence(told))
    grown, died = highest(process.pid) - held, not process.alive
    session._worker.close()
    loaded = {name.partition(".")[0] for name in sys.modules} & {"llguidance"}
    return [
        at_least("hostile grammars and schemas", len({*grammars}), 200),
        at_most("costliest for the page", page, SECONDS, " s"),
        at_most("costliest for the engine", engine, SECONDS, " s"),
        at_most("memory of the engine, grown by", grown, MEGABYTES, " MB"),
        none("compiled in the page's process", len(loaded)),
        none("deaths of the engine", int(died)),
        none("without one sentence", int(unclear)),
    ]


def spent(engine: int, grammar: str, door: int = 1) -> tuple[str, float, float]:
    """What was told, and what it cost the page and the engine."""
    ours, theirs = time.process_time(), cost(engine)
    told = visit(grammar, door)
    return told, time.process_time() - ours, cost(engine) - theirs
