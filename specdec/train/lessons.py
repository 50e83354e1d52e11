"""Texts with the target's own states at every token, computed once and read from disk ever after.

All drafters that imitate the target learn from the same lessons, for many rounds: the target's passes, the
dearest part of distillation, are paid for once. The last state times the output matrix gives its logits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import LlamaForCausalLM

from .data import TokenStreams

LENGTH = 320
TEMPERATURES = (0.3, 0.6, 0.8, 1.0)  # of the target's own writing


class Lessons:
    """Windows of `ids` [rows, length], with the target's states [rows, length, hidden] where it was tapped.

    `last` is the state behind the final norm, an int i the input of layer i, both in bf16. Rows are drawn by
    domain, "own" among them, in the shares of `mixture`.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        facts = json.loads((folder / "lessons.json").read_text())
        shape = (facts["rows"], facts["length"], facts["hidden"])
        self.ids = torch.from_numpy(np.load(folder / "ids.npy").astype(np.int64))
        self.states = {
            name if name == "last" else int(name): torch.from_file(
                str(folder / f"{name}.bf16"), shared=True, size=shape[0] * shape[1] * shape[2], dtype=torch.bfloat16
            ).view(shape)
            for name in facts["states"]
        }
        self.rows: dict[str, list[int]] = facts["domains"]
        self.mixture: dict[str, float] = facts["mixture"]
        self.wanted: tuple[int | str, ...] = ("last",)
        self.random = np.random.default_rng(seed)

    def batch(self, rows: int, length: int) -> tuple[Tensor, ...]:
        """ids [rows, n], then each wanted state [rows, n, hidden], n being at most `length`."""
        names = self.random.choice(list(self.mixture), size=rows, p=list(self.mixture.values()))
        chosen = torch.tensor([self.random.choice(np.arange(*self.rows[name])) for name in names])
        return self.ids[chosen, :length], *(self.states[name][chosen, :length] for name in self.wanted)

    def state(self) -> dict[str, Any]:
        return dict(self.random.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        self.random.bit_generator.state = state


def prepare(
    folder: Path, teacher: LlamaForCausalLM, streams: TokenStreams, tokens: dict[str, int], taps: tuple[int, ...],
    seed: int, length: int = LENGTH,
) -> Lessons:  # fmt: skip
    """`tokens` of every domain and, under "own", of the target's own writing. What is there already is kept."""
    if not (folder / "lessons.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = {}
        for name, count in tokens.items():
            rows = max(1, count // length)
            if name == "own":
                parts[name] = own_writing(teacher, streams, rows, length, seed)
            else:
                parts[name] = streams.batch(rows, length - 1, {name: 1.0})[0].numpy().astype(np.uint16)
        ids = np.concatenate(list(parts.values()))
        ends = np.cumsum([len(part) for part in parts.values()]).tolist()
        np.save(folder / "ids.npy", ids)
        names = study(folder, teacher, ids, taps)
        facts = {
            "rows": len(ids), "length": length, "hidden": teacher.config.hidden_size, "states": names,
            "domains": {name: [end - len(parts[name]), end] for name, end in zip(parts, ends, strict=True)},
            "mixture": {name: count / sum(tokens.values()) for name, count in tokens.items()},
        }  # fmt: skip
        (folder / "lessons.json").write_text(json.dumps(facts))
    return Lessons(folder, seed)


@torch.inference_mode()
def study(folder: Path, teacher: LlamaForCausalLM, ids: np.ndarray, taps: tuple[int, ...], rows: int = 32) -> list[str]:
    """The target reads `ids`; its states go to disk, one file a tap. The files' names."""
    names = ["last", *map(str, taps)]
    files = [(folder / f"{name}.bf16").open("wb") for name in names]
    for start in tqdm(range(0, len(ids), rows), desc="target reads", unit="batch", mininterval=5):
        batch = torch.from_numpy(ids[start : start + rows].astype(np.int64)).to(teacher.device)
        out = teacher.model(input_ids=batch, use_cache=False, output_hidden_states=True)
        for file, states in zip(files, (out.last_hidden_state, *(out.hidden_states[i] for i in taps)), strict=True):
            file.write(states.bfloat16().cpu().contiguous().view(torch.int16).numpy().tobytes())
    for file in files:
        file.close()
    return names


@torch.inference_mode()
def own_writing(
    teacher: LlamaForCausalLM, streams: TokenStreams, rows: int, length: int, seed: int, at_once: int = 192
) -> np.ndarray:
    """What the target writes itself, from short beginnings of every domain.  # [rows, length]"""
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
