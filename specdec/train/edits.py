"""Rewriting, generated: texts whose second half repeats the first with a few changes, as editors and agents write.

Functions are renamed, names in stories are replaced, tables become records, and agents run the same commands on one
file after the other. What a task changes is said before it, so that all of its answer can be known.
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
DOCUMENT = 1200  # characters, at least
NAMES = (
    "rain wind snow river stone field house garden north south east west red green blue white apple bread table chair"
    " letter paper music train winter summer morning window bridge horse forest silver iron copper mill"
).split()
PEOPLE = "Tom Harry John Mary Anne Peter James Alice Henry Jane George Martha Robert Ellen Arthur Sarah".split()
COMMANDS = "open read check count copy move close send print sort test build load save parse format clean".split()
ANSWERS = ("ok", "done", "no errors", "passed", "{n} lines", "{n} lines, no errors", "passed, {n} tests", "{n} bytes")


@dataclass(frozen=True)
class Sources:
    """What is rewritten: functions, paragraphs in which a person is named twice, and the names that may be given."""

    functions: Sequence[str]
    paragraphs: Sequence[str]
    names: Sequence[str]

    @classmethod
    def of(cls, code: Sequence[str], stories: Sequence[str]) -> Sources:
        functions = [function for text in code for function in functions_in(text)]
        words = {word for text in functions for word in arguments(text)}
        people = re.compile(rf"\b({'|'.join(PEOPLE)})\b.*\b\1\b", re.S)
        paragraphs = [
            part for text in stories for part in text.split("\n\n") if len(part) <= CHARACTERS and people.search(part)
        ]
        return cls(functions, paragraphs, sorted(words) if len(words) >= 8 else NAMES)


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


def repeat(rng: random.Random, sources: Sources) -> str:
    """One function for each of several names."""
    short = [text for text in rng.choices(sources.functions, k=8) if len(text) < 240]
    function = rng.choice(short or sources.functions)
    old = rng.choice(arguments(function))
    names = rng.sample(NAMES, rng.randint(3, 5))
    return f"# For {', '.join(names)}:\n" + "\n\n".join(replaced(function, old, name) for name in names) + "\n"


def replace(rng: random.Random, sources: Sources) -> str:
    """A paragraph, and the same with another person in it."""
    paragraph = rng.choice(sources.paragraphs)
    old = rng.choice([name for name in PEOPLE if len(re.findall(rf"\b{name}\b", paragraph)) > 1])
    new = rng.choice([name for name in PEOPLE if name not in paragraph])
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


KINDS: tuple[Callable[[random.Random, Sources], str], ...] = (rename, rename, repeat, replace, agent, agent, convert)


def documents(count: int, seed: int, sources: Sources) -> list[str]:
    """`count` documents of tasks, some in a row."""
    rng, made = random.Random(seed), []
    kinds = [
        kind
        for kind in KINDS
        if (sources.functions or kind not in (rename, repeat)) and (sources.paragraphs or kind is not replace)
    ]
    for _ in range(count):
        tasks: list[str] = []
        while sum(map(len, tasks)) < DOCUMENT:
            tasks.append(rng.choice(kinds)(rng, sources))
        made.append("\n".join(tasks))
    return made
