"""Find out why a target rejects the drafts of a head: read the head by other conventions, one by one and in pairs.

The measure is the overlap β = Σ min(p, q), the chance that a draft from q is accepted, by place in a draft, along texts
that the target writes itself. The target reads its texts once, and only the head is computed anew. Rotary positions are
relative, so it does not matter from which number a head counts them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..drafters.block import W1, W2
from ..drafters.eagle3 import default_taps
from ..methods import methods_using
from ..models.checkpoint import open_weights, read_config, section
from ..models.matrix import draft_dtype
from ..models.packed import is_packed
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..paths import ASSETS
from ..types import SamplingParams
from .chat import Chat
from .formats import head_format
from .published import head_of
from .zoo import Family, LoadedMethod

PLACES = 4  # tokens of each draft
STRIDE = 2  # tokens between the beginnings of two drafts
ANSWER = 60  # tokens that the target writes after each prompt
TEXTS = 8
PAIRED = 4  # conventions of which pairs are tried
LEAST_GAIN = 0.03  # a convention is better if its drafts keep this many tokens more
LEAST_GAIN_OF_TEXTS = 0.25  # as above, on other texts, which can be easier by themselves
ERRORS = 3.0  # and as many standard errors more
WEAK = 0.25  # a head with a smaller overlap at the first place is weak, untrained or another target's
SAMPLED = SamplingParams(temperature=1.0, ignore_end=True)
SECTIONS = ("transformer_layer_config", "eagle_config", "dflash_config")  # of a config.json

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Text:
    """A text that the target wrote from `start` on, with what the target computed at each token."""

    tokens: list[int]
    start: int
    states: Mapping[int, Tensor]  # layer -> its inputs [n, hidden]
    p: Tensor  # [n - start, V]; row i is the distribution of token start + i


@dataclass(frozen=True)
class Convention:
    """A way to read a head that differs from what its config.json says. Of one `kind`, only one is tried at a time."""

    kind: str
    says: str
    edits: Mapping[str, Any] = field(default_factory=dict)  # key of config.json -> its value; None deletes the key
    tensors: Callable[[Weights], Weights] | None = None
    patch: Callable[[Any], None] | None = None  # changes the loaded head
    texts: Callable[[], Sequence[Text]] | None = None  # writes texts of another kind

    @property
    def remedy(self) -> str:
        if self.texts:
            return "ask the target so, or take a head that was trained on texts like yours"
        changes = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in self.edits.items() if value is not None)
        return f"write {changes} in config.json" if changes else "convert the checkpoint anew, whose tensors differ so"


@dataclass(frozen=True)
class Attempt:
    """What was measured with some conventions; with none, as config.json says."""

    conventions: tuple[Convention, ...]
    overlaps: Tensor  # [drafts, PLACES]; no rows if the head cannot be loaded so
    chance: float = 0.0  # the mean overlap of p with the p of another place
    error: str = ""

    @property
    def says(self) -> str:
        return "; ".join(one.says for one in self.conventions) or "as config.json says"

    @property
    def by_place(self) -> list[float]:
        return self.overlaps.mean(0).tolist() if len(self.overlaps) else []

    @property
    def score(self) -> float:
        """The expected number of accepted tokens of a draft."""
        return float(self.overlaps.cumprod(-1).sum(-1).mean()) if len(self.overlaps) else 0.0

    @property
    def drafts_well(self) -> bool:
        return bool(self.by_place) and self.by_place[0] > max(WEAK, 2 * self.chance)

    def beats(self, other: Attempt) -> bool:
        if not len(self.overlaps) or not len(other.overlaps):  # one of them cannot be loaded
            return self.drafts_well
        mine, theirs = (one.overlaps.cumprod(-1).sum(-1) for one in (self, other))
        gain = float(mine.mean() - theirs.mean())
        if any(way.texts for way in (*self.conventions, *other.conventions)):
            error = float(mine.var() / len(mine) + theirs.var() / len(theirs)) ** 0.5
            return gain > max(LEAST_GAIN_OF_TEXTS, ERRORS * error)
        return gain > max(LEAST_GAIN, ERRORS * float((mine - theirs).std()) / len(mine) ** 0.5)


@dataclass(frozen=True)
class Diagnosis:
    """What was tried, the best first. `status` is 0: nothing found, 1: a convention is wrong, 2: undecided."""

    stated: Attempt
    best: Attempt
    attempts: list[Attempt]
    status: int


def prompts_of(family: Family) -> list[str]:
    """Return prompts of the page: questions for a chat model, beginnings of texts for others."""
    lists = json.loads((ASSETS / ("questions.json" if family.chat else "prompts.json")).read_text(encoding="utf-8"))
    groups = (group["page"] if isinstance(group, dict) else group for group in lists.values())
    return [prompt for prompt in itertools.chain(*itertools.zip_longest(*groups)) if prompt][:TEXTS]


@torch.inference_mode()
def own_texts(family: Family, prompts: Sequence[str]) -> Iterator[Text]:
    """Let the target continue each prompt at temperature 1, and keep what it computes."""
    target, dice = family.target, torch.Generator().manual_seed(0)
    for prompt in prompts:
        tokens = family.encode(prompt)[-max(1, target.context - ANSWER) :]
        start, cache = len(tokens), target.new_cache(len(tokens) + ANSWER, range(target.depth + 1))
        rows = [target.forward(tokens, cache)]
        while len(rows) < ANSWER:
            tokens.append(int(torch.multinomial(rows[-1][0].float().softmax(-1).cpu(), 1, generator=dice)))
            if tokens[-1] in family.end_tokens:
                break
            rows.append(target.forward(tokens[-1:], cache))
        yield Text(tokens, start, cache.states, torch.cat(rows).float().softmax(-1))


class Examination:
    """A head, and the texts of its target on which it is measured. Raises ValueError if it cannot be examined."""

    def __init__(self, family: Family, folder: Path, texts: Sequence[Text], prompts: Sequence[str] = ()) -> None:
        self.family, self.texts = family, texts
        if not isinstance(family.target, Transformer):
            raise ValueError("transformers runs this target; heads need one that SpecDec's own decoder runs")
        self.config, self.weights = read_config(folder), dict(open_weights(folder))
        self.stored = draft_dtype(family.target.device) if is_packed(folder) else None
        if (form := head_format(self.config, self.weights)) not in MAKERS:
            raise ValueError("this is a draft model; the doctor examines heads, which read the target's states")
        makers = (*MAKERS[form], rotary, heads, sixteen_bits)
        self.ways = [way for make in makers for way in make(self.config, self.weights, family.target)]
        self.ways += templates(family, prompts[: TEXTS // 2])

    def load(self, conventions: Sequence[Convention] = ()) -> LoadedMethod:
        """Load the head by `conventions`. Raises ValueError if it cannot be loaded so."""
        weights = self.weights
        for way in conventions:
            weights = way.tensors(weights) if way.tensors else weights
        try:
            part = head_of(with_edits(self.config, conventions), weights, self.family.target, self.stored)
        except (KeyError, IndexError, RuntimeError) as error:
            raise ValueError(f"it cannot be loaded: {error}") from error
        for way in conventions:
            if way.patch:
                way.patch(part)
        return LoadedMethod(next(method for method in methods_using(part) if not method.tree), part)

    @torch.inference_mode()
    def attempt(self, *conventions: Convention, stride: int = STRIDE) -> Attempt:
        """Measure the head's overlap with the target, for drafts that begin at every `stride`th token."""
        try:
            loaded = self.load(conventions)
        except ValueError as error:
            return Attempt(conventions, torch.empty(0, PLACES), error=str(error))
        rows, chances = list[Tensor](), list[Tensor]()
        for text in next((way.texts() for way in conventions if way.texts), self.texts):
            view = TargetView(self.family.target, getattr(loaded.part, "taps", ()))
            view.cache = SimpleNamespace(states=text.states, length=0)
            drafter = loaded.method.make(view, loaded.part, len(text.tokens) + PLACES)
            for place in range(max(0, 2 - text.start), len(text.p) - PLACES, stride):
                here = text.start + place
                following, view.cache.length = iter(text.tokens[here:]), here - 1
                # A sampler that "draws" what the target wrote: the drafter reads on in the text.
                replay: Any = SimpleNamespace(categorical=lambda probs, key, following=following: next(following))
                q = drafter.propose(text.tokens[:here], PLACES, SAMPLED, replay).probs
                assert q is not None
                overlap = torch.minimum(text.p[place : place + len(q)], q).sum(-1)
                rows.append(pad(overlap, (0, PLACES - len(overlap))))
                chances.append(torch.minimum(text.p[place], text.p[place - 1]).sum())
        if not rows:
            return Attempt(conventions, torch.empty(0, PLACES), error="the target's texts are too short")
        return Attempt(conventions, torch.stack(rows).cpu(), float(torch.stack(chances).mean()))

    def diagnose(self, progress: Callable[[int, int], object] = lambda done, of: None) -> Diagnosis:
        """Measure the head by every convention, then by pairs. `progress` gets attempts made, and in all."""
        count = itertools.count(1)

        def measure(*conventions: Convention, stride: int = STRIDE) -> Attempt:
            done = next(count)
            progress(done, max(done, 1 + len(self.ways)))
            return self.attempt(*conventions, stride=stride)

        def best_of(attempts: Sequence[Attempt], other: Attempt) -> Attempt:
            return max((other, *(one for one in attempts if one.beats(other))), key=lambda one: one.score)

        stated = measure()
        attempts = sorted(map(measure, self.ways), key=lambda one: -one.score)
        best = best_of(attempts, stated)
        if best is not stated or not stated.drafts_well:
            likely = [one.conventions[0] for one in attempts[:PAIRED]]
            pairs = [(one, way) for i, one in enumerate(likely) for way in self.ways if way not in likely[: i + 1]]
            pairs = [pair for pair in pairs if pair[0].kind != pair[1].kind]
            # A third of the drafts is enough to sort out most pairs.
            pairs.sort(key=lambda pair: -measure(*pair, stride=3 * STRIDE).score)
            paired = [measure(*pair) for pair in pairs[:2]]
            attempts, best = attempts + paired, best_of(paired, best)
        attempts.sort(key=lambda one: (one is not best, -one.score))
        return Diagnosis(stated, best, attempts, 1 if best is not stated else 0 if stated.drafts_well else 2)


