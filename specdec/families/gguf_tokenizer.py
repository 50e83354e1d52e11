"""Read the tokenizer in a GGUF file. Its ids equal those of the model's tokenizer.json on the Hub."""

from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, Regex, Tokenizer

from ..messages import Refused
from ..models.gguf_header import Header

REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
LLAMA3 = rf"{WORDS}|\p{{N}}{{1,3}}|{REST}"
QWEN2 = rf"{WORDS}|\p{{N}}|{REST}"
GPT2 = "gpt2"
DIGITS = "digits"
# llama.cpp's name for a split (`src/llama-vocab.cpp`) -> how a text is split before pairs are merged
SPLITS = {"gpt-2": GPT2, "smollm": DIGITS, "llama-bpe": LLAMA3, "qwen2": QWEN2}
ENDS = ("<|eot_id|>", "<|im_end|>", "<|end|>")  # these end an answer even if the header does not list them


def load_tokenizer(header: Header) -> Tokenizer:
    """Make the tokenizer of a GGUF file. Raises Refused for a kind that is not supported."""
    kind, split = header.value("tokenizer.ggml.model"), SPLITS.get(header.value("tokenizer.ggml.pre", ""), "")
    if kind == "llama":
        from transformers import AutoTokenizer

        path = header.path
        tokenizer: Tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).backend_tokenizer
    elif kind == "gpt2" and split:  # transformers would not split SmolLM2's numbers into digits
        tokenizer = byte_level_of(header, split)
    else:
        name = header.value("tokenizer.ggml.pre", "")
        raise Refused(f"its tokenizer is of the kind {kind} {name}; supported are {', '.join(SPLITS)}")
    begins = header.value("tokenizer.ggml.add_bos_token", kind == "llama" or split == LLAMA3)
    if begins and (first := control(header, "bos")):  # transformers 5.20 leaves it out
        bos = (first, header.value("tokenizer.ggml.bos_token_id"))
        tokenizer.post_processor = processors.TemplateProcessing([first, "$A"], special_tokens=[bos])
    return tokenizer


def byte_level_of(header: Header, split: str) -> Tokenizer:
    from gguf import TokenType

    texts = header.value("tokenizer.ggml.tokens")
    types = header.value("tokenizer.ggml.token_type", [TokenType.NORMAL] * len(texts))
    # Padding rows, which the converter calls [PAD…], are left out.
    table = {text: i for i, text in enumerate(texts) if not (types[i] == TokenType.UNUSED and text.startswith("[PAD"))}
    tokenizer = byte_level(split, table, header.value("tokenizer.ggml.merges"))
    controls = [text for text, i in table.items() if types[i] == TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in controls])
    user_defined = [text for text, i in table.items() if types[i] == TokenType.USER_DEFINED]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in user_defined])
    return tokenizer


def byte_level(split: str, table: dict[str, int], merges: list[str]) -> Tokenizer:
    """Make a byte-level BPE tokenizer like GPT-2's. `split` is a value of SPLITS."""
    pairs: Any = [tuple(merge.split(" ")) for merge in merges]
    # If a whole piece is a token, Llama 3 uses that token without trying any merges.
    tokenizer = Tokenizer(models.BPE(vocab=table, merges=pairs, ignore_merges=split == LLAMA3))
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if split == DIGITS:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    elif split != GPT2:
        steps = [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if split == QWEN2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def control(header: Header, name: str) -> str:
    """Return the text of the control token `name`; "" if the file has none."""
    number = header.fields.get(f"tokenizer.ggml.{name}_token_id")
    return "" if number is None else str(header.value("tokenizer.ggml.tokens")[number])


def controls(header: Header) -> dict[str, str]:
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    texts = {f"{name}_token": control(header, gguf_name) for name, gguf_name in names.items()}
    return {name: text for name, text in texts.items() if text}


def end_tokens(header: Header) -> frozenset[int]:
    texts = header.value("tokenizer.ggml.tokens")
    named = (header.fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    marked = (i for i, text in enumerate(texts) if text in ENDS)
    return frozenset(token for token in (*named, *marked) if token is not None)
