"""A target's own copy in fewer bits, to draft with (ML-SpecQD, Georganas et al. 2025, arXiv 2503.13565).

Nothing is trained: the copy reads a fraction of the bytes, guesses nearly as the target does, and whatever rounding
changes, verification takes back. Worth it where a step's time is that of reading weights.
"""

from __future__ import annotations

import threading
from functools import cached_property

import torch

from . import gguf_header, native
from .grouped import CODES, FILE
from .transformer import Transformer

MORE = 1.5  # bytes a weight while it is made, at most


class QuantisedCopy:
    """A target in a GGUF file's own codes, or in 8 bits. It takes memory of its own, so the first run makes it."""

    def __init__(self, target: Transformer) -> None:
        self.target, self.parameters = target, target.parameters
        self._lock = threading.Lock()

    @staticmethod
    def pays(target: Transformer) -> bool:
        """Whether that target has finer numbers, and codes are multiplied here faster than those."""
        return target.source is not None and target.stored not in CODES and native.runs_on(target.device)

    def model(self) -> Transformer:
        with self._lock:
            return self._model

    @cached_property
    def _model(self) -> Transformer:
        source = self.target.source
        assert source is not None
        try:
            copy = Transformer.load(source, stored=FILE if gguf_header.is_file(source) else torch.int8)
        except ValueError:  # codes of other kinds; whatever else is wrong was wrong with the target
            copy = Transformer.load(source, stored=torch.int8)
        copy.cut_vocabulary(self.target.vocabulary)
        if copy.embedding.dtype == self.target.embedding.dtype:
            copy.embedding = self.target.embedding  # looked up, never multiplied: one is enough
        return copy
