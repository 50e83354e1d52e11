"""Make a copy of the target in fewer bits, to draft with (ML-SpecQD, Georganas et al. 2025, arXiv 2503.13565).

Nothing is trained. The copy reads fewer bytes and predicts almost what the target does; verification rejects the
tokens that differ. The copy saves time where reading the weights takes most of a decoding step.
"""

import threading
from functools import cached_property

import torch

from . import gguf_header, native
from .grouped import CODE_TYPES, GGUF
from .transformer import Transformer

BYTES_PER_WEIGHT = 1.5  # free memory that is needed for each weight to make the copy


class QuantisedCopy:
    """A copy of the target with the codes of its GGUF file, or else in 8 bits. The first run that needs it makes it."""

    def __init__(self, target: Transformer) -> None:
        self.target, self.parameters = target, target.parameters
        self._lock = threading.Lock()

    @staticmethod
    def pays(target: Transformer) -> bool:
        """Return whether a copy can be made and is faster: if `target` is not quantised and `native.cpp` runs here."""
        return target.source is not None and target.stored not in CODE_TYPES and native.runs_on(target.device)

    def model(self) -> Transformer:
        with self._lock:
            return self._model

    @cached_property
    def _model(self) -> Transformer:
        source = self.target.source
        assert source is not None
        try:
            copy = Transformer.load(source, stored=GGUF if gguf_header.is_file(source) else torch.int8)
        except ValueError:  # `gguf.py` cannot keep this quantisation as codes, or q, k and v are quantised differently
            copy = Transformer.load(source, stored=torch.int8)
        copy.cut_vocabulary(self.target.vocabulary)
        if copy.embedding.dtype == self.target.embedding.dtype:
            copy.embedding = self.target.embedding  # share it to save memory
        return copy