def with_edits(config: Mapping[str, Any], conventions: Sequence[Convention]) -> dict[str, Any]:
    """Return config.json with the conventions' edits, each in all sections that have its key."""
    changed = {key: dict(value) if key in SECTIONS and value else value for key, value in config.items()}
    for key, value in itertools.chain(*(way.edits.items() for way in conventions)):
        parts = [changed, *(section(changed, name) for name in SECTIONS)]
        for part in [part for part in parts if key in part] or [changed]:
            part.pop(key, None) if value is None else part.update({key: value})
    return changed


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return config.json with the keys of its sections beside all others."""
    return dict(itertools.chain(config.items(), *(section(config, name).items() for name in SECTIONS)))


def taps(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    """Yield other layers whose states the head may read."""
    facts, usual = flat(config), list(default_taps(target.depth))
    names = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "target_layer_ids")
    key = next((name for name in names if facts.get(name)), names[0])
    listed = list(config.get(key) or facts.get(key) or usual)
    for says, layers in {
        "the states one layer earlier": [layer - 1 for layer in listed],
        "the states one layer later": [layer + 1 for layer in listed],
        "the states in reverse order": listed[::-1],
        "the usual layers": usual,
        "the layers before the usual ones": [layer - 1 for layer in usual],
    }.items():
        if layers != listed and len(layers) * target.width == weights["fc.weight"].shape[1]:
            yield Convention("taps", says, {key: layers})


def switches(*names: str) -> Callable[..., Iterator[Convention]]:
    """Return a maker of conventions that turn a key of config.json which is true or false."""

    def make(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
        kinds = str((config.get("speculators_model_type"), config.get("architectures"))).lower()
        for name in names:
            usual = {"norm_output": "eh_proj.weight" in weights, "sample_from_anchor": "dspark" in kinds}
            value = not flat(config).get(name, usual.get(name, False))
            yield Convention(name, f"{name} {'on' if value else 'off'}", {name: value})

    return make


def eagle3_tensors(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    norms = [name for name in weights if name.endswith((".input_layernorm.weight", ".hidden_norm.weight"))]
    inputs = [name for name in weights if name.endswith(tuple(f"self_attn.{part}_proj.weight" for part in "qkv"))]
    yield Convention("order", "attention reading [feature, embedding]", tensors=swapped_halves(*inputs))
    yield Convention("norms", "the names of the two norms before attention exchanged", tensors=exchanged(*norms))
    if "d2t" in weights:
        offsets = weights["d2t"] - torch.arange(len(weights["d2t"]))
        yield Convention("map", "d2t as ids, not offsets", tensors=lambda tensors: {**tensors, "d2t": offsets})
    yield from own_copies(weights)


def mtp_tensors(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    yield Convention("order", "eh_proj reading [state, embedding]", tensors=swapped_halves("eh_proj.weight"))
    yield Convention("norms", "the names enorm and hnorm exchanged", tensors=exchanged("enorm.weight", "hnorm.weight"))
    yield Convention("state", "the target's states before its final norm", patch=read_raw)


def medusa_tensors(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    parts = {name: name.removeprefix("medusa_head.").split(".", 1) for name in weights}
    moved = {f"{int(number) - 1}.{rest}": weights[name] for name, (number, rest) in parts.items() if number != "0"}
    yield Convention("heads", "the first head left out, as it is for the next token", tensors=lambda tensors: moved)
    yield Convention("state", "the target's states before its final norm", patch=read_raw)


def block_tensors(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    facts, rows = flat(config), len(weights.get("embed_tokens.weight", target.embedding))
    named = {facts.get(f"{name}_token_id") for name in ("pad", "eos", "bos")} | {0, target.vocabulary - 1, rows - 1}
    for token in {i for i in named if isinstance(i, int)} | {*range(target.vocabulary, rows)[:4]}:
        if token != facts.get("mask_token_id"):
            yield Convention("mask", f"token {token} for those to be drafted", {"mask_token_id": token})
    if W1 in weights:
        yield Convention("table", "the names of the Markov table's halves exchanged", tensors=exchanged(W1, W2))
    yield from own_copies(weights)


def own_copies(weights: Weights) -> Iterator[Convention]:
    """Yield the target's embeddings in place of the file's."""

    def without(tensors: Weights) -> Weights:
        return {name: tensor for name, tensor in tensors.items() if name != "embed_tokens.weight"}

    if "embed_tokens.weight" in weights:
        yield Convention("embeddings", "the target's embeddings, not the file's", tensors=without)


def rotary(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    """Yield other bases of the rotary embeddings, and the target's own parameters."""
    facts, own = flat(config), dict(target.config.rope)
    now = facts.get("rope_parameters") or {"rope_theta": facts.get("rope_theta"), **section(facts, "rope_scaling")}
    plain = [{"rope_type": "default", "rope_theta": base} for base in (1e4, 5e5, 1e6)]
    for rope in [own, *plain] if any("self_attn" in name for name in weights) else ():
        if {"rope_type": "default", **now} != rope and (rope is own or rope != own):
            says = "the target's rotary embeddings" if rope is own else f"a rotary base of {rope['rope_theta']:,.0f}"
            yield Convention("rotary", says, {"rope_parameters": rope, "rope_theta": None, "rope_scaling": None})


