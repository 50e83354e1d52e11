"""What a visitor asks for, checked. Input comes from the page and from the API, so no type is taken on trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..exposure import limits
from ..families import presets
from ..methods import ADAPTIVE, CHAINS_ONLY, DEFAULT, EMBEDDED, known, ROUNDED, RULES, WRAPPERS
from ..types import check_grammar, has_lone_surrogate, MAX_STOP_LENGTH, MAX_STOPS, SamplingParams
from .menu import drafters, families, has_peer, is_pair
from .text import strings, teaching, translated

MAX_PROMPT, MAX_K, MAX_NEW = limits().prompt, limits().k, limits().tokens
MAX_TEMPERATURE, MAX_TOP_K, MAX_SEED = 2.0, 1_000, 2**31 - 1
MAX_TEXT = 500  # characters of an address, or of a key
DRAWS = (100, 1_000, 5_000, 10_000, 20_000)  # of a certificate
SERVER_DRAWS = (1_000, 2_000, 5_000, 10_000, 20_000)  # of a server's, at each context
PAIRS = ("toy", "grammar", "embedded")
PUPIL = "draft_model:story"  # who begins to learn: it has seen neither code nor facts
MOST_OWN = 8  # prompts of a visitor's own that a draft learns from


class InputError(ValueError):
    """One sentence for the visitor that says what to do."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    prompt: str
    drafter: str
    k: int
    params: SamplingParams
    rule: str = "rejection"
    family: str = EMBEDDED
    peer: bool = False


def check(
    prompt: Any,
    drafter: Any = "draft_model",
    k: Any = 4,
    temperature: Any = 0.0,
    top_p: Any = 1.0,
    top_k: Any = 0,
    max_tokens: Any = 64,
    seed: Any = 0,
    stop: Any = "",
    rule: Any = "rejection",
    family: Any = EMBEDDED,
    peer: Any = False,
    grammar: Any = "",
) -> RunRequest:
    """The request, or an InputError for the first thing that is wrong with it. A peer that cannot be has no lane."""
    family, rule = known_family(family), known_rule(rule)
    drafter = known_drafter(drafter, family)
    if rule in CHAINS_ONLY and (method := known(drafter)) and method.tree:
        raise InputError(say("chains_only"))
    if not isinstance(peer, bool):
        raise InputError(say("peer"))
    params = sampling(temperature, top_p, top_k, max_tokens, seed, stop, grammar)
    k = whole("k", k, 0, MAX_K)
    peer = peer and has_peer(drafter) and k > 0 and ROUNDED.get(family) != "int8"  # transformers has no such target
    if peer and params.grammar is not None:
        raise InputError(say("grammar_peer"))
    return RunRequest(readable(prompt), drafter, k, params, rule, family, peer)


def sampling(
    temperature: Any, top_p: Any, top_k: Any, max_tokens: Any, seed: Any, stop: Any, grammar: Any
) -> SamplingParams:
    return SamplingParams(
        temperature=number("temperature", temperature, MAX_TEMPERATURE),
        top_k=whole("top_k", top_k, 0, MAX_TOP_K),
        top_p=share(top_p),
        max_tokens=whole("max_tokens", max_tokens, 1, MAX_NEW),
        seed=whole("seed", seed, 0, MAX_SEED),
        stop=stops(stop),
        grammar=known_grammar(grammar),
    )


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """`mistake` "" is the shipped rule; `text` is where the embedded pair is certified."""

    pair: str
    mistake: str
    draws: int
    seed: int
    text: str = ""


def check_certificate(
    pair: Any = "toy", mistake: Any = "", draws: Any = 20_000, seed: Any = 0, text: Any = ""
) -> CertificateRequest:
    known = strings("lossless")["grammar_mistakes" if pair == "grammar" else "mistakes"]
    if not isinstance(pair, str) or pair not in PAIRS:
        raise InputError(say("pair", names=", ".join(PAIRS)))
    if not isinstance(mistake, str) or mistake not in ("", *known):
        raise InputError(say("mistake", names=", ".join(known)))
    many, seed = one_of(DRAWS, draws), whole("seed", seed, 0, MAX_SEED)
    return CertificateRequest(pair, mistake, many, seed, readable(text) if pair == "embedded" else "")


@dataclass(frozen=True, slots=True)
class LearningRequest:
    """`own` are prompts that the visitor ran."""

    kind: str
    drafter: str
    own: tuple[str, ...] = ()


def check_learning(kind: Any = "code", drafter: Any = "draft_model:story", own: Any = ()) -> LearningRequest:
    if not isinstance(kind, str) or kind not in teaching():
        raise InputError(say("kind", names=", ".join(teaching())))
    if not isinstance(drafter, str) or drafter not in pupils():
        raise InputError(say("pupil", names=", ".join(pupils())))
    if not isinstance(own, list | tuple):
        raise InputError(say("not_text"))
    return LearningRequest(kind, drafter, tuple(map(readable, own[-MOST_OWN:])))


def pupils() -> list[str]:
    """The drafters that can learn here, the one with most to learn first: draft models by themselves."""
    names = [name for name in drafters() if name.partition(":")[0] == DEFAULT]
    return sorted(names, key=lambda name: name != PUPIL)


