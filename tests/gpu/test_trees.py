"""Trees on the device: the model's own logits along every path, the plain walk, the target's distribution."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hostreads import no_host_reads
from test_accept import Given, WARPS
from test_graphs import GREEDY, lean, Replaying, small_buckets, WARM  # noqa: F401 -- a fixture for all of them
from test_lane import nearly, table, told
from test_models import FAMILIES, TEXT
from torch import Tensor
from toyheads import EAGLE3, medusa_weights, TARGET, view_of
from toyheads import TEXT as TOY_TEXT

from specdec import engine
from specdec.drafters.eagle3 import Eagle3TreeDrafter
from specdec.drafters.medusa import MedusaHeads, MedusaTreeDrafter
from specdec.engine import Task
from specdec.events import Drafted, Event, Verified
from specdec.gpu import graphs, lane
from specdec.gpu.accept import Record, REJECTED
from specdec.gpu.cycle import TreeCycle
from specdec.gpu.drafting import Branching
from specdec.gpu.graphs import StaticDecoder
from specdec.gpu.ops import Branches
from specdec.gpu.trees import packed, paths_of, walk
from specdec.models.transformer import Transformer
from specdec.sampling import probabilities
from specdec.types import Proposal, SamplingParams, Tree
from specdec.verify import RejectionSampling

SHORT = ("qwen3", "llama grouped heads", "mistral window")
FEW = replace(WARM, top_k=2)  # tokens: the third sibling is missing
BUSHY = ((0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (1, 0, 0), (0, 0, 0, 0), (1, 0, 0, 1))


def random_tree(n: int, seed: int) -> list[int]:
    """Level by level, as drafters give them."""
    rng = random.Random(seed)
    parents = [rng.randrange(-1, node) for node in range(n)]
    depths = Tree(tuple(parents)).depths()
    order = sorted(range(n), key=lambda node: depths[node])
    return [-1 if parents[node] < 0 else order.index(parents[node]) for node in order]


def branches_of(parents: Sequence[int], start: Tensor) -> Branches:
    paths = paths_of(torch.tensor(parents), len(parents))
    turns = start + paths.sum(1) - 1
    return Branches(turns, start, turns, paths)


def test_paths_are_those_of_the_tree() -> None:
    for n, seed in itertools.product((1, 2, 7, 20), range(5)):
        parents = random_tree(n, seed)
        tree = Tree(tuple(parents))
        with no_host_reads():
            paths = paths_of(torch.tensor(parents), max(tree.depths()))
        for node in range(-1, n):
            assert paths[node + 1].nonzero().flatten().tolist() == [0, *(above + 1 for above in tree.path(node))]


# ---- the pass ----


def apart(model: Transformer) -> float:
    """How far logits along three trees, each behind a path of the last, are from the model's own."""
    decoder, cache, length, worst = StaticDecoder(model, 64), model.new_cache(64), 20, 0.0
    decoder.prefill(TEXT[:length])
    model.forward(TEXT[:length], cache)
    for n, seed in ((7, 3), (12, 1), (3, 2)):
        parents, tokens = random_tree(n, seed), TEXT[seed : seed + n + 1]
        expected = model.forward(tokens, cache, parents, n + 1)
        start, tree = torch.tensor([length]), Tree(tuple(parents))
        right = branches_of(parents, start)
        for bucket in (length + n + 1, 64):  # as narrow as can be, and the whole cache
            with no_host_reads():
                logits = decoder.forward(torch.tensor(tokens), start, bucket, branches=right)
            worst = max(worst, float((logits - expected).abs().max()))
        path = tree.path(max(range(n), key=tree.depth))
        cache.keep(length + 1, path)
        given = torch.tensor([*path, *[0] * (n - len(path))]), torch.tensor([len(path)])
        with no_host_reads():
            decoder.keep(start + 1, *given)
        length += 1 + len(path)
    return worst


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SHORT else pytest.mark.long) for n in FAMILIES])
def test_logits_along_a_tree_are_the_models_own(name: str) -> None:
    """With windows and shared heads; and behind it, where the path was moved up in the cache."""
    assert apart(lean(FAMILIES[name])) <= 3e-5


# ---- the walk ----

