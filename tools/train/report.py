"""What a trained target writes: samples to read, and a search for words that a classroom demo must not say."""

from __future__ import annotations

from typing import Any

import torch
from tqdm import tqdm
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from .corpus import blocked_words

SAMPLE_TOKENS, STORY_TOKENS = 100, 120
BEGINNINGS = {
    "story": ("Once upon a time", "The old captain", "“What is that?” said the girl."),
    "code": ("def read(path):\n", "class Queue:\n", "import os\n"),
    "facts": (
        "Q: What is the capital of Spain?\nA:",
        "Q: What is 8 plus 5?\nA:",
        "Q: Which month comes after June?\nA:",
    ),
}


@torch.inference_mode()
def sample(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: list[str], tokens: int, seed: int
) -> list[str]:
    """Continuations at temperature 0.8; prompts of one length share a batch."""
    torch.manual_seed(seed)
    texts = []
    for prompt in prompts:
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer.encode(prompt, add_special_tokens=False)]])
        ids = ids.to(model.device)
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=0.8, top_k=0, max_new_tokens=tokens,
            pad_token_id=0,
        )  # fmt: skip
        texts.append(tokenizer.decode(out[0, 1:], skip_special_tokens=True))
    return texts


def examine(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, stories: int, seed: int) -> dict[str, Any]:
    samples = {
        name: sample(model, tokenizer, list(prompts), SAMPLE_TOKENS, seed) for name, prompts in BEGINNINGS.items()
    }
    blocked, found = blocked_words(), []
    for text in tqdm(many_stories(model, tokenizer, stories, seed), total=stories, desc="reading", unit="story"):
        found += [match.group() for match in blocked.finditer(text)]
    return {"temperature": 0.8, "samples": samples, "stories_searched": stories, "blocked_words_found": found}


@torch.inference_mode()
def many_stories(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, count: int, seed: int) -> list[str]:
    """Stories from the bare beginning of a text, in batches."""
    torch.manual_seed(seed + 1)
    prompts = [tokenizer.encode(text, add_special_tokens=False) for text in BEGINNINGS["story"]]
    texts: list[str] = []
    while len(texts) < count:
        ids = prompts[len(texts) % len(prompts)]
        rows = min(100, count - len(texts))
        start = torch.tensor([[tokenizer.bos_token_id, *ids]] * rows, device=model.device)
        out = model.generate(
            start, attention_mask=torch.ones_like(start), do_sample=True, temperature=0.8, top_k=0,
            max_new_tokens=STORY_TOKENS, pad_token_id=0,
        )  # fmt: skip
        texts += tokenizer.batch_decode(out[:, 1:], skip_special_tokens=True)
    return texts
