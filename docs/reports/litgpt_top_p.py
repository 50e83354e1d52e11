"""LitGPT's speculative decoding with top_p below 1, on models whose distribution is a row of numbers.

    pip install litgpt==0.5.13
    python litgpt_top_p.py

It takes seconds, and no weights.
"""

from collections import Counter
from importlib.metadata import version

import torch
from litgpt.generate import speculative_decoding as own

V, TEXTS, CYCLES, K = 50, 400, 10, 3


def model(row: torch.Tensor):
    """The same distribution at each place, whatever came before."""
    return lambda idx, input_pos, input_pos_maxp1: row.log().expand(1, idx.shape[1], -1)


def text(target: torch.Tensor, draft: torch.Tensor, **options) -> str:
    """How a text of some cycles ends."""
    try:
        for _ in range(CYCLES):
            start = torch.tensor([0]), torch.tensor([1]), 2
            own.speculative_decoding(model(draft), model(target), *start, speculative_k=K, **options)
    except RuntimeError as error:
        return str(error)
    return "written"


if __name__ == "__main__":
    torch.manual_seed(0)
    print("litgpt", version("litgpt"), "· torch", torch.__version__)
    target = torch.distributions.Dirichlet(torch.full((V,), 0.3)).sample()
    draft = 0.7 * target + 0.3 * torch.distributions.Dirichlet(torch.full((V,), 0.3)).sample()
    print(f"{CYCLES} cycles of {K} drafts, {TEXTS} texts a line, temperature=1. The draft keeps 0.7 of its target:")
    for top_p in (1.0, 0.95, 0.9, 0.5):
        print(f"top_p={top_p}:", dict(Counter(text(target, draft, temperature=1.0, top_p=top_p) for _ in range(TEXTS))))
    print("The draft is the target, so that nothing is rejected:")
    print("top_p=0.9:", dict(Counter(text(target, target, temperature=1.0, top_p=0.9) for _ in range(TEXTS))))
    print("What a rejection calls, with a residual that is even over 50 tokens:")
    try:
        own.sample(torch.full((1, 1, V), 1 / V), temperature=1.0, top_p=0.9, apply_softmax=False)
    except RuntimeError as error:
        print(" ", error)
