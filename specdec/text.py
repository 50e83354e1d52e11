"""Turn tokens into text: the bytes of each token, streams of whole characters, stop strings that span tokens."""

import codecs
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from .messages import Refused, TranslatableText

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SENTENCEPIECE_SPACE = "▁"
# The byte of each character in GPT-2's table for byte-level BPE, which makes all bytes printable.
_printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_others = [byte for byte in range(256) if byte not in _printable]
BYTE_OF = {chr(b): b for b in _printable} | {chr(256 + i): b for i, b in enumerate(_others)}
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def ids_of(text: str, tokenizer: "Tokenizer") -> list[int]:
    """Encode a text without special tokens. Raises Refused if the tokenizer panics."""
    try:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of its Rust code; `except Exception` does not catch it
            raise
        reason = " ".join(str(error).split())[:200]
        raise Refused(TranslatableText("The tokenizer broke off at this text: {reason}", reason=reason)) from error


class Pieces:
    """Gives the bytes of each token id of a tokenizer.json (byte-level BPE, or SentencePiece with byte tokens)."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        self._special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        self._byte_level = "ByteLevel" in str(tokenizer.decoder)
        self.bytes = cache(self._bytes)

    def _bytes(self, token: int) -> bytes:
        """Return the bytes that the token adds to a text."""
        content = None if token in self._special else self._tokenizer.id_to_token(token)
        if content is None:  # a control token, or an id that only pads the vocabulary
            return b""
        if self._byte_level:
            return b"".join(bytes([BYTE_OF[c]]) if c in BYTE_OF else c.encode() for c in content)
        if byte := BYTE_TOKEN.fullmatch(content):
            return bytes([int(byte[1], 16)])
        return content.replace(SENTENCEPIECE_SPACE, " ").encode()

    def piece(self, token: int) -> str:
        """Return the token's text for display. If its bytes are not valid UTF-8, each is shown in hex, like <0xF0>."""
        if token in self._special:
            name = str(self._tokenizer.id_to_token(token))
            return name if name[:1] + name[-1:] in ("<>", "[]") else f"<{name}>"  # so that none looks like text
        data = self.bytes(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in data)


class TextStream:
    """Turns the bytes of tokens into text. Incomplete characters and possible stop strings are held back."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""  # text that is held back because it may begin a stop string
        self.stopped = False

    def push(self, data: bytes) -> str:
        """Add a token's bytes; return the text that became readable. Sets `stopped` when a stop string is complete."""
        return self._release(self._decoder.decode(data))

    def flush(self) -> str:
        """Return the text that is still pending; an incomplete character becomes a replacement mark."""
        rest = self._release(self._decoder.decode(b"", final=True))
        pending, self._pending = self._pending, ""
        return rest + ("" if self.stopped else pending)

    def _release(self, new: str) -> str:
        if not self._stop:
            return new
        if self.stopped:
            return ""
        text = self._pending + new
        starts = [start for stop in self._stop if (start := text.find(stop)) >= 0]
        if starts:
            self.stopped, self._pending = True, ""
            return text[: min(starts)]
        beginnings = (stop[:length] for stop in self._stop for length in range(1, len(stop)))
        keep = max((len(beginning) for beginning in beginnings if text.endswith(beginning)), default=0)
        self._pending = text[len(text) - keep :]
        return text[: len(text) - keep]
