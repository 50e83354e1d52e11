"""Decoding under a grammar: at each place only tokens that some text of the grammar goes on with (guided decoding).

The law to be met is plain decoding's under the same grammar: the target's row at each place without the tokens that the
grammar forbids there, normalised. Speculative decoding meets it if that very law is judged: the mask is laid on p, at
each place by the state of that place's own prefix, *before* the ratio and the residual; and q is the law that a draft
was drawn from. So a drafter that draws from its masked law reports the masked one. One that is not masked and says so
is as lossless: what the grammar forbids has p = 0 and is rejected, which only costs time.

The mask comes before temperature, top-k and top-p, so that these choose among what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from .expression import Automaton, compiled, DEAD, START
from .types import Proposal, Said


class Grammar:
    """An expression's automaton, stepped by tokens: a state machine over token ids.

    Tokens without bytes are forbidden, but for those that end the text: they are allowed where the text may end.
    Every state that can be reached has a way to the end *in tokens*, so no text runs into a place where nothing is
    allowed.
    """

    start = START

    def __init__(self, automaton: Automaton, spelled: Sequence[bytes], end_tokens: Collection[int] = ()) -> None:
        """`spelled` has the bytes of every token. ValueError where these tokens spell no text of the grammar."""
        self._accepting, self._ends = automaton.accepting, torch.tensor(sorted(end_tokens), dtype=torch.long)
        self._over = len(automaton.table)  # the state after an end token
        self._table = torch.tensor([*automaton.table, [DEAD] * 256])  # [states, 256]
        # Tokens from the longest to the shortest, column by column: a state's row is found in a few steps.
        order = sorted((token for token, data in enumerate(spelled) if data), key=lambda token: -len(spelled[token]))
        self._order, self._vocabulary = torch.tensor(order, dtype=torch.long), len(spelled)
        deepest = len(spelled[order[0]]) if order else 0
        columns = [[spelled[token][i] for token in order if len(spelled[token]) > i] for i in range(deepest)]
        self._columns = [torch.tensor(column) for column in columns]
        self._rows: dict[int, Tensor] = {}
        self._done: dict[int, bool] = {}
        self._alive: set[int] | None = None  # None: all of them
        alone = {data[0] for data in spelled if len(data) == 1}
        if not {byte for row in automaton.table for byte, after in enumerate(row) if after} <= alone:
            self._alive = self._with_an_end()
        if self._alive is not None and START not in self._alive:
            raise ValueError(Said("the model's tokens spell no text of the grammar"))

    @classmethod
    def of(
        cls, expression: str, token_bytes: Callable[[int], bytes], vocabulary: int, end_tokens: Collection[int] = ()
    ) -> Grammar:
        """From a regular expression (`expression.py`). ValueError, in one sentence, where it cannot be used."""
        return cls(compiled(expression), [token_bytes(token) for token in range(vocabulary)], end_tokens)

    def allowed(self, state: int) -> Tensor:
        """Which tokens may come next; none where the text is over.  # [V], bool"""
        return self._row(state) != DEAD

    def next(self, state: int, token: int) -> int:
        """The state after `token`; DEAD where it is forbidden."""
        return int(self._row(state)[token])

    def is_done(self, state: int) -> bool:
        """Nothing may follow but an end token: the text is complete."""
        if state not in self._done:
            row = self._row(state)
            self._done[state] = not bool(((row != DEAD) & (row != self._over)).any())
        return self._done[state]

    def _row(self, state: int) -> Tensor:
        """The state after each token.  # [V]"""
        if state not in self._rows:
            self._rows[state] = self._computed(state)
        return self._rows[state]

    def _computed(self, state: int) -> Tensor:
        after = torch.full((len(self._order),), state)
        for column in self._columns:
            after[: len(column)] = self._table[after[: len(column)], column]
        row = torch.full((self._vocabulary,), DEAD, dtype=torch.int16)
        row[self._order] = after.short()
        if self._alive is not None:
            row[torch.isin(row, torch.tensor(sorted(self._alive), dtype=row.dtype), invert=True)] = DEAD
        if state in self._accepting:
            row[self._ends] = self._over
        return row

    def _with_an_end(self) -> set[int]:
        """The states from which tokens lead to an end, where not every byte is a token by itself."""
        after = {state: {*self._computed(state).tolist()} for state in range(START, self._over)}
        alive, before = {*self._accepting}, -1
        while len(alive) > before:
            before = len(alive)
            alive |= {state for state, ways in after.items() if ways & alive}
        return alive


class Guide:
    """Where the text of one run stands in its grammar. The loop and its drafter share it; only what is kept moves it.

    A draft's states are found anew from the text's, so a rejection leaves nothing to roll back.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.state = grammar, grammar.start

    @property
    def done(self) -> bool:
        return self.grammar.is_done(self.state)

    def take(self, token: int) -> None:
        """A token joined the text."""
        self.state = self.grammar.next(self.state, token)

    def drafting(self, logits: Tensor, drafted: Sequence[int]) -> Tensor | None:
        """A drafter's logits after the text and `drafted`, -inf where forbidden; None where nothing is left.

        # [1, V]
        """
        state = self.state
        for token in drafted:
            state = self.grammar.next(state, token)
        if self.grammar.is_done(state):
            return None
        masked = self._masked(logits, state)
        return masked if is_a_law(masked) else None

    def judging(self, logits: Tensor, proposal: Proposal) -> Tensor:
        """The target's logits after the text and after each node of a draft, each masked by its own prefix.

        A row that no text reaches, after a forbidden token or the end, stays as it is.  # [n + 1, V]
        """
        states = [self.state]
        for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
            states.append(self.grammar.next(states[parent + 1], token))
        rows = torch.stack([self._masked(row, state) for row, state in zip(logits, states, strict=True)])
        if not is_a_law(rows):
            raise ValueError("the model gives no probability to anything that the grammar allows")
        return rows

    def _masked(self, logits: Tensor, state: int) -> Tensor:
        if self.grammar.is_done(state):
            return logits
        return logits.masked_fill(~self.grammar.allowed(state).to(logits.device), float("-inf"))


def is_a_law(logits: Tensor) -> bool:
    """Every row has a token that is not excluded.  # [n, V]"""
    return float(logits.amax(-1).min()) > float("-inf")
