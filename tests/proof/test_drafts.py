"""A mistake of drafters that the loop's own tests would find late: a doubtful token dropped from an adaptive draft."""

from collections.abc import Sequence

import pytest
import torch

from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import LoopCase, run_loop, TableModel
from specdec.rules import RULES
from specdec.sampling import RandomSampler, Sampler
from specdec.types import Costs, Proposal, SamplingParams

WARM = SamplingParams(temperature=1.0)


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_chain_keeps_the_token_that_ends_it(stop: int) -> None:
    model = TableModel(9, seed=4)
    whole = DraftModelDrafter(model).propose([1, 2], 6, WARM, RandomSampler(5))
    drafter, asked = DraftModelDrafter(model), list[float]()

    def should_stop(confidence: float, index: int) -> bool:
        asked.append(confidence)
        return index == stop

    drafter.end_drafts_by(should_stop)
    ended = drafter.propose([1, 2], 6, WARM, RandomSampler(5))
    assert ended.tokens == whole.tokens[: stop + 1]
    assert ended.probs is not None and whole.probs is not None and torch.equal(ended.probs, whole.probs[: stop + 1])
    assert asked == pytest.approx([float(ended.probs[i, token]) for i, token in enumerate(ended.tokens)])


@pytest.mark.parametrize("rule", ["rejection", "block", "shared_noise"])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_an_adaptive_cycle_gives_the_targets_distribution(rule: str, seed: int) -> None:
    case, lengths = LoopCase(3, 3, 3, seed=seed), set[int]()

    class Watched(AdaptiveDrafter):
        def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
            proposal = super().propose(tokens, k, params, sampler)
            lengths.add(len(proposal))
            return proposal

    def adaptive() -> Watched:
        return Watched(DraftModelDrafter(case.models()[1]), Costs(0.3, (1.0, 1.05, 1.1, 1.15)))

    distribution, _ = output_distribution(run_loop(lambda: case.task(RULES[rule](), adaptive())))
    assert total_variation(distribution, case.exact_distribution()) <= 1e-12
    assert len(lengths) > 1
