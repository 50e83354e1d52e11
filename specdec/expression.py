"""A small regular expression as a finite automaton over bytes. Knows no tokens and no model.

What it reads: characters, `.` (any but a line end), classes `[a-z]` and `[^a-z]`, `\\d \\w \\s` and their opposites (of
ASCII, as Python's `re` has them with `re.ASCII`), `\\n \\t \\r`, `\\xhh`, `\\uhhhh`, groups `( )` and `(?: )`, `|`, and
the repeats `* + ? {m} {m,} {m,n}`. The whole text has to match, so there are no anchors; nothing looks around or back.

Thompson's construction (1968), then one state for each set of states that the bytes so far can lead to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn

from .types import has_half_characters, MAX_GRAMMAR, Said

MAX_STATES, MAX_NODES, MAX_NESTING = 1_000, 10_000, 50
MAX_STEPS = 500_000  # from node to node: a tenth of a second
DEAD, START = 0, 1

Ranges = list[tuple[int, int]]  # of characters, sorted, both ends included
LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # no text holds them
DIGITS: Ranges = [(48, 57)]
WORD: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
SPACE: Ranges = [(9, 13), (32, 32)]
CLASSES = {"d": DIGITS, "w": WORD, "s": SPACE}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
HEXADECIMAL = "0123456789abcdefABCDEF"


@dataclass(frozen=True)
class Automaton:
    """`table[state][byte]` is the next state, DEAD where no text of the language goes on so. Begins in START.

    From every other state some text of the language can still be reached.
    """

    table: Sequence[Sequence[int]]  # [states, 256]
    accepting: frozenset[int]

    def after(self, data: bytes, state: int = START) -> int:
        for byte in data:
            state = self.table[state][byte]
        return state


def compiled(expression: str) -> Automaton:
    """ValueError, in one sentence, for what cannot be read, matches no text, or is too large."""
    if len(expression) > MAX_GRAMMAR:
        raise ValueError(Said("the grammar has more than {limit} characters", limit=MAX_GRAMMAR))
    if has_half_characters(expression):
        raise ValueError(Said("the grammar holds half of a character (a lone surrogate)"))
    nodes = Nodes()
    last = Parser(expression).whole()(nodes, nodes.new())
    return trimmed(*determined(nodes, last))


@dataclass
class Nodes:
    """An automaton in which several ways may be open: `moves` read a byte of a range, `silent` ones nothing."""

    moves: list[list[tuple[int, int, int]]] = field(default_factory=list)
    silent: list[list[int]] = field(default_factory=list)
    steps: int = 0

    def new(self) -> int:
        if len(self.moves) == MAX_NODES:
            raise ValueError(Said("the grammar is too large: it repeats too much"))
        self.moves.append([])
        self.silent.append([])
        return len(self.moves) - 1

    def reached(self, nodes: Iterator[int] | Sequence[int]) -> frozenset[int]:
        """These and all that follow silently."""
        found, left = set[int](), list(nodes)
        while left:
            if (node := left.pop()) not in found:
                found.add(node)
                left += self.silent[node]
        self.steps += len(found)
        if self.steps > MAX_STEPS:
            raise ValueError(Said("the grammar is too large: it repeats too much"))
        return frozenset(found)


Part = Callable[[Nodes, int], int]  # adds its nodes after one, and says which is its last


def sequence(parts: Sequence[Part]) -> Part:
    def build(nodes: Nodes, start: int) -> int:
        for part in parts:
            start = part(nodes, start)
        return start

    return build


def either(parts: Sequence[Part]) -> Part:
    def build(nodes: Nodes, start: int) -> int:
        end = nodes.new()
        for part in parts:
            first = nodes.new()  # of its own: a repeat in one part must not lead into another
            nodes.silent[start].append(first)
            nodes.silent[part(nodes, first)].append(end)
        return end

    return build


def repeated(part: Part, least: int, most: int | None) -> Part:
    """`most` None is without end."""

    def build(nodes: Nodes, start: int) -> int:
        for _ in range(least):
            start = part(nodes, start)
        end = nodes.new()
        if most is None:
            again = nodes.new()
            nodes.silent[start].append(again)
            nodes.silent[part(nodes, again)].append(again)
            start = again
        else:
            for _ in range(most - least):
                nodes.silent[start].append(end)
                first = nodes.new()
                nodes.silent[start].append(first)
                start = part(nodes, first)
        nodes.silent[start].append(end)
        return end

    return build


def characters(ranges: Ranges) -> Part:
    """One character of these, as its bytes in UTF-8. Spellings that end alike share their last nodes."""
    spelled = [tuple(spelling) for low, high in ranges for spelling in utf8(low, high)]

    def build(nodes: Nodes, start: int) -> int:
        ways: dict[tuple[tuple[int, int], ...], int] = {(): nodes.new()}

        def way(rest: tuple[tuple[int, int], ...]) -> int:
            if rest not in ways:
                ways[rest] = nodes.new()
                nodes.moves[ways[rest]].append((*rest[0], way(rest[1:])))
            return ways[rest]

        nodes.moves[start] += [(*spelling[0], way(spelling[1:])) for spelling in spelled]
        return ways[()]

    return build


def utf8(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """Ranges of bytes, one after another, that together spell the characters from `low` to `high` and no other."""
    for limit in (0x7F, 0x7FF, SURROGATES[0] - 1, SURROGATES[1], 0xFFFF):
        if low <= limit < high:
            yield from utf8(low, limit)
            yield from utf8(limit + 1, high)
            return
    if SURROGATES[0] <= low <= SURROGATES[1]:
        return
    for bits in (6, 12, 18):  # of the last one, two, three bytes
        below = (1 << bits) - 1
        if high > 0x7F and low & ~below != high & ~below:
            if low & below:
                yield from utf8(low, low | below)
                yield from utf8((low | below) + 1, high)
                return
            if high & below != below:
                yield from utf8(low, (high & ~below) - 1)
                yield from utf8(high & ~below, high)
                return
    yield list(zip(chr(low).encode(), chr(high).encode(), strict=True))


def merged(ranges: Ranges) -> Ranges:
    whole: Ranges = []
    for low, high in sorted(ranges):
        if whole and low <= whole[-1][1] + 1:
            whole[-1] = whole[-1][0], max(high, whole[-1][1])
        else:
            whole.append((low, high))
    return whole


def all_but(ranges: Ranges) -> Ranges:
    ends = [(-1, -1), *merged(ranges), (LAST + 1, LAST + 1)]
    return [(a[1] + 1, b[0] - 1) for a, b in pairwise(ends) if a[1] + 1 <= b[0] - 1]


class Parser:
    """From left to right, one character ahead."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def whole(self) -> Part:
        part = self.choice()
        if self.at < len(self.text):
            self.refuse("there is no bracket for it to close")
        return part

    def next(self, wanted: str = "") -> bool:
        """Whether `wanted` comes next, and then passes it; without, whether anything does."""
        if not wanted:
            return self.at < len(self.text)
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) * found
        return found

    def refuse(self, why: str) -> NoReturn:
        told = {"place": self.at + 1, "where": self.text[self.at : self.at + 12], "why": Said(why)}
        raise ValueError(Said("the grammar cannot be read at character {place}, {where!r}: {why}", **told))

    def choice(self) -> Part:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.refuse("brackets stand too deep in brackets")
        parts = [self.several()]
        while self.next("|"):
            parts.append(self.several())
        self.depth -= 1
        return either(parts) if len(parts) > 1 else parts[0]

    def several(self) -> Part:
        parts = []
        while self.next() and self.text[self.at] not in "|)":
            parts.append(self.repeats(self.one()))
        return sequence(parts)

    def one(self) -> Part:
        if self.next("(?:") or self.next("("):
            if self.next() and self.text[self.at] == "?":
                self.refuse("nothing looks around or back, and groups have no names")
            part = self.choice()
            if not self.next(")"):
                self.refuse("a bracket is not closed")
            return part
        if self.text[self.at] in "^$":
            self.refuse("the whole text has to match, so there are no anchors")
        if self.text[self.at] in "*+?{":
            self.refuse("there is nothing to repeat")
        if self.next("."):
            return characters(all_but([(10, 10)]))
        if self.next("["):
            return characters(self.set_of())
        return characters(self.character())

    def repeats(self, part: Part) -> Part:
        if self.next("*"):
            part = repeated(part, 0, None)
        elif self.next("+"):
            part = repeated(part, 1, None)
        elif self.next("?"):
            part = repeated(part, 0, 1)
        elif self.next("{"):
            least = self.number()
            most: int | None = least
            if self.next(","):
                most = None if self.text[self.at : self.at + 1] == "}" else self.number()
            if not self.next("}") or (most is not None and most < least):
                self.refuse("a repeat is {{m}}, {{m,}} or {{m,n}}, with numbers below 1000")
            part = repeated(part, least, most)
        else:
            return part
        if self.next() and self.text[self.at] in "*+?{":
            self.refuse("a repeat is not repeated; put brackets round it")
        return part

    def number(self) -> int:
        start = self.at
        while self.next() and self.text[self.at] in "0123456789":
            self.at += 1
        if not 0 < self.at - start <= 3:
            self.refuse("a repeat is {{m}}, {{m,}} or {{m,n}}, with numbers below 1000")
        return int(self.text[start : self.at])

    def set_of(self) -> Ranges:
        opposite, ranges = self.next("^"), Ranges()
        while not ranges or not self.next("]"):
            if not self.next():
                self.refuse("a bracket is not closed")
            first = self.character()
            if self.next("-"):
                if self.next() and self.text[self.at] == "]":
                    first = [*first, (45, 45)]
                else:
                    last = self.character() if self.next() else [(0, 0)]
                    (low, up_to), (at_least, high) = first[0], last[0]
                    if len(first) > 1 or len(last) > 1 or low != up_to or at_least != high or high < low:
                        self.refuse("this is no range of characters")
                    first = [(low, high)]
            ranges += first
        return all_but(ranges) if opposite else merged(ranges)

    def character(self) -> Ranges:
        """A character as it stands, or what an escape means."""
        if not self.next("\\"):
            self.at += 1
            return [(ord(self.text[self.at - 1]),) * 2]
        if not self.next():
            self.refuse("a backslash stands before nothing")
        letter = self.text[self.at]
        self.at += 1
        if letter.lower() in CLASSES:
            return CLASSES[letter] if letter.islower() else all_but(CLASSES[letter.lower()])
        if letter in "xu":
            count = 2 if letter == "x" else 4
            digits = self.text[self.at : self.at + count]
            if len(digits) < count or not all(digit in HEXADECIMAL for digit in digits):
                self.refuse("a character's number has two or four digits: \\x41, \\u00e9")
            self.at += len(digits)
            return [(int(digits, 16),) * 2]
        if letter.isalnum() and letter not in CONTROLS:
            self.at -= 2
            self.refuse("there is no such escape")
        return [(ord(CONTROLS.get(letter, letter)),) * 2]


