"""Judge a certificate of a server: the verdict, its sentences, its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import ServerError

LOSSLESS = "lossless"
LOSSY = "not lossless"
IDLE = "speculation never ran"
UNKNOWN = "cannot be tested"
STATUS = {LOSSLESS: 0, LOSSY: 1, IDLE: 1, UNKNOWN: 2}


def judge(result: dict[str, Any], error: ServerError | None = None) -> dict[str, Any]:
    """Return the verdict, its sentences and status for a finished certificate; `error` is why it could not finish."""
    contexts = result["contexts"]
    if error is not None:
        return verdict(UNKNOWN, error.sentence)
    idle = idleness(contexts)
    parted, red = greedy_differs(contexts), [one for one in contexts if any(one.get("red", ()))]
    if result["reference"] == "weights" and any(one["red"][0] for one in red):
        return verdict(
            UNKNOWN,
            "Even the first token, which is never drafted, does not follow the distribution of these weights: "
            "other weights, another precision, or settings of its own.",
        )
    if red or parted:
        return verdict(LOSSY, *map(sampled, red[:1]), *map(differs, parted[:1]), *idle)
    if idle:
        return verdict(IDLE, *idle)
    ties = []
    if near := sum(one["near_tie"] for one in contexts):
        ties = [f"Greedy texts part at near-ties of two logits, in {near} contexts."]
    if not result["temperature"]:
        return verdict(LOSSLESS, "Greedy text is token for token that of plain decoding.", *ties)
    draws, shown = result["draws"], len(shown_by(contexts, result["draws"]))
    if not shown:
        return verdict(
            UNKNOWN,
            f"{draws} draws at each context would have shown none of the known mistakes. Take more.",
        )
    sentence = (
        f"Lossless as far as {draws} draws at each context can tell: they would have shown {shown} of "
        f"{len(contexts[0]['needed'])} known mistakes."
    )
    silent = ["The server does not report whether it drafted anything."]
    return verdict(LOSSLESS, sentence, *ties, *([] if speculated(contexts) else silent))


def greedy_differs(contexts: Sequence[Any]) -> list[Any]:
    """Return the contexts whose greedy text parts from plain at no near-tie."""
    return [one for one in contexts if one["greedy"]["gap"] is not None and not one["near_tie"]]


def against(result: dict[str, Any]) -> str:
    """Say what the server was held against."""
    if result["reference"] == "weights":
        return "the exact distribution of the target's weights"
    return "the distribution that the plain server reports"


def verdict(name: str, *sentences: str) -> dict[str, Any]:
    return {"verdict": name, "sentences": list(sentences), "status": STATUS[name]}


def idleness(contexts: Sequence[Any]) -> list[str]:
    """Return a sentence if nothing was drafted or nothing accepted, greedily or sampled."""
    for mode in ("greedy", "sampled"):
        drafted, accepted = speculated(contexts, [mode]) or (1, 1)
        if not drafted:
            return ["Speculation never ran: the server drafted no token."]
        if not accepted:
            return [f"Speculation never ran: of {drafted} drafted tokens it accepted none."]
    return []


def speculated(contexts: Sequence[Any], modes: Sequence[str] = ("greedy", "sampled")) -> tuple[int, int] | None:
    """Return the tokens drafted and accepted in the texts that were watched; None where the server does not tell."""
    counts = [one["drafted"][mode] for one in contexts for mode in modes if one.get("drafted", {}).get(mode)]
    return (sum(drafted for drafted, _ in counts), sum(accepted for _, accepted in counts)) if counts else None


def sampled(one: Any) -> str:
    """Name the token that shows it best."""
    seen = one["witness"]
    before = one["text"][-30:] + "".join(seen["after"])
    return (
        f"Not lossless: after {before!r}, token {seen['place']} should be {seen['piece']!r} with probability "
        f"{seen['expected']:.4g}, and is with {seen['seen']:.4g} (of {seen['of']} texts)."
    )


def differs(one: Any) -> str:
    greedy = one["greedy"]
    return (
        f"Not lossless: greedily, {one['name']} parts from plain decoding at token {greedy['equal'] + 1}, where the "
        f"two best logits lie {greedy['gap']:.3g} apart."
    )


def shown_by(contexts: Sequence[Any], draws: int) -> list[str]:
    """Return the known mistakes that so many draws would have shown at one context at least."""
    return [key for key in contexts[0]["needed"] if any((one["needed"][key] or draws + 1) <= draws for one in contexts)]
