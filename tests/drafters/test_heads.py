"""Medusa and EAGLE-3 against naive second implementations: transformers' target, the whole text anew, no cache."""

import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from specdec.drafters.base import ChainDrafter
from specdec.drafters.block import BlockDrafter
from specdec.drafters.eagle3 import Eagle3Drafter, Eagle3Head, Eagle3TreeDrafter, NODES
from specdec.drafters.medusa import MedusaDrafter, MedusaHeads, MedusaTreeDrafter
from specdec.drafters.mtp import MTPDrafter, MTPHead
from specdec.families.published import head_of
from specdec.models.config import Config
from specdec.models.view import TargetView
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import run_loop
from specdec.sampling import probabilities
from specdec.task import Task
from specdec.types import Proposal, SamplingParams
from tests.drafters.naiveheads import naive_eagle3, naive_medusa
from tests.toyheads import (
    block_on,
    decoder,
    dflash_on,
    DRAFT_IDS,
    eagle3_config,
    eagle3_weights,
    exact_texts,
    Make,
    MAKERS,
    MEDUSA,
    medusa_weights,
    MODEL,
    mtp_weights,
    ours,
    Run,
    shape,
    TAPS,
    TARGET,
    TEXT,
    WARM,
    WIDTH,
)
from tools.train import medusa as train_medusa


class Watched(Run):
    def __init__(self, make: Make) -> None:
        super().__init__(make)
        assert isinstance(self.drafter, ChainDrafter)
        self.logits: list[Tensor] = []
        draw = self.drafter.draw

        def watched(logits: Tensor, *rest: Any) -> tuple[int, Tensor | None]:
            self.logits.append(logits[0].clone())
            return draw(logits, *rest)

        self.drafter.draw = watched


GREEDY = SamplingParams()


def cycles(run: Run, count: int, k: int, seed: int, params: SamplingParams = WARM) -> list[tuple[list[int], Proposal]]:
    """Texts and what was drafted behind them; of each draft a random part is kept."""
    rng, seen = random.Random(seed), []
    for _ in range(count):
        proposal = run.propose(k, rng.randrange(99), params)
        seen.append((list(run.text), proposal))
        run.commit(proposal, proposal.tree.path(rng.randrange(-1, len(proposal))), rng.randrange(TARGET.vocabulary))
    return seen


@pytest.mark.parametrize(
    ("outputs", "blocks", "prefix", "stored"),
    [(0, 1, "medusa_head.", None), (30, 1, "", None), (23, 2, "", None), (23, 2, "", torch.int8)],
)
def test_medusa_says_what_the_naive_one_says(outputs: int, blocks: int, prefix: str, stored: Any) -> None:
    """As published: rows behind the target's 23 only pad, and config.json is wrong."""
    weights = medusa_weights(outputs=outputs, blocks=blocks)
    named = {prefix + name: tensor for name, tensor in weights.items()}
    heads = head_of("medusa", {"medusa_num_heads": 2, "medusa_num_layers": 1}, named, TARGET, stored)
    assert isinstance(heads, MedusaHeads) and heads.count == 4
    run = Watched(lambda view: MedusaDrafter(view, heads))
    for i, (text, proposal) in enumerate(cycles(run, 9, 4, seed=0)):
        rows = torch.stack(run.logits[4 * i : 4 * i + 4])
        assert torch.allclose(rows, naive_medusa(weights, text, 4, blocks)[:, :23], atol=0.5 if stored else 1e-4)
        assert proposal.probs is not None and torch.equal(proposal.probs, probabilities(rows, WARM))


def test_a_medusa_tree_holds_the_best_choices_of_the_heads() -> None:
    for text, tree in cycles(Run(MAKERS["medusa:tree"]), 6, 3, seed=1, params=GREEDY):
        best = naive_medusa(medusa_weights(), text, 3).argsort(descending=True)
        paths = [path for path in MEDUSA.tree if len(path) <= 3]
        assert tree.tokens == tuple(best[len(path) - 1, path[-1]] for path in paths)
        assert tree.probs is None
        for node, path in enumerate(paths):
            assert tree.tree.depth(node) == len(path)
            assert len(path) == 1 or paths[tree.parents[node]] == path[:-1]