Case = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def cases(count: int, sizes: Iterable[int] = range(1, 8)) -> Iterator[tuple[bool, Case]]:
    """Many cycles at a time, of one size and warp: whether tokens were chosen outright, and what `walk` takes."""
    kinds = list(itertools.product(sizes, WARPS, (False, True)))
    for n, params, point in kinds:
        many, vocabulary = 1 + count // len(kinds), 4 + n
        generator = torch.Generator().manual_seed(10 * n + point)
        target = 2.0 * torch.randn(many, n + 1, vocabulary, generator=generator)
        parents = torch.tensor([random_tree(n, seed) for seed in range(many)])
        near = target.gather(1, (parents + 1)[..., None].expand(many, n, vocabulary))
        other = near + torch.randn(near.shape, generator=generator)
        distributions = probabilities(other.flatten(0, 1), params).view(many, n, vocabulary)
        drafted = distributions.flatten(0, 1).multinomial(1, generator=generator).view(many, n)
        rows = probabilities(target.flatten(0, 1), params).view(many, n + 1, vocabulary)
        absent = torch.rand(many, n, generator=generator) < 0.2
        paths = torch.stack([paths_of(each, n) for each in parents])[:, 1:, 1:]
        real = ~(paths & absent[:, None]).any(2)
        coins = torch.rand(many, n, generator=generator, dtype=torch.float64)
        own = torch.rand(many, 1, generator=generator, dtype=torch.float64)
        yield point, (rows, drafted, parents, distributions, real, coins, own)


def walked(point: bool, case: Case) -> list[Record]:
    def cycle(rows, drafted, parents, distributions, real, coins, own):  # type: ignore[no-untyped-def]
        outcome = walk(rows, drafted, parents, None if point else distributions, real, coins, own)
        yes = torch.ones(1)
        return packed(outcome, drafted, parents, yes, yes)

    return [Record.of_tree(numbers) for numbers in torch.vmap(cycle)(*case).tolist()]


def test_the_walk_is_the_plain_one() -> None:
    """Which nodes were tried, with which p, q and coin, what was kept, and the token behind it."""
    seen = set()  # nodes that there are, kept ones, rejected ones
    for point, case in cases(1500):
        for i, record in enumerate(walked(point, case)):
            rows, drafted, parents, distributions, real, coins, own = (part[i] for part in case)
            nodes = real.nonzero().flatten().tolist()
            place = {-1: -1, **{node: j for j, node in enumerate(nodes)}}
            proposal = Proposal(
                tuple(drafted[nodes].tolist()),
                tuple(place[int(parents[node])] for node in nodes),
                None if point else distributions[nodes],
            )
            kept_rows = rows[[0, *(node + 1 for node in nodes)]]
            verdict = RejectionSampling().verify(proposal, kept_rows, Given(coins, own))
            found = record.verdict()
            assert replace(found, trials=()) == replace(verdict, trials=())
            for trial, expected in zip(found.trials, verdict.trials, strict=True):
                assert replace(trial, p=0.0, q=0.0) == replace(expected, p=0.0, q=0.0)
                assert (trial.p, trial.q) == pytest.approx((expected.p, expected.q), abs=1e-6)
            assert replace(record.proposal(), probs=None) == replace(proposal, probs=None)
            seen.add((len(nodes), record.accepted, record.fates.count(REJECTED)))
    assert {n for n, *_ in seen} == set(range(8)) and {kept for _, kept, _ in seen} >= {0, 1, 2, 3}
    assert {rejected for *_, rejected in seen} >= {0, 1, 2, 3}


def test_the_walk_asks_the_host_nothing() -> None:
    for point, case in cases(1, (1, 5)):
        rows, drafted, parents, distributions, real, coins, own = (part[0] for part in case)
        with no_host_reads():
            walk(rows, drafted, parents, None if point else distributions, real, coins, own)


# ---- whole runs ----


def task(kind: str, params: SamplingParams, k: int = 4) -> Task:
    view = view_of()
    bushy = MedusaTreeDrafter(view, HEADS)
    eagle = Eagle3TreeDrafter(view, EAGLE3, 160)
    return Task(view, TOY_TEXT, params, bushy if kind == "bushy" else eagle, k)


HEADS = MedusaHeads(medusa_weights(), TARGET, BUSHY)


