"""The contract that every drafter keeps."""

import random
from functools import cache

import pytest
import torch

from specdec.drafters.base import HeadDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.events import Event, Failed
from specdec.host import check_proposal
from specdec.loop import generate
from specdec.methods import inner_drafter
from specdec.proof.toys import TableModel, warped
from specdec.sampling import RandomSampler
from specdec.task import Task
from specdec.types import Proposal, SamplingParams
from tests.tokens import ids, only
from tests.toyheads import Make, MAKERS, Run, TARGET, TEXT, view_of, WARM

MODEL = TableModel(9, seed=4, context=64)
every_drafter = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_drafter
@pytest.mark.parametrize("k", [1, 3, 7, 30])
@pytest.mark.parametrize("params", [WARM, SamplingParams()], ids=["warm", "greedy"])
def test_never_deeper_than_asked_and_the_text_stays_as_it_is(make: Make, k: int, params: SamplingParams) -> None:
    run = Run(make)
    proposal = run.propose(k, params=params)
    check_proposal(proposal, k, TARGET.vocabulary)  # the engine's: depth, number of nodes, a tree, sound distributions
    assert len(proposal.seconds) in (0, len(proposal))
    assert run.text == TEXT


@pytest.mark.parametrize("name", ["eagle3", "eagle3:tree", "mtp", "block"])
def test_a_head_reads_the_prompt_at_the_prefill(name: str) -> None:
    """All tokens but the first, each with the feature before it; after a prompt of one token there is none."""
    drafter = Run(MAKERS[name]).drafter
    assert isinstance(drafter, HeadDrafter) and drafter._cache.length == len(TEXT) - 2
    assert Run(MAKERS[name], TEXT[:2]).propose(3).tokens


@pytest.mark.parametrize("name", [name for name in MAKERS if not inner_drafter(name)])
def test_rejected_tokens_are_forgotten(name: str) -> None:
    """After any history of kept, rejected and missing drafts, and of cycles in which somebody else drafted, a used
    drafter proposes what a fresh one does."""
    make, rng = MAKERS[name], random.Random(7)
    for _ in range(4):
        used = Run(make)
        for _ in range(7):
            proposal = used.propose(rng.choice((1, 2, 3, 5)), rng.randrange(99))
            path = proposal.tree.path(rng.randrange(-1, len(proposal)))
            used.commit(proposal, path, rng.randrange(TARGET.vocabulary))
            for _ in range(rng.choice((0, 0, 0, 4))):
                used.commit(Proposal(), (), rng.randrange(TARGET.vocabulary))
        again, fresh = (run.propose(4, seed=99) for run in (used, Run(make, used.text)))
        assert (again.tokens, again.parents) == (fresh.tokens, fresh.parents)
        if again.probs is not None and fresh.probs is not None:
            assert torch.allclose(again.probs, fresh.probs, atol=1e-4)


@every_drafter
def test_behind_every_cycle_the_targets_cache_is_a_fresh_prefills(make: Make) -> None:
    rng, run = random.Random(3), Run(make)
    for _ in range(6):
        proposal = run.propose(4, rng.randrange(99))
        run.commit(proposal, proposal.tree.path(rng.randrange(-1, len(proposal))), rng.randrange(TARGET.vocabulary))
        fresh = TARGET.forward(run.text, TARGET.new_cache(160))
        assert torch.allclose(run.view.forward(run.text[-1:], run.cache), fresh, atol=1e-4)
        run.cache.keep(len(run.text) - 1)


def events_of(make: Make, params: SamplingParams, k: int) -> list[Event]:
    view = view_of()
    return list(generate(Task(view, TEXT, params, make(view), k)))


@cache
def plain_text(tokens: int) -> list[int]:
    return ids(events_of(MAKERS["none"], SamplingParams(max_tokens=tokens), 0))


@every_drafter
@pytest.mark.parametrize("k", [1, 3, 8, pytest.param(0, marks=pytest.mark.long)])
def test_greedy_text_is_plain_decodings(make: Make, k: int) -> None:
    events = events_of(make, SamplingParams(max_tokens=40), k)
    assert not only(events, Failed)
    assert ids(events) == plain_text(40)


def test_draft_model_stops_at_its_own_context() -> None:
    drafter = DraftModelDrafter(TableModel(9, seed=4, context=12))
    assert len(drafter.propose(TEXT, 8, WARM, RandomSampler(1))) == 4
    assert not DraftModelDrafter(TableModel(9, seed=4, context=5)).propose(TEXT, 8, WARM, RandomSampler(1))


def test_a_draft_model_serves_one_run() -> None:
    drafter = DraftModelDrafter(MODEL)
    drafter.propose(TEXT, 2, WARM, RandomSampler(1))
    drafter.propose([*TEXT, 1, 2, 3], 2, WARM, RandomSampler(1))
    with pytest.raises(ValueError, match="serves one run"):
        drafter.propose(TEXT[:4], 2, WARM, RandomSampler(1))


@pytest.mark.parametrize(
    ("text", "draft"),
    [
        pytest.param([1, 2, 3, 9, 8, 7, 1, 2, 3], (9, 8, 7), id="what followed"),
        pytest.param([5, 3, 4, 1, 2, 3, 6, 1, 2, 3], (6, 1, 2), id="the longest match"),
        pytest.param([1, 2, 7, 1, 2, 8, 1, 2], (8, 1, 2), id="the latest match"),
        pytest.param([1, 2, 1, 2], (1, 2, 1), id="a loop goes on"),
        pytest.param([4, 4], (4, 4, 4), id="one token over and over"),
        pytest.param([1, 2, 3, 4], (), id="nothing repeats"),
        pytest.param([1], (), id="one token"),
    ],
)
def test_prompt_lookup_copies_what_followed_the_longest_and_latest_match(text: list[int], draft: tuple[int]) -> None:
    assert PromptLookupDrafter().propose(text, 3, WARM, RandomSampler(0)).tokens == draft


def test_drafts_are_warped_as_the_target_is() -> None:
    """The first token's distribution. Unwarped drafts keep the text right, and are rejected more often.

    Copies and trees of candidates draw nothing.
    """
    whole, narrow = SamplingParams(temperature=1.0), SamplingParams(temperature=0.7, top_k=9, top_p=0.6)
    drawn = set[str]()
    for name, make in MAKERS.items():
        free, warp = (Run(make).propose(1, params=params) for params in (whole, narrow))
        if free.probs is None or warp.probs is None:
            continue
        drawn.add(name)
        expected = warped(free.probs[0].double().log().tolist(), narrow)
        assert warp.probs[0].tolist() == pytest.approx(expected, abs=1e-5), name
    assert drawn >= {"draft_model", "early_exit", "medusa:tree", "eagle3", "mtp", "block", "adaptive:eagle3"}