def test_eagle3_says_what_the_naive_one_says() -> None:
    run = Watched(MAKERS["eagle3"])
    seen, logits = cycles(run, 9, 4, seed=2), iter(run.logits)
    for text, proposal in seen:
        for index, (token, row) in enumerate(zip(proposal.tokens, logits, strict=False)):
            expected = naive_eagle3(eagle3_weights(), text, list(proposal.tokens[:index]))
            assert torch.allclose(row, expected, atol=1e-4)
            assert token in DRAFT_IDS and proposal.probs is not None
            assert torch.equal(proposal.probs[index, DRAFT_IDS], probabilities(row[None], WARM)[0])
    others = [token for token in range(TARGET.vocabulary) if token not in DRAFT_IDS]
    drawn = [proposal.probs for _, proposal in seen if proposal.probs is not None]
    assert len(drawn) == 9 and all(float(rows[:, others].sum()) == 0.0 for rows in drawn)


@pytest.mark.parametrize("params", [GREEDY, WARM])
def test_an_eagle3_tree_is_never_deeper_than_its_nodes(params: SamplingParams) -> None:
    run = Run(MAKERS["eagle3:tree"])
    assert run.drafter.deepest == NODES >= run.propose(30, params=params).tree.max_depth


def test_an_eagle3_tree_holds_the_paths_that_the_head_finds_likeliest() -> None:
    for text, tree in cycles(Run(MAKERS["eagle3:tree"]), 5, 3, seed=3, params=GREEDY):
        assert len(tree) <= NODES and tree.probs is None
        shares = []
        for node, token in enumerate(tree.tokens):
            above = [tree.tokens[i] for i in tree.tree.path(tree.parents[node])]
            distribution = naive_eagle3(eagle3_weights(), text, above).softmax(-1)
            share = float(distribution[DRAFT_IDS.index(token)])
            shares.append(share if tree.parents[node] < 0 else share * shares[tree.parents[node]])
            siblings = [tree.tokens[i] for i in tree.tree.children(tree.parents[node])]
            best = [DRAFT_IDS[i] for i in distribution.argsort(descending=True)[: len(siblings)]]
            assert siblings == best
        first = naive_eagle3(eagle3_weights(), text, []).softmax(-1).topk(3).values.tolist()
        assert len(tree.tree.children(-1)) == sum(share > min(shares) - 1e-6 for share in first)


@pytest.mark.parametrize("name", ["medusa:tree", "eagle3:tree"])
@pytest.mark.parametrize("params", [WARM, SamplingParams(0.9, top_k=2)], ids=["warm", "two tokens"])
def test_siblings_are_drawn_from_what_their_elders_left(name: str, params: SamplingParams) -> None:
    shapes = {"medusa:tree": (-1, -1, 0), "eagle3:tree": (-1, -1, -1, 0, 0, 3, 3)}
    for text, tree in cycles(Run(MAKERS[name]), 6, 3, seed=5, params=params):
        assert tree.probs is not None
        if params is WARM:
            assert tree.parents[: len(shapes[name])] == shapes[name]
        for node, token in enumerate(tree.tokens):
            above = [tree.tokens[i] for i in tree.tree.path(tree.parents[node])]
            if name == "medusa:tree":
                logits = naive_medusa(medusa_weights(), text, 4)[len(above)]
            else:
                known = naive_eagle3(eagle3_weights(), text, above)
                logits = known.new_full((TARGET.vocabulary,), -math.inf).index_copy(0, torch.tensor(DRAFT_IDS), known)
            distribution = probabilities(logits[None], params)[0]
            elders = [tree.tokens[i] for i in tree.tree.children(tree.parents[node]) if i < node]
            distribution[elders] = 0.0
            assert token not in elders
            assert torch.allclose(tree.probs[node], distribution / distribution.sum(), atol=1e-4)


