"""Several texts in one pass, against each of them alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from test_models import FAMILIES, reference

from specdec.families import zoo
from specdec.models.batched import BatchCache, forward
from specdec.models.transformer import Transformer


def alike(model: Transformer, vocabulary: int, seed: int = 0) -> float:
    """The largest difference of texts of random lengths in a batch to each alone, as a share of the largest logit."""
    rng = random.Random(seed)
    apart = 0.0
    for texts, longest, rows in ((1, 9, 1), (3, 30, 4), (5, 30, 1), (4, 12, 8)):
        prompts = [rng.choices(range(vocabulary), k=longest) for _ in range(texts)]
        added = [rng.choices(range(vocabulary), k=rows) for _ in range(texts)]
        batch = BatchCache(model, texts, longest + 2 * rows)
        forward(model, prompts, batch)
        batch.lengths = [rng.randint(1, longest) for _ in range(texts)]  # rolled back: after it stands other text
        found = forward(model, added, batch, rows)
        again = forward(model, added, batch, rows)
        for i, (prompt, new, length) in enumerate(zip(prompts, added, batch.lengths, strict=True)):
            cache = model.new_cache(longest + 2 * rows)
            with torch.inference_mode():
                model.forward(prompt[: length - 2 * rows], cache)
                alone = [model.forward(new, cache, rows=rows) for _ in range(2)]
            pairs = zip((found[i], again[i]), alone, strict=True)
            apart = max(apart, *(float((x - y).abs().max() / y.abs().max()) for x, y in pairs))
    return apart


@pytest.mark.parametrize("name", FAMILIES)
def test_a_text_in_a_batch_gets_the_logits_that_it_gets_alone(name: str, tmp_path: Path) -> None:
    reference(FAMILIES[name]).save_pretrained(tmp_path)
    assert alike(Transformer.load(tmp_path), 97) < 1e-5


def test_the_embedded_pair_in_a_batch(shallow: str) -> None:
    family = zoo.load(shallow, torch.float32)
    target, draft = family.target, family.draft
    assert isinstance(target, Transformer) and isinstance(draft, Transformer)
    assert alike(target, target.vocabulary) < 1e-5
    assert alike(draft, draft.vocabulary) < (
        1e-5 if draft.stored != torch.int8 else 0.02
    )  # its inputs are rounded to 16 bits


def test_texts_that_do_not_fit_are_refused(shallow: str) -> None:
    target = zoo.load(shallow, torch.float32).target
    assert isinstance(target, Transformer)
    cache = BatchCache(target, 2, 4)
    with pytest.raises(ValueError, match="5 tokens do not fit a cache of 4"):
        forward(target, [[1] * 5, [2] * 5], cache)
    with pytest.raises(ValueError, match=r"2 texts add as many tokens each, not \[1, 2\]"):
        forward(target, [[1], [2, 3]], cache)
    with pytest.raises(ValueError, match="2 texts"):
        forward(target, [[1]], cache)
    assert cache.lengths == [0, 0]
