"""What a target teaches: conversations that it writes itself, both sides, with its distribution at every place.

Prompts are given, or are drawn after the bare header of a user's turn, as in Magpie (Xu et al., arXiv 2406.08464); most
of those begin with words that people begin with, which `assets/openings.txt` lists. Answers are half greedy, half drawn
at a temperature. A target without a chat template just writes on. The rows of a batch are in different places of
different conversations: a row that ends one begins the next.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from .. import paths
from ..families.chat import with_controls
from ..families.zoo import Family
from ..figures.stats import repetition
from ..models import batched
from ..models.transformer import Transformer

TEMPERATURE, TOP_P = 0.8, 0.95  # of half of the answers; of prompts, at temperature 1
SHORTEST, LONGEST_PROMPT, LONGEST_ANSWER = 3, 64, 144  # tokens
OPENED = 0.75  # share of the prompts that it writes whose first words are given
KEPT = 64  # likeliest tokens of a place
DIFFERENT = 0.5  # share of an answer's 4-grams that must be: greedy text of small models turns in circles
SHARD = 20_000  # tokens of answers in a file
PROMPT, ANSWER = 1, 2  # marks of tokens; 0 is the template's


@dataclass(frozen=True)
class Example:
    """A conversation. `places` are those in `tokens` after which an answer's token comes; the target's likeliest tokens
    there, and the logarithms of their chances."""

    tokens: Tensor  # int64 [n]
    places: Tensor  # int64 [answer]
    likeliest: Tensor  # int32 [answer, KEPT]
    logs: Tensor  # float16 [answer, KEPT]
    temperature: float


class Row:
    """A conversation that is being written, in one row of the batch."""

    def __init__(self, begins: Sequence[int], answering: bool, temperature: float) -> None:
        self.tokens, self.marks = list(begins), [0] * len(begins)
        self.forced: list[int] = []  # the template's tokens or a prompt's first, to be read before anything is drawn
        self.answering, self.temperature, self.count = answering, temperature, 0
        self.told: list[tuple[Tensor, Tensor]] = []

    def add(self, token: int, mark: int) -> None:
        self.tokens.append(token)
        self.marks.append(mark)

    def marked(self, mark: int) -> list[int]:
        return [token for token, own in zip(self.tokens, self.marks, strict=True) if own == mark]

    def example(self) -> Example:
        places = [i for i, mark in enumerate(self.marks[1:]) if mark == ANSWER]
        likeliest, logs = (torch.stack(parts) for parts in zip(*self.told, strict=True))
        return Example(torch.tensor(self.tokens), torch.tensor(places), likeliest, logs, self.temperature)


class Writer:
    """Endless examples of a family's target. ValueError for one that cannot write several texts at once."""

    def __init__(self, family: Family, prompts: Sequence[str] = (), rows: int = 64, seed: int = 0) -> None:
        if not isinstance(family.target, Transformer):
            raise ValueError("drafters are trained for models of our own decoder; transformers runs this one")
        self.family, self.model, self.rows = family, family.target, rows
        self.dice, self.noise = random.Random(seed), torch.Generator().manual_seed(seed)
        around = family.chat
        before = with_controls(around.before, family.tokenizer) if around else list(family.prefix)
        self.after = with_controls(around.after, family.tokenizer) if around else []
        self.before = before or [min(family.end_tokens, default=0)]
        self.asks = not prompts and around is not None  # the target writes the prompts, too
        given = [family.encode(prompt)[-LONGEST_PROMPT - len(before) - len(self.after) :] for prompt in prompts]
        lines = (paths.ASSETS / "openings.txt").read_text(encoding="utf-8").splitlines()
        self.openings = [family.tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
        measured = json.loads((paths.ASSETS / "questions.json").read_text(encoding="utf-8"))
        self.seen = {text.lower() for part in measured.values() for half in part.values() for text in half}
        # Greedy answers once, since they stay the same.
        self.given = chain(((prompt, 0.0) for prompt in given), cycle((prompt, TEMPERATURE) for prompt in given))
        self.shared = 0 if prompts else len(self.before) - 1  # entries of the cache that all conversations begin with

    def begin(self) -> Row:
        if self.asks:
            row = Row(self.before, False, 0.0 if self.dice.random() < 0.5 else TEMPERATURE)
            if self.dice.random() < OPENED:
                row.forced = list(self.dice.choice(self.openings))
            return row
        if not (following := next(self.given, None)):
            return Row(self.before, True, 1.0)  # a text that begins anywhere
        prompt, temperature = following
        row = Row(prompt[:1], True, temperature)
        row.forced = prompt[1:]
        return row

    @torch.inference_mode()
    def examples(self) -> Iterator[Example | None]:
        """None for what is not kept."""
        longest = len(self.before) + LONGEST_PROMPT + len(self.after) + LONGEST_ANSWER + 1
        cache = batched.BatchCache(self.model, self.rows, min(longest, self.model.context))
        for token in self.before[: self.shared]:
            batched.states(self.model, [[token]] * self.rows, cache)
        rows = [self.begin() for _ in range(self.rows)]
        while True:
            last = [[row.tokens[-1]] for row in rows]
            states = self.model.rms_normalise(batched.states(self.model, last, cache)[:, 0])
            temperatures = [row.temperature if row.answering else 1.0 for row in rows]
            drawn, likeliest, logs = self.draw(states, temperatures)
            for i, row in enumerate(rows):
                if row.forced:
                    row.add(row.forced.pop(0), 0 if row.answering else PROMPT)
                    continue
                if row.answering:
                    row.told.append((likeliest[i], logs[i]))
                ended = self.write(row, drawn[i])
                if ended is None and len(row.tokens) < cache.capacity:
                    continue
                yield row.example() if ended else None
                rows[i] = self.begin()
                cache.lengths[i] = self.shared

    def write(self, row: Row, token: int) -> bool | None:
        """The next token of a row; whether the conversation is good, where it ends."""
        end = token in self.family.end_tokens
        row.count += 1
        row.add(token, ANSWER if row.answering else PROMPT)
        if row.answering:
            if end or row.count == LONGEST_ANSWER:
                return is_varied(row.marked(ANSWER))
            return None
        if not end:
            return False if row.count == LONGEST_PROMPT else None
        prompt = row.marked(PROMPT)[:-1]
        if token != self.after[0] or not self.is_new(prompt):
            return False
        row.answering, row.count, row.forced = True, 0, self.after[1:]
        return None

    def is_new(self, prompt: Sequence[int]) -> bool:
        """Whether it reads like a prompt, was not written before, and is none that drafters are measured with."""
        text = self.family.tokenizer.decode(list(prompt), skip_special_tokens=False).strip()
        readable = all(character.isprintable() or character == "\n" for character in text) and "\ufffd" not in text
        if len(prompt) < SHORTEST or not readable or not is_varied(prompt) or text.lower() in self.seen:
            return False
        self.seen.add(text.lower())
        return True

    def draw(self, x: Tensor, temperatures: Sequence[float]) -> tuple[list[int], Tensor, Tensor]:
        """A token of each row, and the likeliest with the logarithms of their chances.  # [rows, hidden]"""
        scores = self.model.logits_of(x)
        logs, likeliest = scores.float().log_softmax(-1).topk(min(KEPT, scores.shape[1]))
        scores = scores.gather(1, likeliest).float()
        chances = ((scores - scores[:, :1]) / torch.tensor(temperatures).clamp_min(1e-4)[:, None]).softmax(-1)
        chances = chances.where(chances.cumsum(-1) - chances < TOP_P, 0.0)
        drawn = likeliest.gather(1, chances.multinomial(1, generator=self.noise))
        return drawn[:, 0].tolist(), likeliest.int(), logs.half()


def padded(examples: Sequence[Example]) -> Tensor:
    """Their tokens, with zeros after the shorter ones.  # [rows, n]"""
    longest = max(len(example.tokens) for example in examples)
    return torch.stack([F.pad(example.tokens, (0, longest - len(example.tokens))) for example in examples])


def likely(examples: Sequence[Example], size: int, most: int) -> Tensor:
    """The tokens that the target expects most often, in order.  # ids below `size`"""
    expected = torch.zeros(size)
    for example in examples:
        expected.index_add_(0, example.likeliest.flatten().long(), example.logs.float().exp().flatten())
        expected.index_add_(0, example.tokens, torch.ones(len(example.tokens)))
    return expected.topk(min(most, size)).indices.sort().values


def is_varied(tokens: Sequence[int]) -> bool:
    return len(tokens) < 11 or repetition(tokens, 4) <= 1.0 - DIFFERENT


def save(examples: Sequence[Example], path: Path) -> None:
    """In one file, at once or not at all."""
    names = ("tokens", "places", "likeliest", "logs")
    parts = {name: torch.cat([getattr(example, name) for example in examples]) for name in names}
    parts["lengths"] = torch.tensor([[len(example.tokens), len(example.places)] for example in examples])
    parts["temperatures"] = torch.tensor([example.temperature for example in examples])
    save_file({name: part.int() if part.dtype == torch.int64 else part for name, part in parts.items()}, f"{path}.new")
    Path(f"{path}.new").replace(path)


def load(path: Path) -> list[Example]:
    """ValueError for a file that holds no examples."""
    try:
        parts = load_file(path)
        lengths, answers = (column.tolist() for column in parts["lengths"].unbind(1))
        split = {name: parts[name].split(answers) for name in ("places", "likeliest", "logs")}
        return [
            Example(tokens.long(), places.long(), likeliest, logs, temperature)
            for tokens, places, likeliest, logs, temperature in zip(
                parts["tokens"].split(lengths), *split.values(), parts["temperatures"].tolist(), strict=True
            )
        ]
    except (KeyError, RuntimeError, ValueError, SafetensorError) as error:
        raise ValueError(f"{path.name} holds no examples; delete it") from error
