"""The tokenizer, the token streams and the batches that every training stage shares."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import decoders, models, pre_tokenizers, Tokenizer, trainers
from tqdm import tqdm
from transformers import PreTrainedTokenizerFast

from .corpus import DOMAINS, Split

END = "<|endoftext|>"
VOCABULARY = 4096
MIXTURE = {"story": 0.42, "code": 0.46, "facts": 0.12}
EDITING = {"edits": 0.8, "code": 0.12, "story": 0.05, "facts": 0.03}  # of the target that is tuned on edits


def train_tokenizer(corpus: dict[str, Split], out: Path) -> PreTrainedTokenizerFast:
    """Byte-level BPE with digits apart, saved in the Hub's format."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    # Facts repeat a few words endlessly and would claim merges that the other domains need.
    shares = {"story": 1.0, "code": 1.0, "facts": 0.05}
    texts = (text for name in DOMAINS for text in corpus[name].train[: int(shares[name] * len(corpus[name].train))])
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, clean_up_tokenization_spaces=False
    )
    fast.save_pretrained(out)
    return fast


class TokenStreams:
    """Every domain as one long stream of token ids, sampled as random windows."""

    def __init__(self, corpus: dict[str, Split], tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self.tokenizer = tokenizer.backend_tokenizer
        self.train: dict[str, np.ndarray] = {}
        self.held_out: dict[str, tuple[np.ndarray, int]] = {}
        self.starts: dict[str, np.ndarray] = {}  # of documents, in domains whose windows begin with one
        for name in tqdm(corpus, desc="encoding", unit="domain"):
            self.add(name, corpus[name])
        self.mixture = MIXTURE
        self.random = np.random.default_rng(seed)

    def add(self, name: str, split: Split, whole: bool = False) -> None:
        """One more domain; `whole` where a document says first what it then does, so that none begins in its middle."""
        self.train[name] = encode(self.tokenizer, split.train)
        self.held_out[name] = (encode(self.tokenizer, split.held_out), byte_count(split.held_out))
        if whole:
            self.starts[name] = np.flatnonzero(self.train[name] == self.tokenizer.token_to_id(END))

    def mixed(self, mixture: dict[str, float]) -> TokenStreams:
        """The same streams in other shares."""
        streams = copy.copy(self)
        streams.mixture = mixture
        return streams

    def only(self, name: str) -> TokenStreams:
        """The stream of one domain."""
        return self.mixed({name: 1.0})

    def batch(self, rows: int, length: int) -> tuple[torch.Tensor]:
        """`rows` windows of `length` + 1 ids, so that inputs and next tokens both fit.  # [rows, length + 1]"""
        names = self.random.choice(list(self.mixture), size=rows, p=list(self.mixture.values()))
        windows = []
        for name in names:
            stream = self.train[name]
            if len(stream) <= length + 1:
                stream = np.tile(stream, (length + 1) // len(stream) + 1)
            last = len(stream) - length - 1
            starts = self.starts.get(name)
            start = int(self.random.integers(last) if starts is None else self.random.choice(starts[starts <= last]))
            windows.append(stream[start : start + length + 1])
        return (torch.from_numpy(np.stack(windows).astype(np.int64)),)

    def state(self) -> dict[str, Any]:
        return dict(self.random.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        self.random.bit_generator.state = state


def encode(tokenizer: Tokenizer, documents: list[str]) -> np.ndarray:
    end = tokenizer.token_to_id(END)
    ids = [[end, *encoding.ids] for encoding in tokenizer.encode_batch_fast(documents, add_special_tokens=False)]
    return np.concatenate([np.asarray(row, dtype=np.uint16) for row in ids])


def byte_count(documents: list[str]) -> int:
    return sum(len(text.encode()) for text in documents)


@torch.inference_mode()
def bits_per_byte(model: torch.nn.Module, streams: TokenStreams, length: int = 512) -> dict[str, float]:
    """Held-out loss per domain, in bits per byte of text."""
    device = next(model.parameters()).device
    results = {}
    for name, (stream, size) in streams.held_out.items():
        nats = 0.0
        for window in windows(stream, length):
            ids = window[None].to(device)
            logits = model(ids[:, :-1]).logits[0].float()
            nats += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        results[name] = round(nats / math.log(2) / size, 4)
    return results


def windows(stream: np.ndarray, length: int) -> Iterator[torch.Tensor]:
    """Consecutive windows that overlap by one id, so that every token but the first is predicted once."""
    for start in range(0, len(stream) - 1, length):
        yield torch.from_numpy(stream[start : start + length + 1].astype(np.int64))