def runs() -> Iterator[Any]:
    for kind, (name, params) in itertools.product(
        ("bushy", "eagle3"), {"greedy": GREEDY, "sampled": WARM, "few tokens": FEW}.items()
    ):
        for k in (4, 2, 7):
            short = k == 4 and name != "sampled"  # `test_graphs` has those
            marks = [] if short else [pytest.mark.long]
            yield pytest.param(kind, params, k, marks=marks, id=f"{kind}-{name}-{k}")


@pytest.mark.parametrize(("kind", "params", "k"), runs())
def test_a_run_is_the_plain_loops(kind: str, params: SamplingParams, k: int) -> None:
    """Node by node; with siblings that are kept after others were not, and distributions of fewer tokens than ranks."""
    one = task(kind, params, k)
    plain = list(engine.generate(one, table(one)))
    device = list(lane.on_device(task(kind, params, k)))
    assert [told(event) for event in device] == [told(event, nearly) for event in plain]
    sizes = {len(event.tokens) for event in device if isinstance(event, Drafted)}
    if k == 4 and (kind == "bushy" or (kind == "eagle3" and params is GREEDY)):
        assert sum(kept_seconds(device))
    if params is FEW and kind == "bushy":
        assert max(sizes) < len(BUSHY)


def kept_seconds(events: list[Event]) -> Iterator[int]:
    """Of every cycle, the nodes that were kept after an elder sibling was rejected."""
    parents: tuple[int, ...] = ()
    for event in events:
        if isinstance(event, Drafted):
            parents = event.parents
        if isinstance(event, Verified) and event.positions:
            fates = [position.status for position in event.positions]
            kept = [node for node, fate in enumerate(fates) if fate == "accepted"]
            yield sum(parents.index(parents[node]) < node for node in kept)


@pytest.mark.parametrize(("part", "params"), [(HEADS, WARM), (EAGLE3, GREEDY)], ids=["bushy", "eagle3"])
def test_after_every_cycle_the_cache_holds_the_text_alone(part: Any, params: SamplingParams) -> None:
    """Keys, values and states of each token but the last, in its place, whatever branch it came from."""
    cycle, model = TreeCycle(TARGET, Branching(part), 4, 60, params), TARGET
    cycle.begin(TOY_TEXT, 50, 5)
    moved = 0
    while cycle.length.item() < 50:
        record = cycle.run()
        path = record.verdict().path
        moved += path != tuple(range(len(path)))
        text = cycle.text[: cycle.length.item()].tolist()
        fresh = model.new_cache(60, part.taps)
        model.forward(text[:-1], fresh)
        end = len(text) - 1
        assert torch.allclose(cycle.target.cache.data[:, :, :end], fresh.data[:, :, :end], atol=2e-4)
        for tap, states in fresh.states.items():
            assert torch.allclose(cycle.target.cache.states[tap][:end], states[:end], atol=2e-3)
    assert moved


@pytest.mark.parametrize(("part", "params"), [(HEADS, WARM), (EAGLE3, GREEDY)], ids=["bushy", "eagle3"])
def test_no_node_falls_out_of_its_bucket(part: Any, params: SamplingParams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind texts of every length around a bucket's end a cycle is what it is in the whole cache."""
    for length in range(4, 20):
        records = []
        for smallest in (16, 128):
            monkeypatch.setattr(graphs, "SMALLEST", smallest)
            cycle = TreeCycle(TARGET, Branching(part), 4, 60, params)
            cycle.begin((TOY_TEXT * 3)[:length], 50, 3)
            records.append(cycle.run())
        narrow, whole = records
        assert replace(narrow, p=(), q=()) == replace(whole, p=(), q=())
        assert (*narrow.p, *narrow.q) == pytest.approx((*whole.p, *whole.q), abs=1e-4)


def test_a_broken_draft_does_not_count() -> None:
    heads = MedusaHeads(medusa_weights(), TARGET, BUSHY)
    heads.blocks = [(weight * float("nan"), bias) for weight, bias in heads.blocks]
    for params in (GREEDY, WARM):
        cycle = TreeCycle(TARGET, Branching(heads), 3, 60, params)
        cycle.begin(TOY_TEXT, 30, 3)
        record = cycle.run()
        assert not record.sound and record.finite and record.drafted == ()
