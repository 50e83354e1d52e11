"""Our heads against numbers that the publishers' own code computed on small random checkpoints.

`published_logits.json` holds, of each layout: whose code it was and at which commit, its config.json, the names and
shapes of its tensors, and the logits. Weights and states are drawn anew here, with the same seeds.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from specdec.drafters.block import BlockHead
from specdec.drafters.medusa import MedusaHeads
from specdec.families.published import load_head
from specdec.models.config import Config
from specdec.models.folding import EMBEDDING, HEAD
from specdec.models.transformer import Transformer
from tests.toyheads import made, shape, WIDTH

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("published_logits.json").read_text())
COUNT = 7  # tokens of the text whose states are known
TOKENS = [3, 17, 8, 11, 2, 19, 5, 13, 7, 21, 4, 10, 9]


def target_weights() -> dict[str, Tensor]:
    """Draw the tensors that heads read first, as when the numbers were computed."""
    shapes = Config.parse(shape(tie_word_embeddings=False).to_dict()).tensors({})
    return made({name: shapes[name] for name in (EMBEDDING, HEAD, *shapes)}, 11)


def states(taps: int) -> Tensor:  # [COUNT, taps · WIDTH]
    torch.manual_seed(12)
    return torch.randn(COUNT, taps * WIDTH)


def head_weights(case: dict[str, Any]) -> dict[str, Tensor]:
    """Draw every tensor. A draft vocabulary consists of every other token."""
    tensors = made({name: tuple(size) for name, size in case["tensors"].items() if name not in ("d2t", "t2d")}, 13)
    ids = torch.arange(0, 23, 2)
    maps = {"d2t": ids - torch.arange(len(ids)), "t2d": torch.zeros(23, dtype=torch.bool).index_fill(0, ids, True)}
    return tensors | {name: tensor for name, tensor in maps.items() if name in case["tensors"]}


def drafted(head: Any, read: dict[int, Tensor]) -> Tensor:
    """Return logits of a draft in which TOKENS follow, from the target's states by layer.  # [rows, V of the draft]"""
    if isinstance(head, MedusaHeads):
        return head.logits(read[head.target.depth][-1:], head.count)
    fused, cache, rows = head.fuse(read, slice(COUNT)), head.new_cache(64), []
    if isinstance(head, BlockHead):
        head.forward(fused[:4], TOKENS[:5], cache)  # a draft that came before, in whose cache this one continues
        logits = head.logits(head.forward(fused[4:], TOKENS[: COUNT + 1], cache))
        return torch.cat([head.correct(row[None], TOKENS[COUNT + i]) for i, row in enumerate(logits)])
    head.forward(fused[:4], TOKENS[1:5], cache)
    states = head.forward(fused[4:], TOKENS[5 : COUNT + 1], cache)
    for i in range(3):
        rows.append(head.logits(states[-1:]))
        states = head.forward(states[-1:], [TOKENS[COUNT + 1 + i]], cache)
    return torch.cat(rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["layout"])
@torch.inference_mode()
def test_logits_equal_the_publishers(case: dict[str, Any], tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(case["config"]))
    target = Transformer(Config.parse(shape(tie_word_embeddings=False).to_dict()), target_weights(), torch.float32)
    head = load_head(tmp_path, head_weights(case), target, None)
    assert head.taps == tuple(case["taps"])
    read = states(len(head.taps)).unflatten(-1, (len(head.taps), -1)).unbind(1)
    logits = drafted(head, dict(zip(head.taps, read, strict=True)))
    assert (logits - torch.tensor(case["logits"])).abs().max() < 1e-5
