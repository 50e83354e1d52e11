"""A target of a visitor's own without a draft: what it can do by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import toypairs

from specdec.drafters import CopyingDrafter, PromptLookupDrafter, SuffixDrafter
from specdec.events import Committed, Drafted
from specdec.families import zoo
from specdec.families.chat import Chat
from specdec.lanes.race import race
from specdec.sampling import RandomSampler
from specdec.types import SamplingParams

LONG = SamplingParams(max_tokens=24, ignore_end=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> zoo.Family:
    family = zoo.load_pair(toypairs.model_into(tmp_path_factory.mktemp("alone") / "target", 2, template=None))
    family.chat = Chat("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", trims=True)
    return family


@pytest.mark.parametrize("drafter", ["suffix", "prompt_lookup", "adaptive", "adaptive:suffix"])
def test_a_target_alone_has_ways_of_drafting_and_keeps_its_text(alone: zoo.Family, drafter: str) -> None:
    events = list(race(alone, "one two three one two", drafter, params=LONG))
    spoken, plain = (
        [token for e in events if isinstance(e, Committed) and e.lane == lane for token in e.tokens]
        for lane in ("speculative", "plain")
    )
    assert spoken == plain and len(plain) == LONG.max_tokens
    assert any(isinstance(e, Drafted) and e.tokens for e in events)


def test_who_drafts_is_a_copy_until_something_was_trained(alone: zoo.Family, tmp_path: Path) -> None:
    assert alone.usual == alone.wrapped("adaptive") == "quantised" and alone.wrapped("none") == ""
    coarse = zoo.load_pair(alone.target.source, dtype=torch.int8)
    assert coarse.usual == coarse.wrapped("adaptive") == "suffix"
    target, draft = (toypairs.model_into(tmp_path / str(layers), layers, template=None) for layers in (2, 1))
    pair = zoo.load_pair(target, draft, exit_layer=1)
    assert pair.usual == pair.wrapped("adaptive") == "draft_model"
    assert zoo.load_pair(target, exit_layer=1).usual == "early_exit"


@pytest.mark.parametrize("make", [SuffixDrafter, PromptLookupDrafter])
def test_copies_leave_the_chat_template_out(make: type[CopyingDrafter]) -> None:
    template, prompt, after = [90, 91, 1, 92], [1, 2, 3, 4], [93, 90, 94]
    drafter, text = make(), [*template, *prompt, *after]
    drafter.around = len(template), len(after)
    drafts = [drafter.propose(text, 0, LONG, RandomSampler(0)).tokens]
    for token in (1, 2, 3, 90, 93, 4):
        text.append(token)
        drafts.append(drafter.propose(text, 2, LONG, RandomSampler(0)).tokens)
    # Nothing of the template, though 1, 90 and 93 stand in it; after the last token of the prompt comes the answer.
    assert drafts == [(), (2, 3), (3, 4), (4, 1), (), (), (1, 2)]


def test_a_lane_of_a_chat_model_knows_what_stands_around_its_prompt(alone: zoo.Family) -> None:
    assert alone.chat is not None
    tokens = alone.encode("one two three")
    _, drafter = alone.lane("suffix", 64)
    assert isinstance(drafter, CopyingDrafter)
    before, after = drafter.around
    assert "".join(map(alone.pieces.piece, tokens[before : len(tokens) - after])) == "one two three"
