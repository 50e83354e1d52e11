"""The tokenizer inside a GGUF file, with the ids that the Hub's tokenizer.json of the same model gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, Regex, Tokenizer

from ..models.checkpoint import brief
from ..models.gguf import Header

UNKNOWN, CONTROL, OWN, UNUSED = 2, 3, 4, 5  # ggml's kinds of tokens; 1 is a normal one, 6 a byte
LONGEST = 512  # characters of a token
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
MAX_CUTS, MAX_MERGES = 8_000_000, 800_000  # of a tokenizer with scores: characters of its tokens, pairs that are merged
TOO_MANY = "its tokens are made of too many others"


def tokenizer(header: Header) -> Tokenizer:
    """ValueError for a kind that is not known here, or one that does not fit together."""
    words, kinds = vocabulary(header)
    kind = header.value("tokenizer.ggml.model", str)
    if kind not in ("gpt2", "llama"):
        raise ValueError(f"its tokenizer is of the kind {brief(repr(kind))}; gpt2 and llama are read here")
    # Rows of the matrices that no token belongs to are called so by the converter.
    padded = {number for number, word in enumerate(words) if kinds[number] == UNUSED and word.startswith("[PAD")}
    table = {word: number for number, word in enumerate(words) if number not in padded}
    if len(table) + len(padded) != len(words):
        raise ValueError("two of its tokens have the same text; download it again, or use another file")
    try:
        made = byte_level(header, table) if kind == "gpt2" else sentence_piece(header, table, kinds)
        special = [word for word, number in table.items() if kinds[number] in (UNKNOWN, CONTROL)]
        own = [word for word, number in table.items() if kinds[number] == OWN]
        made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
        made.add_tokens([AddedToken(word, normalized=False) for word in own])
    except Exception as error:  # the library has no class for it
        raise ValueError(f"its tokenizer does not fit together: {brief(error)}") from error
    begins = header.value("tokenizer.ggml.add_bos_token", bool, kind == "llama" or split(header) == LLAMA3)
    if begins and (first := control(header, "bos")):
        made.post_processor = processors.TemplateProcessing(
            single=[first, "$A"], pair=[first, "$A", "$B"], special_tokens=[(first, table[first])]
        )
    return made


def vocabulary(header: Header) -> tuple[list[str], list[int]]:
    """The tokens' texts by their ids, and their kinds."""
    words = header.value("tokenizer.ggml.tokens", list)
    kinds = header.value("tokenizer.ggml.token_type", list, [1] * len(words))
    if not words or len(kinds) != len(words) or not all(type(word) is str for word in words):
        raise ValueError("its tokens and their kinds do not fit together; download it again")
    if max(map(len, words)) > LONGEST:
        raise ValueError(f"one of its tokens is longer than {LONGEST} characters; download it again")
    return words, kinds


def split(header: Header) -> str | None:
    return SPLITS.get(header.value("tokenizer.ggml.pre", str, ""))


def byte_level(header: Header, table: Mapping[str, int]) -> Tokenizer:
    """As GPT-2's: bytes are characters, and pairs are merged in the order of a list."""
    pattern = split(header)
    if pattern is None:
        name = header.value("tokenizer.ggml.pre", str, "")
        raise ValueError(f"texts are cut by {brief(repr(name))}, which is not among {', '.join(SPLITS)}")
    pairs = [(*merge.split(" "),) for merge in header.value("tokenizer.ggml.merges", list)]
    made = Tokenizer(models.BPE(vocab=dict(table), merges=pairs, ignore_merges=pattern in WHOLE))
    if pattern == GPT2:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif pattern == DIGITS:
        parts = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.pre_tokenizer = pre_tokenizers.Sequence([*parts])
    else:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        made.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
    if pattern == QWEN2:
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    return made


def sentence_piece(header: Header, table: Mapping[str, int], kinds: Sequence[int]) -> Tokenizer:
    """As Llama 2's: of all pairs that are a token the one with the best score is merged."""
    scores = header.value("tokenizer.ggml.scores", list)
    if len(scores) != len(kinds):
        raise ValueError("there is not one score a token")
    found = []
    if sum(map(len, table)) > MAX_CUTS:
        raise ValueError(TOO_MANY)
    for word, number in table.items():
        if kinds[number] in (UNKNOWN, CONTROL):
            continue
        cuts = ((word[:at], word[at:]) for at in range(1, len(word)))
        here = [pair for pair in cuts if pair[0] in table and pair[1] in table]
        here.sort(key=lambda pair: (table[pair[0]], table[pair[1]]))
        found += [(-scores[number], pair) for pair in here]
        if len(found) > MAX_MERGES:
            raise ValueError(TOO_MANY)
    found.sort(key=lambda one: one[0])
    unknown = next((word for word, number in table.items() if kinds[number] == UNKNOWN), None)
    made = Tokenizer(
        models.BPE(
            vocab=dict(table), merges=[pair for _, pair in found], unk_token=unknown, fuse_unk=True, byte_fallback=True
        )
    )
    begins = header.value("tokenizer.ggml.add_space_prefix", bool, True)
    spaces = [*([normalizers.Prepend("▁")] if begins else []), normalizers.Replace(" ", "▁")]
    made.normalizer = normalizers.Sequence(spaces)
    read = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*read, *([decoders.Strip(" ", 1, 0)] if begins else [])])
    return made


def token(header: Header, name: str) -> int | None:
    """The id that the file calls so: bos, eos, eot, unknown, padding."""
    if f"tokenizer.ggml.{name}_token_id" not in header.fields:
        return None
    number: int = header.value(f"tokenizer.ggml.{name}_token_id", int)
    if not 0 <= number < len(header.value("tokenizer.ggml.tokens", list)):
        raise ValueError(f"its {name} token has the number {number}, which no token has; download it again")
    return number


def control(header: Header, name: str) -> str:
    """The text of that token, "" if the file names none."""
    number = token(header, name)
    return "" if number is None else str(header.value("tokenizer.ggml.tokens", list)[number])


def controls(header: Header) -> dict[str, str]:
    """What a chat template may name."""
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    found = {f"{ours}_token": control(header, theirs) for ours, theirs in names.items()}
    return {name: text for name, text in found.items() if text}


def end_tokens(header: Header) -> frozenset[int]:
    """The tokens that end a text or an answer."""
    words, kinds = vocabulary(header)
    named = {number for name in ("eos", "eot", "eom") if (number := token(header, name)) is not None}
    return frozenset(named | {i for i, word in enumerate(words) if word in ENDS and kinds[i] == CONTROL})
