"""Let a target write the texts from which its drafters learn: prompts and answers, many at once.

Unless the caller passes prompts, the target writes them after the header of a user's turn, as in Magpie (Xu et al.,
arXiv 2406.08464). Without a chat template, it continues the caller's prompts, or writes without a prompt.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .. import paths
from ..families.zoo import Family
from ..figures import machine
from ..figures.stats import repetition
from ..models.transformer import Transformer
from .examples import Example
from .target_pass import hidden_states, new_cache

ANSWER_TEMPERATURE = 0.8  # of sampled answers; prompts, and texts without a prompt, are drawn at temperature 1
LEAST_RATIO = 0.04  # min-p, applied after the temperature
MIN_PROMPT = 3  # tokens, as for the three limits below
MAX_PROMPT = 48
MAX_GIVEN_PROMPT = 256  # for a prompt that the caller passes; its last tokens are used
MAX_ANSWER = 176
SHARE_OPENED = 0.8  # share of the target's prompts that begin with words from openings.txt
MAX_REPETITION = 0.45  # a larger share of repeated 4-grams counts as a loop
CHECK_EVERY = 16  # steps. Ended rows are counted only this often, because counting waits for the GPU
MAX_ROWS = {"cpu": 64, "cuda": 8_192}
SHARE_OF_MEMORY = 0.4  # share of the free memory for the cache and logits of all rows

Stop = Callable[[int], bool]  # called with the number of tokens in answers that are not finished


class Writer:
    def __init__(self, family: Family, prompts: Sequence[str] = (), rows: int | None = None, seed: int = 0) -> None:
        """Prepare to write `rows` texts at once; by default as many as fit into memory."""
        assert isinstance(family.target, Transformer)
        self.family, self.target = family, family.target
        self.rng = random.Random(seed)
        self.noise = torch.Generator(self.target.device).manual_seed(seed)
        self.before, self.after = tokens_around(family)
        self.prompts = [self.without_header(family.encode(prompt))[-MAX_GIVEN_PROMPT:] for prompt in prompts]
        longest = max(map(len, self.prompts), default=MAX_PROMPT)
        self.rows = rows or rows_that_fit(self.target, len(self.before) + longest + len(self.after))
        self.writes_prompts = not prompts and bool(self.after)
        lines = (paths.ASSETS / "openings.txt").read_text(encoding="utf-8").splitlines()
        self.openings = [family.tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
        questions = json.loads((paths.ASSETS / "questions.json").read_text(encoding="utf-8"))
        # Prompts that were written before, or with which drafters are measured.
        self.used = {text.lower() for lists in questions.values() for texts in lists.values() for text in texts}
        self.dropped = Counter[str]()  # why prompts and answers were not used

    def without_header(self, tokens: list[int]) -> list[int]:
        count = len(self.before)
        return tokens[count:] if tokens[:count] == self.before else tokens

    def texts(self, stop: Stop) -> Iterator[Example]:
        """Yield texts as they end, until `stop()` is true. Answers that are unfinished then are cut off."""
        for prompts, temperatures in self.requests(stop):
            if stop(0):
                break
            yield from self.answers(prompts, temperatures, stop)

    def requests(self, stop: Stop) -> Iterator[tuple[list[list[int]], list[float]]]:
        """Yield lists of prompts to answer together, with the temperatures of their answers."""
        while self.writes_prompts and not stop(0):
            if prompts := self.new_prompts(stop):
                yield prompts, [0.0, ANSWER_TEMPERATURE] * len(prompts)
        for temperature in chain([0.0], repeat(ANSWER_TEMPERATURE)) if self.prompts else ():  # greedy only once
            self.rng.shuffle(self.prompts)
            for first in range(0, len(self.prompts), self.rows):
                yield self.prompts[first : first + self.rows], [temperature] * self.rows
        while True:
            yield [[]] * self.rows, [1.0] * self.rows  # texts without a prompt

    def new_prompts(self, stop: Stop) -> list[list[int]]:
        """Let the target write prompts. Return the usable ones, with the template's tokens after each."""
        beginnings = [
            self.before + (self.rng.choice(self.openings) if self.rng.random() < SHARE_OPENED else [])
            for _ in range(self.rows)
        ]
        usable = list[list[int]]()
        for _, text in self.continued(beginnings, MAX_PROMPT, [1.0] * self.rows, lambda _: stop(0)):
            prompt = text[len(self.before) :]
            has_no_end = self.drops("prompts without an end", prompt[-1:] != self.after[:1])
            if not (has_no_end or self.drops("unusable or repeated prompts", not self.is_new(prompt[:-1]))):
                usable.append(prompt + self.after[1:])
        return usable

    def is_new(self, prompt: Sequence[int]) -> bool:
        """Return whether the prompt is readable, varied and not in `used`. If so, add it."""
        text = self.family.tokenizer.decode(list(prompt), skip_special_tokens=False).strip()
        readable = all(character.isprintable() or character == "\n" for character in text) and "\ufffd" not in text
        if len(prompt) < MIN_PROMPT or not readable or not is_varied(prompt) or text.lower() in self.used:
            return False
        self.used.add(text.lower())
        return True

    def answers(self, prompts: Sequence[Sequence[int]], temperatures: Sequence[float], stop: Stop) -> Iterator[Example]:
        """Let the target answer. Yield the texts whose answers are long enough and do not loop."""
        beginnings = [[*self.before, *prompt] for prompt in prompts]
        for row, tokens in self.continued(beginnings, MAX_ANSWER, temperatures[: len(beginnings)], stop):
            text = Example(tokens[len(self.before) :], len(prompts[row]))
            answer = text.tokens[text.start :]
            if not self.drops("answers of a word", len(answer) < 3) and not self.drops("loops", not is_varied(answer)):
                yield text

    @torch.inference_mode()
    def continued(
        self, texts: Sequence[Sequence[int]], most: int, temperatures: Sequence[float], stop: Stop
    ) -> Iterator[tuple[int, list[int]]]:
        """Let the target continue each text by up to `most` tokens, until an end token. Yield (index, text) at ends."""
        target, device, end_tokens = self.target, self.target.device, self.family.end_tokens
        lengths = [len(text) for text in texts]
        first, capacity = min(lengths), min(max(lengths) + most, target.context)
        padded = pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        rows = F.pad(padded, (0, capacity - max(lengths))).to(device)
        ends = torch.tensor(sorted(end_tokens), dtype=torch.long, device=device)
        # `active` holds the rows' indices in `texts` (-1: yielded already), and `starts` their initial lengths.
        active, starts = torch.arange(len(texts), device=device), torch.tensor(lengths, device=device)
        temps = torch.tensor(temperatures, device=device)[:, None]
        ended = torch.zeros(len(texts), dtype=torch.bool, device=device)
        cache = new_cache(target, len(texts), capacity)
        states = hidden_states(target, rows[:, :first], cache=cache)[0]
        for position in range(first, capacity):
            drawn = draw_tokens(target.logits(states[:, -1]), temps, self.noise)
            beyond_text = position >= starts
            rows[:, position] = torch.where(beyond_text, drawn, rows[:, position])
            ended |= beyond_text & (torch.isin(drawn, ends) | (position + 1 >= starts + most))
            is_last = position + 1 == capacity
            if position % CHECK_EVERY == 0 or is_last:
                unfinished = ~ended
                is_last |= stop(int((position + 1 - starts[unfinished]).clamp_min(0).sum())) or bool(ended.all())
                for_now = (active >= 0) & (ended | is_last)
                for i, tokens in zip(active[for_now].tolist(), rows[for_now].tolist(), strict=True):
                    length = lengths[i]
                    last = min(position + 1, length + most)
                    end = next((n + 1 for n in range(length, last) if tokens[n] in end_tokens), last)
                    yield i, tokens[: max(end, length)]
                if is_last:
                    return
                active[for_now] = -1
                if 2 * int(unfinished.sum()) <= len(active):
                    active, rows, starts, temps, ended = (x[unfinished] for x in (active, rows, starts, temps, ended))
                    cache = cache[:, :, unfinished]
            states = hidden_states(target, rows[:, position : position + 1], cache=cache, start=position)[0]

    def drops(self, fault: str, is_there: bool) -> bool:
        self.dropped[fault] += is_there
        return is_there

    def summary(self) -> str:
        return ", ".join(f"{count:,} {fault}" for fault, count in self.dropped.most_common() if count) or "none"