@dataclass(frozen=True, slots=True)
class ExaminationRequest:
    """Of a server. `embedded`: it serves the embedded family, so that its weights are the reference."""

    address: str
    plain: str
    key: str = field(repr=False)
    embedded: bool
    draws: int
    temperature: float
    seed: int


def check_examination(
    address: Any = "", plain: Any = "", key: Any = "", embedded: Any = False, draws: Any = 2_000,
    temperature: Any = 0.8, seed: Any = 0,
) -> ExaminationRequest:  # fmt: skip
    address, plain, key = server_texts(address, plain, key)
    if not address:
        raise InputError(say("no_address"))
    if not isinstance(embedded, bool):
        raise InputError(say("embedded"))
    if not (plain or embedded):
        raise InputError(say("no_reference"))
    heat = number("temperature", temperature, MAX_TEMPERATURE)
    return ExaminationRequest(
        address, plain, key, embedded, one_of(SERVER_DRAWS, draws), heat, whole("seed", seed, 0, MAX_SEED)
    )


def listed(names: Sequence[str]) -> str:
    """Drafters with their variants in brackets: `medusa (:tree), none`."""
    variants: dict[str, list[str]] = {}
    for base, colon, variant in (name.partition(":") for name in names):
        variants.setdefault(base, []).extend([colon + variant] if colon else [])
    return ", ".join(f"{base} ({', '.join(more)})" if more else base for base, more in variants.items())


def server_texts(*texts: Any) -> list[str]:
    """Addresses and a key, without the spaces around them."""
    for text in texts:
        if not (text is None or isinstance(text, str)) or len(text or "") > MAX_TEXT:
            raise InputError(say("server"))
    return [(text or "").strip() for text in texts]


def one_of(known: Sequence[int], draws: Any) -> int:
    if not is_number(draws) or draws not in known:
        raise InputError(say("draws", names=", ".join(f"{n:,}" for n in known)))
    return int(draws)


def known_family(name: Any) -> str:
    names = families()
    if isinstance(name, str) and (name in names or is_pair(name)):
        return name
    raise InputError(say("family" if presets.allowed() is not None else "family_or_pair", names=", ".join(names)))


def known_drafter(name: Any, family: str) -> str:
    """One of the menu, or `adaptive:NAME`: that one, with a depth chosen in every cycle."""
    names = drafters(family)
    fixed = [name for name in names if name not in (*WRAPPERS, "none")]
    if not isinstance(name, str) or name not in [*names, *(f"{ADAPTIVE}:{one}" for one in fixed)]:
        raise InputError(say("drafter", names=listed(names)))
    return name


def known_rule(name: Any) -> str:
    if not isinstance(name, str) or name not in RULES:
        raise InputError(say("rule", names=", ".join(RULES)))
    return name


def readable(prompt: Any) -> str:
    if not isinstance(prompt, str):
        raise InputError(say("not_text"))
    if len(prompt) > MAX_PROMPT:  # before anything looks at every character
        raise InputError(say("too_long", n=f"{len(prompt):,}", limit=f"{MAX_PROMPT:,}"))
    if "\0" in prompt:
        raise InputError(say("nul"))
    if has_lone_surrogate(prompt):
        raise InputError(say("surrogate"))
    if not prompt.strip():
        raise InputError(say("empty"))
    return prompt


def sent(event: Any, name: str) -> Any:
    """What an event of the page brings under that name, None if nothing. Anybody can send anything in its place."""
    try:
        return getattr(event, name, None)
    except TypeError:  # it is no mapping
        return None


def is_number(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, float) and math.isfinite(value))


def number(name: str, value: Any, high: float) -> float:
    if not is_number(value) or not 0 <= value <= high:
        raise InputError(say("number", name=strings("page")["names"][name], low=0, high=f"{high:g}"))
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Sliders send 4.0 for 4; 4.5 is refused."""
    if not is_number(value) or value != int(value) or not low <= value <= high:
        raise InputError(say("whole", name=strings("page")["names"][name], low=low, high=f"{high:,}"))
    return int(value)


def share(value: Any) -> float:
    if not is_number(value) or not 0 < value <= 1:
        raise InputError(say("top_p"))
    return float(value)


def stops(value: Any) -> tuple[str, ...]:
    r"""One stop string a line; `\n` stands for a line break."""
    wrong = InputError(say("stop", count=MAX_STOPS, length=MAX_STOP_LENGTH))
    if value is None:
        return ()
    if not isinstance(value, str) or len(value) > 4 * MAX_STOPS * MAX_STOP_LENGTH:
        raise wrong
    found = tuple(line.replace("\\n", "\n") for line in value.split("\n") if line)
    if len(found) > MAX_STOPS or any(len(item) > MAX_STOP_LENGTH for item in found):
        raise wrong
    if "\0" in value or has_lone_surrogate(value):
        raise wrong
    return found


def known_grammar(grammar: Any) -> str | None:
    """None where there is none. The engine compiles it: what may take long is not done here."""
    if grammar is None or grammar == "":
        return None
    if not isinstance(grammar, str):
        raise InputError(say("grammar_text"))
    try:
        check_grammar(grammar)
    except ValueError as error:
        raise InputError(translated(error.args[0])) from None
    return grammar


def say(error: str, **values: Any) -> str:
    return strings("page")["errors"][error].format(**values)
