"""Decoding under a grammar: at each place only tokens that some text of the grammar goes on with (guided decoding).

A grammar is a regular expression that the whole new text has to match, or a JSON schema, which begins with a brace.
`llguidance` reads both, and says which tokens may come.

The distribution to be met is plain decoding's under the same grammar: the target's row at each place without the tokens
that the grammar forbids there, normalised. Speculative decoding meets it if that very distribution is judged: the mask
is laid on p, at each place by the state of that place's own prefix, *before* the ratio and the residual; and q is the
distribution that a draft was drawn from. So a drafter that draws from its masked one reports the masked one. One that
is not masked and says so is as lossless: what the grammar forbids has p = 0 and is rejected, which only costs time.

The mask comes before temperature, top-k and top-p, so that these choose among what is allowed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from . import children
from .types import is_schema, Proposal, TranslatableText

if TYPE_CHECKING:  # the page audits texts, and loads neither
    from llguidance import LLMatcher, LLTokenizer
    from torch import Tensor

LIMITS = {
    "initial_lexer_fuel": 1_000_000,  # 20 ms of building
    "step_lexer_fuel": 200_000,  # 14 ms of a mask
    "step_max_items": 50_000,  # 3 ms of a mask
    "max_items_in_row": 2_000,
    "max_lexer_states": 50_000,  # of 1 to 2 kB each
    "max_grammar_size": 100_000,
    "precompute_large_lexemes": False,
    "verbose_errors": False,
}
OPTIONS = '%llguidance {"no_forcing": true}'  # a forced text may be cut into any tokens, as the model likes
WRITTEN = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}  # as `json.dumps` writes
TEXT_BYTES = {*range(0xC0), *range(0xC2, 0xF5)}  # that UTF-8 uses
CPU_SECONDS, PATIENCE = 0.4, 30.0  # of a child that tries a grammar: the processor's, and the clock's
MAX_MASKS = 2**24  # bytes of masks that a grammar keeps
FEW_TOKENS, MAX_LOOKAHEAD = 1_000, 1_000
_turn = threading.Lock()  # of the children, each of which may take much memory
if hasattr(os, "register_at_fork"):  # a fork (`lanes/zero.py`) must not inherit it locked
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)


class Words:
    """The bytes of a tokenizer's tokens as llguidance reads them: a second for 256,000, so once for a tokenizer."""

    def __init__(self, token_bytes: Callable[[int], bytes], vocabulary: int) -> None:
        spelled = [token_bytes(token) for token in range(vocabulary)]
        self.count = vocabulary
        self.complete = {data[0] for data in spelled if len(data) == 1} >= TEXT_BYTES
        # No text holds a byte 255, which marks control tokens there. One more token stands for the end of the text.
        self.tokenizer = tokenizer([b"" if 255 in data else data for data in spelled])


