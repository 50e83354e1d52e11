"""Train the tokenizer, and make the batches of tokens from which the family's models learn."""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import decoders, models, pre_tokenizers, Tokenizer, trainers
from transformers import PreTrainedTokenizerFast

from .corpus import Split

END = "<|endoftext|>"
VOCABULARY = 4096
MIXTURE = {"story": 0.42, "code": 0.46, "facts": 0.12}
# Heads must predict the target, so they learn mostly from texts that the target wrote ("own").
DRAFT_MIXTURE = {"story": 0.16, "code": 0.16, "facts": 0.08, "own": 0.6}


def train_tokenizer(corpus: dict[str, Split], out: Path) -> None:
    """Train a byte-level BPE tokenizer with single digits, and save it in the Hub's format."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    # Most facts are left out: they repeat a few words, which would take merges that the other domains need.
    shares = {"story": 1.0, "code": 1.0, "facts": 0.05}
    texts = (text for name in shares for text in corpus[name].train[: int(shares[name] * len(corpus[name].train))])
    tokenizer.train_from_iterator(texts, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, clean_up_tokenization_spaces=False
    ).save_pretrained(out)


def encode(tokenizer: PreTrainedTokenizerFast, documents: list[str]) -> np.ndarray:
    """Encode documents as one stream of ids. END, which is also the BOS token, stands before each document."""
    backend = tokenizer.backend_tokenizer
    end = backend.token_to_id(END)
    ids = [[end, *encoding.ids] for encoding in backend.encode_batch_fast(documents, add_special_tokens=False)]
    return np.concatenate([np.asarray(row, dtype=np.uint16) for row in ids])


def window(stream: np.ndarray, length: int, rng: random.Random) -> np.ndarray:
    """Return `length` successive ids from a random place of the stream. A shorter stream is repeated."""
    if len(stream) <= length:
        stream = np.tile(stream, length // len(stream) + 1)
    start = rng.randrange(len(stream) - length + 1)
    return stream[start : start + length]


def batches(
    streams: dict[str, np.ndarray], mixture: dict[str, float], rows: int, length: int, rng: random.Random, device: str
) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield batches of windows [rows, length] without end, each with its number of tokens."""
    while True:
        names = rng.choices(list(mixture), list(mixture.values()), k=rows)
        ids = np.stack([window(streams[name], length, rng) for name in names]).astype(np.int64)
        yield torch.from_numpy(ids).to(device), ids.size


@torch.inference_mode()
def bits_per_byte(
    model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, documents: list[str], length: int = 512
) -> float:
    """Return the loss on held-out documents in bits per byte. Windows overlap by one id, so that all tokens but the
    first are predicted."""
    stream, nats = torch.from_numpy(encode(tokenizer, documents).astype(np.int64)), 0.0
    for start in range(0, len(stream) - 1, length):
        ids = stream[None, start : start + length + 1].to(next(model.parameters()).device)
        logits = model(ids[:, :-1]).logits[0].float()
        nats += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
    return round(nats / math.log(2) / sum(len(text.encode()) for text in documents), 4)
