"""What a certificate of a server comes to: the verdict, its sentences, its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import TranslatableText
from .base import ServerError

LOSSLESS, LOSSY, IDLE, UNKNOWN = "lossless", "not lossless", "speculation never ran", "cannot be tested"
STATUS = {LOSSLESS: 0, LOSSY: 1, IDLE: 1, UNKNOWN: 2}


def judge(result: dict[str, Any], error: ServerError | None = None) -> dict[str, Any]:
    """The verdict with its sentences, of what was found at every context; `error` is why there is none."""
    contexts = result["contexts"]
    if error is not None:
        return verdict(UNKNOWN, error.said)
    idle = idleness(contexts)
    parted = [one for one in contexts if one["greedy"]["gap"] is not None and not one["near_tie"]]
    red = [one for one in contexts if any(one.get("red", ()))]
    if red and result["plain"] is None and any(one["red"][0] for one in red):
        return verdict(
            UNKNOWN,
            TranslatableText(
                "Even the first token, which is never drafted, does not follow the distribution of these weights: "
                "other weights, another precision, or settings of its own."
            ),
        )
    if red or parted:
        return verdict(LOSSY, *map(sampled, red[:1]), *map(differs, parted[:1]), *idle)
    if idle:
        return verdict(IDLE, *idle)
    near = [one for one in contexts if one["near_tie"]]
    ties = (
        [TranslatableText("Greedy texts part at near-ties of two logits, in {n} contexts.", n=len(near))]
        if near
        else []
    )
    if not result["temperature"]:
        return verdict(LOSSLESS, TranslatableText("Greedy text is token for token that of plain decoding."), *ties)
    shown = shown_by(contexts, result["draws"])
    if not shown:
        return verdict(
            UNKNOWN,
            TranslatableText(
                "{n} draws at each context would have shown none of the known mistakes. Take more.", n=result["draws"]
            ),
        )
    known = len(contexts[0]["needed"])
    sentence = TranslatableText(
        "Lossless as far as {n} draws at each context can tell: they would have shown {shown} of {known} "
        "known mistakes.",
        n=result["draws"],
        shown=len(shown),
        known=known,
    )
    return verdict(LOSSLESS, sentence, *ties, *unheard(contexts))


def so_far(result: dict[str, Any]) -> dict[str, Any]:
    """What is certain before the end: a server that was seen to be wrong stays so. Else nothing."""
    contexts = result["contexts"]
    if not contexts or not all("greedy" in one for one in contexts):
        return {}
    parted = any(one["greedy"]["gap"] is not None and not one["near_tie"] for one in contexts)
    return judge(result) if parted or any(any(one.get("red", ())) for one in contexts) else {}


def against(result: dict[str, Any]) -> str:
    """What the server was held against."""
    if result["reference"] == "weights":
        return TranslatableText("the exact distribution of the target's weights")
    if result["reference"] == "log-probabilities":
        return TranslatableText("the distribution that the plain server tells")
    return TranslatableText("texts of the plain server")


def verdict(name: str, *sentences: str) -> dict[str, Any]:
    return {"verdict": name, "sentences": list(sentences), "status": STATUS[name]}


def idleness(contexts: Sequence[Any]) -> list[TranslatableText]:
    """Whether nothing was drafted, or nothing of it accepted, greedily or as sampled: a fault of its own."""
    for mode in ("greedy", "sampled"):
        counts = speculated(contexts, [mode])
        if counts and counts[0] == 0:
            return [TranslatableText("Speculation never ran: the server drafted no token.")]
        if counts and counts[1] == 0 and mode == "greedy":
            return [
                TranslatableText(
                    "Speculation never ran: of {n} tokens drafted for greedy text it accepted none.", n=counts[0]
                )
            ]
        if counts and counts[1] == 0:
            return [
                TranslatableText(
                    "Speculation never ran: of {n} tokens drafted at this temperature it accepted none.", n=counts[0]
                )
            ]
    return []


def speculated(contexts: Sequence[Any], modes: Sequence[str] = ("greedy", "sampled")) -> tuple[int, int] | None:
    """Tokens drafted and accepted in the texts that were watched; None where the server does not tell."""
    counts = [one["drafted"][mode] for one in contexts for mode in modes if one.get("drafted", {}).get(mode)]
    return (sum(drafted for drafted, _ in counts), sum(accepted for _, accepted in counts)) if counts else None


def unheard(contexts: Sequence[Any]) -> list[TranslatableText]:
    return [] if speculated(contexts) else [TranslatableText("The server does not tell whether it drafted anything.")]


def sampled(one: Any) -> str:
    """The token that shows it best."""
    seen = one["witness"]
    return TranslatableText(
        "Not lossless: after {text}, token {place} should be {piece} with probability {expected}, and is with "
        "{seen} (of {n} texts).",
        text=repr(shown_text(one)),
        place=seen["place"],
        piece=repr(seen["piece"]),
        expected=f"{seen['expected']:.4g}",
        seen=f"{seen['seen']:.4g}",
        n=seen["of"],
    )


def shown_text(one: Any) -> str:
    text = one["text"] if isinstance(one["text"], str) else f"{one['text']}"
    return text[-30:] + "".join(one["witness"]["after"])


def differs(one: Any) -> str:
    result = one["greedy"]
    return TranslatableText(
        "Not lossless: greedily, {name} parts from plain decoding at token {place}, where the two best logits "
        "lie {gap} apart.",
        name=one["name"],
        place=result["equal"] + 1,
        gap=f"{result['gap']:.3g}",
    )


def shown_by(contexts: Sequence[Any], draws: int) -> list[str]:
    """The known mistakes that so many draws would have shown at one context at least."""
    return [key for key in contexts[0]["needed"] if any((one["needed"][key] or draws + 1) <= draws for one in contexts)]
