"""Rewriting, generated: texts whose second half repeats the first with a few changes, as editors and agents write.

Functions get another name or another line, stories another word, tables become records, and agents run the same
commands on one file after the other. What such a task changes is said before it, so that all of its answer can be
known. Words without meaning are repeated, too: they teach to copy.
"""

from __future__ import annotations

import ast
import json
import random
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LINES = range(3, 13)  # of a function
CHARACTERS = 420  # of what is written twice: both fit into the target's 512 tokens
NAMES = (
    "rain wind snow river stone field house garden north south east west red green blue white apple bread table chair"
    " letter paper music train winter summer morning window bridge horse forest silver iron copper mill"
).split()
PEOPLE = "Tom Harry John Mary Anne Peter James Alice Henry Jane George Martha Robert Ellen Arthur Sarah".split()
WORD = re.compile(r"\b[A-Za-z]{4,}\b")  # that may be replaced in a paragraph
COMMANDS = "open read check count copy move close send print sort test build load save parse format clean".split()
ANSWERS = ("ok", "done", "no errors", "passed", "{n} lines", "{n} lines, no errors", "passed, {n} tests", "{n} bytes")


@dataclass(frozen=True)
class Sources:
    """What is rewritten: functions and paragraphs; the names that may be given; all words that occur."""

    functions: Sequence[str]
    paragraphs: Sequence[str]
    names: Sequence[str]
    words: Sequence[str]

    @classmethod
    def of(cls, code: Sequence[str], stories: Sequence[str]) -> Sources:
        functions = [function for text in code for function in functions_in(text)]
        words = {word for text in functions for word in arguments(text)}
        paragraphs = [
            part for text in stories for part in text.split("\n\n") if len(part) <= CHARACTERS and WORD.search(part)
        ]
        every = sorted({word for text in (*functions, *paragraphs) for word in re.findall(r"\w+|[^\w\s]", text)})
        return cls(functions, paragraphs, sorted(words) if len(words) >= 8 else NAMES, [*every, *NAMES])


def functions_in(text: str) -> list[str]:
    """Its functions of a few lines, flush left."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return []
    lines, found = text.splitlines(), []
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno + 1 in LINES:
            function = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if len(function) <= CHARACTERS and function.startswith("def ") and arguments(function):
                found.append(function)
    return found


def arguments(function: str) -> list[str]:
    """The names of its arguments, of those that are used in it."""
    named = re.findall(r"\b[a-z][a-z_]{1,11}\b(?=\s*[,)=])", function.split(":\n", 1)[0])
    return [name for name in dict.fromkeys(named) if name != "self" and len(re.findall(rf"\b{name}\b", function)) > 1]


def replaced(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


def rename(rng: random.Random, sources: Sources) -> str:
    """A function, and the same with another name for one of its arguments."""
    function = rng.choice(sources.functions)
    old = rng.choice(arguments(function))
    new = rng.choice([name for name in rng.choices(sources.names, k=8) if name not in function] or ["renamed"])
    return f"# Rename {old} to {new}:\n{function}\n\n# Renamed:\n{replaced(function, old, new)}\n"


def patch(rng: random.Random, sources: Sources) -> str:
    """A function, and the same with one of its lines as it is asked for."""
    lines = rng.choice(sources.functions).splitlines()
    at = rng.randrange(1, len(lines))
    old = lines[at]
    wanted = rng.choice(rng.choice(sources.functions).splitlines()[1:]).strip() or "pass"
    new = old[: len(old) - len(old.lstrip())] + wanted
    told = "\n".join(lines)
    lines[at] = new
    return f"# Instead of {old.strip()!r} write {wanted!r}:\n{told}\n\n# Changed:\n" + "\n".join(lines) + "\n"


def repeat(rng: random.Random, sources: Sources) -> str:
    """One function for each of several names."""
    short = [text for text in rng.choices(sources.functions, k=8) if len(text) < 240]
    function = rng.choice(short or sources.functions)
    old = rng.choice(arguments(function))
    names = rng.sample(NAMES, rng.randint(3, 5))
    return f"# For {', '.join(names)}:\n" + "\n\n".join(replaced(function, old, name) for name in names) + "\n"


def replace(rng: random.Random, sources: Sources) -> str:
    """A paragraph, and the same with another word wherever one stood."""
    paragraph = rng.choice(sources.paragraphs)
    old = rng.choice(WORD.findall(paragraph))
    new = rng.choice(PEOPLE if old[0].isupper() else NAMES)
    return f"Replace {old} by {new}:\n\n{paragraph}\n\nReplaced:\n\n{replaced(paragraph, old, new)}\n"


def agent(rng: random.Random, sources: Sources) -> str:
    """The same commands on one file after the other, and what they answer."""
    commands = rng.sample(COMMANDS, rng.randint(2, 4))
    answers = [rng.choice(ANSWERS) for _ in commands]
    end, files = rng.choice(("txt", "py", "csv", "log")), rng.sample(NAMES, rng.randint(3, 5))
    told = [f"Plan: {', '.join(commands)} {', '.join(f'{name}.{end}' for name in files)}"]
    for name in files:
        count = rng.randint(2, 99)
        told += [f"> {do} {name}.{end}\n{says.format(n=count)}" for do, says in zip(commands, answers, strict=True)]
    return "\n".join(told) + "\n"


def convert(rng: random.Random, sources: Sources) -> str:
    """A table, and its rows as records."""
    columns = rng.sample(sources.names, rng.randint(2, 4))
    rows: list[list[str | int]] = [
        [name, *(rng.choice((rng.randint(1, 99), rng.choice(NAMES))) for _ in columns[1:])]
        for name in rng.sample(NAMES, rng.randint(3, 6))
    ]
    lines: list[Sequence[str | int]] = [columns, *rows]
    table = "\n".join(",".join(str(cell) for cell in line) for line in lines)
    return f"{table}\n\n" + "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows) + "\n"


def echo(rng: random.Random, sources: Sources) -> str:
    """Words that mean nothing together, again and again, and one of them changed each time.

    No habit of the language foretells them, so they teach to copy, which the other tasks need. The fewer words there
    are, the more of what went before has to agree.
    """
    few = rng.choices(sources.words, k=rng.choice((4, 8, 16, 48)))
    words, told = rng.choices(few, k=rng.randint(8, 48)), []
    ends = [rng.choice("      \n") for _ in words]
    for _ in range(rng.randint(3, 6)):
        told.append("".join(word + end for word, end in zip(words, ends, strict=True)).strip())
        words[rng.randrange(len(words))] = rng.choice(sources.words)
    return "\n\n".join(told) + "\n"


KINDS: tuple[Callable[[random.Random, Sources], str], ...] = (
    (rename, patch, echo, echo) * 2 + (repeat, replace, agent, convert)
)  # fmt: skip


def documents(count: int, seed: int, sources: Sources) -> list[str]:
    """`count` documents, a task each."""
    rng = random.Random(seed)
    kinds = [
        kind
        for kind in KINDS
        if (sources.functions or kind not in (rename, patch, repeat)) and (sources.paragraphs or kind is not replace)
    ]
    return [rng.choice(kinds)(rng, sources) for _ in range(count)]
