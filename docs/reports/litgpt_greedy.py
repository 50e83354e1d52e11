"""LitGPT's speculative decoding at temperature 0, on models whose distribution is a row of three numbers.

    pip install litgpt==0.5.13
    python litgpt_greedy.py

It takes seconds, and no weights.
"""

from collections import Counter
from importlib.metadata import version

import torch
from litgpt.generate import speculative_decoding as own

P, Q, CALLS = (0.55, 0.40, 0.05), (0.40, 0.55, 0.05), 2_000


def model(row: tuple[float, ...]):
    """The same distribution at each place, whatever came before."""
    return lambda idx, input_pos, input_pos_maxp1: torch.tensor(row).log().expand(1, idx.shape[1], -1)


def first_token(target: tuple[float, ...], draft: tuple[float, ...], **options) -> int:
    start = torch.tensor([0]), torch.tensor([1]), 2
    return int(own.speculative_decoding(model(draft), model(target), *start, speculative_k=1, **options)[0])


def shares(**options) -> dict[int, float]:
    counts = Counter(first_token(P, Q, **options) for _ in range(CALLS))
    return {token: counts[token] / CALLS for token in sorted(counts)}


if __name__ == "__main__":
    torch.manual_seed(0)
    print("litgpt", version("litgpt"), "· torch", torch.__version__)
    print(f"The target has {P}, so that greedy text is token 0 alone. The draft has {Q}.")
    print("temperature=0            ", shares(temperature=0.0))
    print("temperature=0, top_p=0   ", shares(temperature=0.0, top_p=0.0))
    print("temperature=1, top_k=1   ", shares(temperature=1.0, top_k=1))
    print("temperature=1, expected", dict(enumerate(P)), "found", shares(temperature=1.0))
