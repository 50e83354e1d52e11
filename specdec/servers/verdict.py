"""Derive the verdict of a server's certificate, the sentences that explain it, and the exit status."""

from collections.abc import Sequence
from typing import Any

from .answers import ServerError

LOSSLESS = "lossless"
LOSSY = "not lossless"
IDLE = "speculation never ran"
UNKNOWN = "cannot be tested"
MAX_BIAS = 0.5  # a certificate that would miss larger ones everywhere says nothing
STATUS = {LOSSLESS: 0, LOSSY: 1, IDLE: 1, UNKNOWN: 2}


def judge(result: dict[str, Any], error: ServerError | None = None) -> dict[str, Any]:
    """Return the verdict on `result`, its sentences and exit status. `error` is the error that stopped the tests."""
    contexts = result["contexts"]  # `red` of each says which tests failed, that of the first token first
    if error is not None:
        return verdict(UNKNOWN, error.sentence)
    idle = describe_idleness(contexts)
    different = [context for context in contexts if context["greedy"]["gap"] is not None and not context["near_tie"]]
    failing = [context for context in contexts if any(context.get("red", ()))]
    if result["reference"] == "weights" and any(context["red"][0] for context in failing):
        return verdict(
            UNKNOWN,
            "Even the first token, which is never drafted, does not follow the distribution of these weights: "
            "the server uses other weights, another precision, or its own sampling settings.",
        )
    if failing or different:
        return verdict(LOSSY, *map(describe_witness, failing[:1]), *map(describe_difference, different[:1]), *idle)
    if idle:
        return verdict(IDLE, *idle)
    ties = []
    if near_ties := sum(context["near_tie"] for context in contexts):
        ties = [f"In {near_ties} of the contexts, the greedy texts differ, but only because two logits nearly tie."]
    if not result["temperature"]:
        return verdict(LOSSLESS, "The greedy text equals that of plain decoding, token for token.", *ties)
    if min(context["bias"] for context in contexts) >= MAX_BIAS:
        return verdict(UNKNOWN, f"{describe_bias(contexts, result['draws'])}. Raise the number of draws.")
    sentence = f"Lossless as far as this can tell: {describe_bias(contexts, result['draws'])}."
    silent = ["The server does not report whether it drafted anything."]
    return verdict(LOSSLESS, sentence, *ties, *([] if speculated(contexts) else silent))


def verdict(name: str, *sentences: str) -> dict[str, Any]:
    return {"verdict": name, "sentences": list(sentences), "status": STATUS[name]}


def describe_idleness(contexts: Sequence[Any]) -> list[str]:
    """Return a sentence if the server drafted or accepted nothing in its greedy texts, or in its sampled texts."""
    for mode in ("greedy", "sampled"):
        drafted, accepted = speculated(contexts, [mode]) or (1, 1)
        if not drafted:
            return ["Speculation never ran: the server drafted no token."]
        if not accepted:
            return [f"Speculation never ran: the server accepted none of {drafted} drafted tokens."]
    return []


def speculated(contexts: Sequence[Any], modes: Sequence[str] = ("greedy", "sampled")) -> tuple[int, int] | None:
    """Return the numbers of drafted and accepted tokens; None if the server does not report them."""
    counts = [
        context["drafted"][mode] for context in contexts for mode in modes if context.get("drafted", {}).get(mode)
    ]
    return (sum(drafted for drafted, _ in counts), sum(accepted for _, accepted in counts)) if counts else None


def describe_witness(context: Any) -> str:
    seen = context["witness"]
    before = context["text"][-30:] + "".join(seen["after"])
    return (
        f"Not lossless: after {before!r}, token {seen['place']} should be {seen['piece']!r} with probability "
        f"{seen['expected']:.4g}, but its share is {seen['seen']:.4g} (of {seen['of']} texts)."
    )


def describe_difference(context: Any) -> str:
    greedy, name = context["greedy"], context["name"]
    return (
        f"Not lossless: the greedy text of {name} differs from plain decoding's at token {greedy['equal'] + 1}, "
        f"where the two best logits are {greedy['gap']:.3g} apart."
    )


def describe_bias(contexts: Sequence[Any], draws: int) -> str:
    """Say what any mistake must move to be noticed. `bias` of a context is a total variation (`noticed_bias`)."""
    shares = ", ".join(f"{context['bias']:.0%} of the probability after {context['name']!r}" for context in contexts)
    return f"{draws} draws at each context show, in 999 of 1,000 certificates, any mistake that moves {shares}"