class Grammar:
    """Which tokens may come after which. Compiled once, for all lanes of a run.

    Tokens without bytes are forbidden, but for those that end the text: they are allowed where the text may end.

    Where every byte is a token by itself, every text that is allowed can be completed. Other vocabularies, toys say,
    know dead ends: bytes that would complete the text, but no tokens. Up to `FEW_TOKENS` tokens, these are looked for
    and forbidden; a larger vocabulary that runs into one fails there.
    """

    def __init__(self, grammar: str, words: Words, end_tokens: Collection[int] = ()) -> None:
        """ValueError, in one sentence, for what cannot be read or matches no text, or no text of these tokens."""
        self.words, self.ends = words, sorted(end_tokens)
        self.masks: dict[tuple[int, ...], Tensor | None] = {}
        self._root = compiled(grammar, words.tokenizer)
        self._searches = not words.complete and words.count <= FEW_TOKENS
        if self._searches and not self._ends_after(self._root):
            raise ValueError(TranslatableText("The model's tokens spell no text of the grammar."))

    @classmethod
    def of(
        cls, grammar: str, token_bytes: Callable[[int], bytes], vocabulary: int, end_tokens: Collection[int] = ()
    ) -> Grammar:
        """For a vocabulary that is used once."""
        return cls(grammar, Words(token_bytes, vocabulary), end_tokens)

    def start(self) -> LLMatcher:
        return self._root.deep_copy()

    def mask(self, matcher: LLMatcher) -> Tensor | None:
        """Which tokens may come next; None where nothing but an end may.  # [V], bool"""
        allowed, may_end = self._allowed(matcher)
        if self._searches:
            for token in allowed.nonzero().flatten().tolist():
                after = matcher.deep_copy()
                allowed[token] = after.consume_token(token) and self._ends_after(after)
        if may_end and not allowed.any():
            return None
        allowed[self.ends] = may_end
        return allowed

    def _allowed(self, matcher: LLMatcher) -> tuple[Tensor, bool]:
        """Which tokens some text goes on with, in bytes; and whether it may end.  # [V], bool"""
        import torch

        bias = torch.frombuffer(bytearray(matcher.compute_logit_bias()), dtype=torch.uint8) != 0
        allowed, may_end = bias[: self.words.count], bool(bias[self.words.count])
        if matcher.is_error():
            if not is_dead_end(matcher):
                raise ValueError(TranslatableText("The grammar is too large: its next tokens cannot be found in time."))
            allowed, may_end = torch.zeros_like(allowed), False
        allowed[self.ends] = False
        return allowed, may_end

    def _ends_after(self, matcher: LLMatcher) -> bool:
        """Whether tokens are found that lead to an end: first by going deep, then by going wide."""
        for side in (-1, 0):
            waiting = [matcher.deep_copy()]
            for _ in range(MAX_LOOKAHEAD):
                if not waiting:
                    return False
                here = waiting.pop(side)
                allowed, may_end = self._allowed(here)
                if may_end:
                    return True
                for token in allowed.nonzero().flatten().tolist():
                    after = here.deep_copy()
                    if after.consume_token(token):
                        waiting.append(after)
        return False

    def keep(self, tokens: tuple[int, ...], mask: Tensor | None) -> None:
        """The oldest masks make room."""
        while len(self.masks) >= max(64, MAX_MASKS // self.words.count):
            del self.masks[next(iter(self.masks))]
        self.masks[tokens] = mask


class Guide:
    """Where the text of one run stands in its grammar. The loop and its drafter share it; only what is kept moves it.

    A draft's masks are found from the text's place, and the way back is gone at once: a rejection leaves nothing.
    """

    def __init__(self, grammar: Grammar, tokens: Sequence[int] = ()) -> None:
        self.grammar = grammar
        self.tokens: tuple[int, ...] = ()
        self._matcher, self._read, self._left = grammar.start(), 0, False
        for token in tokens:
            self.advance(token)

    @property
    def done(self) -> bool:
        """Nothing may follow but an end token: the text is complete."""
        return self.allowed() is None

    def advance(self, token: int) -> None:
        """A token joined the text."""
        self._left = not self._goes_on((), token)
        self.tokens = (*self.tokens, token)

    def allowed(self, drafted: tuple[int, ...] = ()) -> Tensor | None:
        """Which tokens may come after the text and `drafted`; None after an end or a forbidden token.  # [V], bool"""
        tokens = self.tokens + drafted
        if tokens not in self.grammar.masks:
            self.grammar.keep(tokens, self._mask(drafted))
        return self.grammar.masks[tokens]

    def mask_draft(self, logits: Tensor, drafted: Sequence[int]) -> Tensor | None:
        """A drafter's logits after the text and `drafted`, -inf where forbidden; None where nothing is left.

        # [1, V]
        """
        allowed = self.allowed(tuple(drafted))
        if allowed is None:
            return None
        masked = logits.masked_fill(~allowed.to(logits.device), float("-inf"))
        return masked if has_choices(masked) else None

    def mask_target(self, logits: Tensor, proposal: Proposal) -> Tensor:
        """The target's logits after the text and after each node of a draft, each masked by its own prefix.

        A row that no text reaches, after a forbidden token or the end, stays as it is.  # [n + 1, V]
        """
        paths: list[tuple[int, ...]] = [()]
        for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
            paths.append((*paths[parent + 1], token))
        rows = logits.clone()
        for row, path in zip(rows, paths, strict=True):
            if (allowed := self.allowed(path)) is not None:
                row.masked_fill_(~allowed.to(row.device), float("-inf"))
        if not has_choices(rows):
            raise ValueError("the model gives no probability to anything that the grammar allows")
        return rows

    def _goes_on(self, drafted: tuple[int, ...], token: int) -> bool:
        """Whether `token` may come after the text and `drafted`, and leaves the text open."""
        before = self.allowed(drafted)
        return before is not None and token not in self.grammar.ends and bool(before[token])

    def _mask(self, drafted: tuple[int, ...]) -> Tensor | None:
        if self._left or (drafted and not self._goes_on(drafted[:-1], drafted[-1])):
            return None
        self._matcher.consume_tokens([*self.tokens[self._read :], *drafted])
        self._read = len(self.tokens)
        try:
            return self.grammar.mask(self._matcher)
        finally:
            if drafted and not self._matcher.rollback(len(drafted)):  # after a dead end there is no way back
                self._matcher, self._read = self.grammar.start(), 0


def has_choices(logits: Tensor) -> bool:
    """Every row has a token that is not excluded.  # [n, V]"""
    return float(logits.amax(-1).min()) > float("-inf")


# ---- reading ----


def tokenizer(spelled: Sequence[bytes]) -> LLTokenizer:
    """Of these tokens, and one more for the end."""
    from llguidance import LLTokenizer, TokenizerWrapper

    class Spelled:
        tokens = (*spelled, b"")
        eos_token_id, bos_token_id = len(spelled), None

        def __call__(self, text: object) -> list[int]:
            return []  # only forced tokens would need it

    return LLTokenizer(TokenizerWrapper(Spelled()))


def compiled(grammar: str, words: LLTokenizer) -> LLMatcher:
    """ValueError, in one sentence, for what cannot be read, matches no text, or is too large."""
    from llguidance import LLMatcher, LLParserLimits

    matcher = LLMatcher(words, lark(grammar), log_level=0, limits=LLParserLimits(**LIMITS))  # type: ignore[arg-type]
    if matcher.is_error():
        raise ValueError(refusal(grammar, matcher.get_error()))
    first = matcher.deep_copy()
    first.compute_bitmask()
    if is_dead_end(first):
        raise ValueError(TranslatableText("The grammar matches no text."))
    if first.is_error():
        raise ValueError(TranslatableText("The grammar is too large: its next tokens cannot be found in time."))
    return matcher


def lark(grammar: str) -> str:
    """As llguidance's own kind of grammar."""
    from llguidance import regex_to_lark

    if is_schema(grammar):
        return f"{OPTIONS}\nstart: %json {json.dumps(json.loads(grammar) | {'x-guidance': WRITTEN})}"
    return f"{OPTIONS}\nstart: /{regex_to_lark(grammar, 'dws')}/" if grammar else f'{OPTIONS}\nstart: ""'


def is_dead_end(matcher: LLMatcher) -> bool:
    return matcher.get_error().startswith("NoExtension")


def refusal(grammar: str, error: str) -> TranslatableText:
    """What llguidance says is wrong, on one line and without its copy of the grammar."""
    found = re.search(r"error: (.+)", error) or re.search(r"(?:JSON schema|\(in regex\)): (.+)", error)
    why = "".join(filter(str.isprintable, found[1] if found else error.partition("\n")[0]))[:200].rstrip(".")
    if is_schema(grammar):
        return TranslatableText("The schema cannot be used: {why}.", why=why)
    return TranslatableText("The grammar cannot be read: {why}.", why=why)


# ---- trying, in a process of its own ----


def check(grammar: str) -> None:
    """Compile it where it can do no harm: some schemas take llguidance minutes, and gigabytes, before it gives up.

    ValueError, in one sentence, for a grammar that cannot be used.
    """
    fits(grammar, "", complete=False)


@lru_cache(64)
def fits(grammar: str, text: str, complete: bool) -> bool:
    """Whether the text is one of the grammar or, if it is not `complete`, begins one. ValueError as `check` has it."""
    try:
        with _turn:
            told, refused = children.ask(__name__, [grammar, text, complete], PATIENCE)
    except ValueError:
        raise ValueError(TranslatableText("The grammar is too large: reading it takes too long.")) from None
    if refused:
        raise ValueError(TranslatableText(refused[0], **refused[1]))
    return bool(told)


def answer() -> None:
    """The child's work: one grammar and one text from its input."""
    grammar, text, complete = json.load(sys.stdin)
    if hasattr(signal, "setitimer"):  # Windows has the clock alone
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # of the processor; then it is ended
    try:
        print(json.dumps([is_fitting(grammar, text, complete), None]))
    except ValueError as error:
        said = error.args[0]
        print(json.dumps([False, [said.template, said.values]]))


def is_fitting(grammar: str, text: str, complete: bool) -> bool:
    matcher = compiled(grammar, tokenizer([bytes([byte]) for byte in range(255)]))
    data = list(text.encode())
    return matcher.try_consume_tokens(data) == len(data) and (not complete or matcher.is_accepting())


if __name__ == "__main__":
    answer()