def heads(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    """Yield other sizes of attention heads that fit the tensors."""
    facts, names = flat(config), ("head_dim", "num_attention_heads", "num_key_value_heads")
    q, k = (
        next((len(w) for n, w in weights.items() if n.endswith(f"self_attn.{part}_proj.weight")), 0) for part in "qk"
    )
    now = facts.get("head_dim") or (facts.get("hidden_size") or 0) // (facts.get("num_attention_heads") or 1)
    for size in sorted({32, 64, 128, target.config.head_dim} - {now}) if q else ():
        if q % size == k % size == 0 and (q // size) % (k // size) == 0:
            edits = dict(zip(names, (size, q // size, k // size), strict=True))
            yield Convention("attention", f"attention heads of {size} numbers", edits)


def sixteen_bits(config: Mapping[str, Any], weights: Weights, target: Any) -> Iterator[Convention]:
    """Yield the bits of float16 read as bfloat16, and vice versa: NumPy has no bfloat16, and some call it float16."""
    kinds = {torch.float16: torch.bfloat16, torch.bfloat16: torch.float16}

    def read_so(tensors: Weights) -> Weights:
        return {name: tensor.view(kinds.get(tensor.dtype, tensor.dtype)) for name, tensor in tensors.items()}

    if any(tensor.dtype in kinds for tensor in weights.values()):
        yield Convention("dtype", "float16 in place of bfloat16, or vice versa", tensors=read_so)


def templates(family: Family, prompts: Sequence[str]) -> Iterator[Convention]:
    """Yield texts that the target writes without its chat template, or with its thinking switched."""

    def written(chat: Chat | None) -> Callable[[], Sequence[Text]]:
        other = copy(family)
        other.chat = chat
        return cache(lambda: list(own_texts(other, prompts)))

    chat = family.chat if prompts else None
    if chat:
        yield Convention("template", "texts without the chat template", texts=written(None))
    if chat and "<think>" in chat.after:
        is_off = "</think>" in chat.after
        after = chat.after.partition("<think>")[0] if is_off else f"{chat.after}\n</think>\n\n"
        yield Convention("template", f"thinking {'on' if is_off else 'off'}", texts=written(replace(chat, after=after)))


def swapped_halves(*names: str) -> Callable[[Weights], Weights]:
    return lambda weights: weights | {name: torch.cat(weights[name].chunk(2, -1)[::-1], -1) for name in names}


def exchanged(one: str, other: str) -> Callable[[Weights], Weights]:
    return lambda weights: weights | {one: weights[other], other: weights[one]}


def read_raw(head: Any) -> None:
    """Let an MTP layer or Medusa heads read the target's last states without its final norm."""
    target = head.target
    head.target = SimpleNamespace(depth=target.depth, normed=lambda states: states, project=target.project)


MAKERS: dict[str, tuple[Callable[..., Iterator[Convention]], ...]] = {
    "eagle3": (taps, switches("norm_before_residual", "norm_output"), eagle3_tensors),
    "block": (taps, switches("sample_from_anchor"), block_tensors),
    "mtp": (switches("norm_output"), mtp_tensors),
    "medusa": (medusa_tensors,),
}


def fix(folder: Path, conventions: Sequence[Convention]) -> bool:
    """Write the conventions' edits to config.json. Return False if some of them are not about config.json."""
    config = with_edits(read_config(folder), conventions)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return all(way.edits for way in conventions)
