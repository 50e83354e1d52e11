"""Texts with the target's own states at every token, computed once, then read from disk.

All drafters that imitate the target learn from the same lessons, for many rounds. So the target's
passes, the most expensive part of distillation, are paid for once. The last state times the output matrix gives its
logits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import LlamaForCausalLM

from .data import TokenStreams

LENGTH, OWN_LENGTH = 320, 144  # the target's own writing is as long as what people let it write
TEMPERATURES = (0.3, 0.6, 0.8, 1.0)  # of that writing


class Part:
    """One domain: `ids` [rows, length] and, for each tap, the target's states [rows, length, hidden] in bf16.

    The tap `last` is the state after the final norm, an int i the input of layer i.
    """

    def __init__(self, folder: Path) -> None:
        self.ids = torch.from_numpy(np.load(folder / "ids.npy").astype(np.int64))
        self.states: dict[int | str, Tensor] = {}
        for path in folder.glob("*.bf16"):
            values = torch.from_file(str(path), shared=True, size=path.stat().st_size // 2, dtype=torch.bfloat16)
            self.states["last" if path.stem == "last" else int(path.stem)] = values.view(*self.ids.shape, -1)


class Lessons:
    """Parts by domain, with "own"; each batch comes from one part, chosen in the shares of `mixture`."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.parts = {path.parent.name: Part(path.parent) for path in sorted(folder.glob("*/ids.npy"))}
        self.mixture = {name: 1 / len(self.parts) for name in self.parts}
        self.wanted: tuple[int | str, ...] = ("last",)
        self.random = np.random.default_rng(seed)

    def batch(self, rows: int, length: int) -> tuple[Tensor, ...]:
        """About rows · length tokens: ids [n, l], then each wanted state [n, l, hidden]."""
        part = self.parts[self.random.choice(list(self.mixture), p=list(self.mixture.values()))]
        length = min(length, part.ids.shape[1])
        chosen = torch.from_numpy(self.random.integers(len(part.ids), size=max(1, rows * LENGTH // length)))
        return part.ids[chosen, :length], *(part.states[name][chosen, :length] for name in self.wanted)

    def state(self) -> dict[str, Any]:
        return dict(self.random.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        self.random.bit_generator.state = state


def prepare(
    folder: Path, teacher: LlamaForCausalLM, streams: Callable[[], TokenStreams], tokens: dict[str, int],
    taps: tuple[int, ...], seed: int, length: int = LENGTH,
) -> Lessons:  # fmt: skip
    """`tokens` of every domain and, under "own", of the target's own writing.

    Existing parts are kept; if all exist, `streams` is not called.
    """
    for name, count in tokens.items():
        part = folder / name
        if (part / "ids.npy").exists():
            continue
        part.mkdir(parents=True, exist_ok=True)
        if name == "own":
            short = min(length, OWN_LENGTH)
            ids = own_writing(teacher, streams(), max(1, count // short), short, seed)
        else:
            ids = streams().only(name).batch(max(1, count // length), length - 1)[0].numpy().astype(np.uint16)
        study(part, teacher, ids, taps)
        np.save(part / "ids.npy", ids)
    return Lessons(folder, seed)


@torch.inference_mode()
def study(folder: Path, teacher: LlamaForCausalLM, ids: np.ndarray, taps: tuple[int, ...], rows: int = 4) -> None:
    """The target reads `ids`; its states go to disk, one file a tap."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context((folder / f"{name}.bf16").open("wb")) for name in ("last", *taps)]
        for start in tqdm(range(0, len(ids), rows), desc="target reads", unit="batch", mininterval=5):
            batch = torch.from_numpy(ids[start : start + rows].astype(np.int64)).to(teacher.device)
            out = teacher.model(input_ids=batch, use_cache=False, output_hidden_states=True)
            for file, states in zip(files, (out.last_hidden_state, *(out.hidden_states[i] for i in taps)), strict=True):
                file.write(states.bfloat16().cpu().contiguous().view(torch.int16).numpy().tobytes())


@torch.inference_mode()
def own_writing(
    teacher: LlamaForCausalLM, streams: TokenStreams, rows: int, length: int, seed: int, at_once: int = 128
) -> np.ndarray:
    """What the target writes itself, from short beginnings.  # [rows, length]"""
    torch.manual_seed(seed)
    written: list[np.ndarray] = []
    for batch in tqdm(range(-(-rows // at_once)), desc="target writes", unit="batch"):
        (starts,) = streams.batch(min(at_once, rows - batch * at_once), int(streams.random.integers(6, 30)))
        starts[:, 0] = teacher.config.bos_token_id  # every prompt of the app begins with it
        out = teacher.generate(
            starts.to(teacher.device), attention_mask=torch.ones_like(starts), do_sample=True, top_k=0,
            temperature=TEMPERATURES[batch % len(TEMPERATURES)], max_length=length, min_length=length, pad_token_id=0,
        )  # fmt: skip
        written.append(out.cpu().numpy().astype(np.uint16))
    return np.concatenate(written)
