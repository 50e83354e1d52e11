"""The block drafter and the MTP layer against naive second implementations, like the heads in `test_heads.py`."""

from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from specdec.drafters.block import BlockDrafter, BlockHead, BlockLayout
from specdec.drafters.mtp import MTPDrafter, MTPHead
from specdec.models.config import Config
from specdec.models.view import TargetView
from specdec.sampling import probabilities
from tests.drafters.naiveheads import naive_correction, naive_mtp, naive_slots
from tests.drafters.test_heads import cycles, Watched
from tests.toyheads import (
    block_config,
    block_on,
    block_weights,
    HEADS,
    MAKERS,
    MASK,
    MODEL,
    mtp_weights,
    Run,
    shape,
    SLOTS,
    TAPS,
    TARGET,
    TEXT,
    WARM,
)
from tools.train import block as train_block
from tools.train import mtp as train_mtp


def test_a_block_says_what_the_naive_one_says() -> None:
    run = Watched(MAKERS["block"])
    seen, logits = cycles(run, 9, 4, seed=2), iter(run.logits)
    for text, proposal in seen:
        slots, assured = naive_slots(block_weights(), text), iter(proposal.probs if proposal.probs is not None else ())
        for slot, (before, _) in enumerate(pairwise([text[-1], *proposal.tokens])):
            expected, row = slots[slot] + naive_correction(block_weights(), before), next(logits)
            assert torch.allclose(row, expected, atol=1e-4)
            assert torch.equal(next(assured), probabilities(row[None], WARM)[0])


def test_a_block_is_as_long_as_it_was_trained_and_may_end_the_context() -> None:
    assert len(Run(MAKERS["block"]).propose(30)) == Run(MAKERS["block"]).drafter.deepest == SLOTS
    end = [3] * (TARGET.context - 1)
    assert Run(MAKERS["block"], end).propose(1).tokens == Run(MAKERS["block"], end).propose(3).tokens[:1]


def test_an_mtp_layer_says_what_the_naive_one_says() -> None:
    run = Watched(MAKERS["mtp"])
    seen, logits = cycles(run, 9, 4, seed=2), iter(run.logits)
    for text, proposal in seen:
        for index in range(len(proposal)):
            expected = naive_mtp(mtp_weights(), text, list(proposal.tokens[:index]))
            assert torch.allclose(next(logits), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["block", "mtp"])
def test_eight_bits_do(name: str) -> None:
    def rounded(view: TargetView) -> BlockDrafter | MTPDrafter:
        if name == "block":
            return BlockDrafter(view, block_on(TARGET, torch.int8), 160)
        return MTPDrafter(view, MTPHead(Config.parse(shape().to_dict()), mtp_weights(), TARGET, torch.int8, False), 160)

    exact, near = Watched(MAKERS[name]), Watched(rounded)
    exact.propose(1), near.propose(1)
    off = (exact.logits[0] - near.logits[0]).abs().max()
    assert 0.0 < off < 0.1 * exact.logits[0].std()


def states_of(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's last states and, side by side, its states at TAPS."""
    with torch.no_grad():
        out = MODEL.model(ids, output_hidden_states=True)
    return out.last_hidden_state, torch.cat([out.hidden_states[tap] for tap in TAPS], -1)


def test_training_and_drafting_compute_the_same_blocks() -> None:
    text = TEXT * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_block, "SLOTS", SLOTS)
        patch.setattr(train_block, "RANK", 3)
        patch.setattr(train_block, "MASK", MASK)
        config = train_block.block_config(MODEL, TAPS)
        assert BlockLayout.parse(config.to_dict(), len(TARGET.layers)) == BlockLayout.parse(block_config(), 6)
        block = train_block.Block(config, MODEL, len(TAPS))
        assert set(block.state_dict()) == set(block_weights())
        block.load_state_dict(block_weights())
        loss = train_block.BlockLoss(MODEL, block, config, TAPS)
        ids = torch.tensor([text])
        last, features = states_of(ids)
        anchors = torch.tensor([2, 5, 6])
        with torch.no_grad():
            states = block(F.embedding(ids, loss.embedding), loss.embedding[MASK], features, anchors, loss.rotary)
            rows = states[0] @ block.lm_head.weight.T
            before = block.markov_head(ids[0])
        for anchor, row in zip(anchors.tolist(), rows, strict=True):
            assert torch.allclose(row, naive_slots(block_weights(), text[: anchor + 1]), atol=1e-4)
        assert torch.allclose(before[4], naive_correction(block_weights(), text[4]), atol=1e-4)
        assert 0.0 < loss.of_states(ids, last, features).item() < float("inf")


def test_training_and_drafting_compute_the_same_mtp_steps() -> None:
    """Row i of step s in training is token s of a draft after i + 2 tokens."""
    text, config = TEXT * 2, shape(num_key_value_heads=HEADS)
    layer = train_mtp.MTP(config)
    assert set(layer.state_dict()) == set(mtp_weights())
    layer.load_state_dict(mtp_weights())
    loss = train_mtp.MTPLoss(MODEL, layer, config)
    ids = torch.tensor([text])
    with torch.no_grad():
        steps = layer(F.embedding(ids, loss.embedding), states_of(ids)[0], loss.rotary)
    for step, states in enumerate(steps):
        for i in range(len(text) - train_mtp.STEPS):
            expected = naive_mtp(mtp_weights(), text[: i + 2], text[i + 2 : i + 2 + step])
            assert torch.allclose(states[0, i] @ loss.output.T, expected, atol=1e-4)


def layout(**changes: Any) -> BlockLayout:
    return BlockLayout.parse({**block_config(), **changes}, len(TARGET.layers))


def test_what_does_not_fit_this_target_is_refused_with_the_reason() -> None:
    weights, config = block_weights(), Config.parse(shape().to_dict())
    with pytest.raises(ValueError, match=r"lacks fc\.weight"):
        BlockHead(layout(), {k: v for k, v in weights.items() if k != "fc.weight"}, TARGET)
    with pytest.raises(ValueError, match=r"fc\.weight has the shape"):
        BlockHead(layout(target_layer_ids=[1, 2]), weights, TARGET)
    with pytest.raises(ValueError, match="mask_token_id is 23, but only 23 tokens have an embedding"):
        BlockHead(layout(mask_token_id=23), weights, TARGET)
    for key in ("mask_token_id", "block_size", "target_layer_ids"):
        with pytest.raises(ValueError, match=f"config.json lacks {key}"):
            layout(**{key: None})
    with pytest.raises(ValueError, match="Markov head is of the type gated; only vanilla is supported"):
        layout(markov_head_type="gated")
    with pytest.raises(ValueError, match="its layers have sliding windows"):
        layout(layer_types=["sliding_attention"] * 2, sliding_window=4, use_sliding_window=True)
    with pytest.raises(ValueError, match=r"lacks eh_proj\.weight"):
        MTPHead(config, {k: v for k, v in mtp_weights().items() if k != "eh_proj.weight"}, TARGET)