def tokens_around(family: Family) -> tuple[list[int], list[int]]:
    """Return the tokens before each prompt (at least one), and after it (none without a template)."""
    before, after = family.chat.around(family.tokenizer) if family.chat else (list(family.prefix), [])
    return before or [min(family.end_tokens, default=0)], after


def rows_that_fit(target: Transformer, prompt_tokens: int) -> int:
    """Return how many texts fit into memory at once. `prompt_tokens` come before each answer."""
    free = machine.memory_of(target.device)
    row = new_cache(target, 1, prompt_tokens + MAX_ANSWER).nbytes + 4 * target.vocabulary
    return max(1, min(MAX_ROWS[torch.device(target.device).type], int(SHARE_OF_MEMORY * free / row)))


def draw_tokens(logits: Tensor, temperatures: Tensor, noise: torch.Generator) -> Tensor:
    """Draw a likely token for each row by the Gumbel-max trick.  # [rows, V] -> [rows]"""
    scores = logits.float()
    scores = scores.sub_(scores.amax(-1, keepdim=True)).div_(temperatures.clamp_min(1e-4))
    scores.masked_fill_(scores < math.log(LEAST_RATIO), float("-inf"))
    exponential = torch.empty_like(scores).exponential_(generator=noise).clamp_min_(1e-30)
    return scores.sub_(exponential.log_()).argmax(-1)


def is_varied(tokens: Sequence[int]) -> bool:
    return len(tokens) < 11 or repetition(tokens, 4) <= MAX_REPETITION