def test_the_losses_are_least_where_the_head_says_what_the_target_does() -> None:
    ids = torch.tensor([TEXT * 3])
    with torch.no_grad():
        out = MODEL.model(ids, output_hidden_states=True)
        heads, random_heads = (train_medusa.build(MODEL.lm_head.weight) for _ in range(2))
        random_heads.load_state_dict(medusa_weights(train_medusa.HEADS, outputs=23, blocks=train_medusa.LAYERS))
        fresh, wrong = (
            train_medusa.MedusaLoss(MODEL, part).of_states(ids, out.last_hidden_state).item()
            for part in (heads, random_heads)
        )
    assert 0.0 < fresh < wrong


def test_what_is_no_head_for_this_target_is_refused_with_the_reason() -> None:
    config, weights = Config.parse(eagle3_config()), eagle3_weights()
    with pytest.raises(ValueError, match=r"lacks midlayer\.hidden_norm"):
        Eagle3Head(config, {k: v for k, v in weights.items() if "hidden_norm" not in k}, TARGET, TAPS)
    with pytest.raises(ValueError, match=r"fc\.weight has the shape"):
        Eagle3Head(config, weights, TARGET, (2, 3))
    with pytest.raises(ValueError, match="does not name 15 different tokens"):
        Eagle3Head(config, {**weights, "d2t": weights["d2t"] + 5}, TARGET, TAPS)
    with pytest.raises(ValueError, match=r"0\.1\.linear\.weight has the shape"):
        MedusaHeads({**medusa_weights(), "0.1.linear.weight": torch.ones(1)}, TARGET)


HEADS = [(name, 0) for name in "medusa eagle3 eagle3:tree block DFlash EAGLE-3.1 mtp".split()]
TREES = [("medusa:tree", 2), pytest.param("medusa:tree", 0, marks=pytest.mark.long)]


@pytest.mark.parametrize(("name", "top_k"), HEADS + TREES)
def test_every_random_path_gives_the_targets_distribution(name: str, top_k: int) -> None:
    target, known, params = ours(decoder(shape(3), seed=5)), (0, 2), SamplingParams(0.8, top_k=top_k, max_tokens=4)
    medusa = MedusaHeads(medusa_weights(2), target, [(0,), (1,), (0, 0), (0, 1), (1, 0)])
    eagle = Eagle3Head(Config.parse(eagle3_config(known, 3)), eagle3_weights(3, known), target, TAPS)
    block, dflash = block_on(target, vocabulary=3), dflash_on(target)
    norms = {f"fc_norm.{i}.weight": torch.linspace(0.5, 1.5, WIDTH) for i in range(3)}
    tensors = eagle3_weights(3, known) | norms
    later = Eagle3Head(Config.parse(eagle3_config(known, 3)), tensors, target, TAPS, norm_output=True)
    mtp = MTPHead(Config.parse(shape(3).to_dict()), mtp_weights(), target, norm_output=False)
    makers: dict[str, Make] = {
        "block": lambda view: BlockDrafter(view, block, 9),
        "DFlash": lambda view: BlockDrafter(view, dflash, 9),
        "EAGLE-3.1": lambda view: Eagle3Drafter(view, later, 9),
        "mtp": lambda view: MTPDrafter(view, mtp, 9),
        "medusa": lambda view: MedusaDrafter(view, medusa),
        "medusa:tree": lambda view: MedusaTreeDrafter(view, medusa),
        "eagle3": lambda view: Eagle3Drafter(view, eagle, 9),
        "eagle3:tree": lambda view: Eagle3TreeDrafter(view, eagle, 9),
    }

    def task() -> Task:
        view = TargetView(target, (*TAPS, len(target.layers)))
        return Task(view, [0], params, makers[name](view), k=2, details=False)

    distribution, _ = output_distribution(run_loop(task))
    assert total_variation(distribution, exact_texts(target, [0], params)) < 1e-5
