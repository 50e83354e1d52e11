"""The tokenizer inside a GGUF file, with the ids that the Hub's tokenizer.json of the same model gives.

transformers' conversion takes seconds, keeps rows that only pad, and does not cut numbers into digits, as SmolLM2 was
trained.
"""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, Regex, Tokenizer

from ..models.gguf_header import Header

UNKNOWN, CONTROL, OWN, UNUSED = 2, 3, 4, 5  # ggml's kinds of tokens; 1 is a normal one, 6 a byte
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT, BEFORE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3, QWEN2 = (rf"{SHORT}|{BEFORE}\p{{L}}+|\p{{N}}{most}|{REST}" for most in ("{1,3}", ""))
TEKKEN = rf"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|\p{{N}}|" + REST.replace(r"[\r\n]*", r"[\r\n/]*", 1)
GPT2, DIGITS = "gpt2", "digits"
# How a text is cut before its pieces are merged, by llama.cpp's names (`src/llama-vocab.cpp`).
SPLITS = {
    "gpt-2": GPT2, "smollm": DIGITS, "starcoder": DIGITS, "llama-bpe": LLAMA3, "llama3": LLAMA3, "llama-v3": LLAMA3,
    "qwen2": QWEN2, "tekken": TEKKEN,
}  # fmt: skip
WHOLE = (LLAMA3, TEKKEN)  # a piece that is a token is never merged from smaller ones
ENDS = ("<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>")  # of an answer; a file names the end of a text alone


def tokenizer(header: Header) -> Tokenizer:
    """ValueError for a kind that is not known here."""
    words, kind = header.value("tokenizer.ggml.tokens"), header.value("tokenizer.ggml.model")
    kinds = header.value("tokenizer.ggml.token_type", [1] * len(words))
    if kind not in ("gpt2", "llama"):
        raise ValueError(f"its tokenizer is of the kind {kind}; gpt2 and llama are read here")
    # Rows of the matrices that no token belongs to are called so by the converter.
    table = {word: i for i, word in enumerate(words) if not (kinds[i] == UNUSED and word.startswith("[PAD"))}
    made = byte_level(header, table) if kind == "gpt2" else sentence_piece(header, table, kinds)
    special = [word for word, i in table.items() if kinds[i] in (UNKNOWN, CONTROL)]
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    made.add_tokens([AddedToken(word, normalized=False) for word, i in table.items() if kinds[i] == OWN])
    usual = kind == "llama" or SPLITS.get(header.value("tokenizer.ggml.pre", "")) == LLAMA3
    if header.value("tokenizer.ggml.add_bos_token", usual) and (first := control(header, "bos")):
        made.post_processor = processors.TemplateProcessing([first, "$A"], special_tokens=[(first, table[first])])
    return made


def byte_level(header: Header, table: dict[str, int]) -> Tokenizer:
    """As GPT-2's: bytes are characters, and pairs are merged in the order of a list."""
    name = header.value("tokenizer.ggml.pre", "")
    if name not in SPLITS:
        raise ValueError(f"texts are cut by {name!r}, which is not among {', '.join(SPLITS)}")
    pattern, plain = SPLITS[name], pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs = [(*merge.split(" "),) for merge in header.value("tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE(vocab=table, merges=pairs, ignore_merges=pattern in WHOLE))
    steps: list[Any] = [plain]
    if pattern == DIGITS:
        steps = [pre_tokenizers.Digits(individual_digits=True), plain]
    elif pattern != GPT2:
        steps = [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if pattern == QWEN2:
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    return made


def sentence_piece(header: Header, table: dict[str, int], kinds: list[int]) -> Tokenizer:
    """As Llama 2's: of all pairs that are a token the one with the best score is merged."""
    scores, ranked = header.value("tokenizer.ggml.scores"), []
    for word, i in table.items():
        if kinds[i] not in (UNKNOWN, CONTROL):
            cuts = ((word[:at], word[at:]) for at in range(1, len(word)))
            pairs = [pair for pair in cuts if pair[0] in table and pair[1] in table]
            ranked += [(-scores[i], pair) for pair in sorted(pairs, key=lambda pair: (table[pair[0]], table[pair[1]]))]
    ranked.sort(key=lambda one: one[0])
    unknown = next((word for word, i in table.items() if kinds[i] == UNKNOWN), None)
    merges = [pair for _, pair in ranked]
    made = Tokenizer(models.BPE(vocab=table, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    begins = header.value("tokenizer.ggml.add_space_prefix", True)
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁")] * begins + [normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence(steps + [decoders.Strip(" ", 1, 0)] * begins)
    return made


def control(header: Header, name: str) -> str:
    """The text of the token that the file calls so, "" if it names none."""
    number = header.fields.get(f"tokenizer.ggml.{name}_token_id")
    return "" if number is None else str(header.value("tokenizer.ggml.tokens")[number])


def controls(header: Header) -> dict[str, str]:
    """What a chat template may name."""
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    texts = {f"{ours}_token": control(header, theirs) for ours, theirs in names.items()}
    return {name: text for name, text in texts.items() if text}


def end_tokens(header: Header) -> frozenset[int]:
    """The tokens that end a text or an answer."""
    words = header.value("tokenizer.ggml.tokens")
    kinds = header.value("tokenizer.ggml.token_type", [1] * len(words))
    named = (header.fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    marked = (i for i, word in enumerate(words) if word in ENDS and kinds[i] == CONTROL)
    return frozenset(token for token in (*named, *marked) if token is not None)