def determined(nodes: Nodes, last: int) -> tuple[list[list[int]], set[int]]:
    """One state for each set of nodes that can be reached; state START is where a text begins."""
    sets: dict[frozenset[int], int] = {frozenset(): DEAD, nodes.reached([0]): START}
    table, waiting = [[DEAD] * 256], [nodes.reached([0])]
    for current in waiting:  # grows on the way
        moves = [move for node in current for move in nodes.moves[node]]
        cuts = sorted({0, 256, *(low for low, _, _ in moves), *(high + 1 for _, high, _ in moves)})
        ways: list[set[int]] = [set() for _ in cuts]
        for low, high, after in moves:
            for place in range(bisect_right(cuts, low) - 1, bisect_right(cuts, high)):
                ways[place].add(after)
        row: list[int] = []
        for (low, high), way in zip(pairwise(cuts), ways, strict=False):
            reached = nodes.reached(list(way))
            if reached not in sets:
                if len(sets) == MAX_STATES:
                    raise ValueError(
                        Said("the grammar is too large: it has more than {limit} states", limit=MAX_STATES)
                    )
                sets[reached] = len(sets)
                waiting.append(reached)
            row += [sets[reached]] * (high - low)
        table.append(row)
    return table, {state for found, state in sets.items() if last in found}


def trimmed(table: list[list[int]], accepting: set[int]) -> Automaton:
    """Without ways into states that no end can be reached from. ValueError where that is all of them."""
    before: dict[int, set[int]] = {}
    for state, row in enumerate(table):
        for after in {*row}:
            before.setdefault(after, set()).add(state)
    alive, left = set(accepting), list(accepting)
    while left:
        new = before.get(left.pop(), set()) - alive
        alive |= new
        left += new
    if START not in alive:
        raise ValueError(Said("the grammar matches no text"))
    kept = [[after if after in alive else DEAD for after in row] for row in table]
    return Automaton(kept, frozenset(accepting))
