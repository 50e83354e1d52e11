"""Values that nobody should send: random ones, and near misses of what is expected."""

from __future__ import annotations

import json
import random
from typing import Any

TEXTS = (
    "", " ", "\0", "\ud800", "\ufeff", "\u202e", "a" * 4_001, "%s%n", "../../etc/passwd", "file:///etc/passwd",
    "${jndi:ldap://x}", "{{7*7}}", "<script>alert(1)</script>", "' OR 1=1 --", "NaN", "1e999", "-0", "None", "null",
    "embedded", "toy", "draft_model", "adaptive:adaptive", "eagle3:", "rejection", "block", "story", "http://127.0.0.1",
    "https://user:pass@host/", "http://[::1", "http://x:99999", "TARGET + DRAFT", "a/b + c/d", "/etc + /proc",
    "\n\n\n", "\\n", "é" * 300, "日本語", "🏁" * 50, "١٢٣", "0x10", "1_000", "true", "[]", "{}",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 4, 16, 17, 64, 65, 256, 257, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 0.0, -0.0, 0.5, 1.5,
    4.0,    1e-45, 1e300, -1e300, 1.0000001, float("nan"), float("inf"), -float("inf"), True, False,
)  # fmt: skip


def text(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(TEXTS)
    if kind < 0.8:
        return "".join(
            chr(rng.choice([rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000)])) for _ in range(9)
        )
    return rng.choice(TEXTS) + rng.choice(TEXTS)


def value(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(NUMBERS)
    if kind < 0.7:
        return text(rng)
    if kind < 0.78 or depth == 0:
        return None
    if kind < 0.9:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {text(rng): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def octets(rng: random.Random, most: int = 200) -> bytes:
    return rng.randbytes(rng.randrange(most))


def damaged(sound: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    data = bytearray(sound)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((0, 1, 1, 7, 300))
        put = rng.choice(
            (b"", octets(rng, 9), b'"', b"{", b"\n", b"null", b"-1", b"1e999", b"\xff", bytes(data[at : at + 50]))
        )
        data[at : at + length] = put
    return bytes(data)


def spoiled(value_of: Any, rng: random.Random, chance: float = 0.05) -> Any:
    """The same JSON, with values put wrong by chance."""
    if rng.random() < chance:
        return value(rng)
    if isinstance(value_of, dict):
        kept = {name: spoiled(item, rng, chance) for name, item in value_of.items() if rng.random() > chance / 4}
        return kept | ({text(rng): value(rng)} if rng.random() < chance else {})
    if isinstance(value_of, list):
        return [spoiled(item, rng, chance) for item in value_of]
    return value_of


def written(told: Any) -> bytes:
    """As JSON, with what only some parsers take: NaN, lone surrogates."""
    return json.dumps(told, ensure_ascii=True).encode()
