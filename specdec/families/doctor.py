"""Find out why a target rejects the drafts of a head: read the head by other conventions, one by one and in pairs.

The measure is the overlap β = Σ min(p, q), the chance that a draft from q is accepted, by place in a draft, in texts
that the target writes itself. The target reads them once. From which number a head counts positions does not matter.
"""

import itertools
import json
import re
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

from ..drafters.eagle3 import default_taps
from ..messages import Refused
from ..methods import methods_using
from ..models.checkpoint import open_weights, read_config, section, Weights
from ..models.matrix import draft_dtype
from ..models.packed import is_packed
from ..models.reduced import MAP
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..paths import ASSETS, write_whole
from ..types import SamplingParams
from . import hub
from .chat import Chat
from .published import head_format, head_of
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

KINDS = {  # the format of a head -> the conventions that differ among its publishers
    "eagle3": "taps norm_before_residual norm_output order norms map embeddings rotary attention dtype template",
    "block": "taps sample_from_anchor mask table embeddings rotary attention dtype template",
    "mtp": "norm_output order norms state rotary attention dtype template",
    "medusa": "heads state dtype template",
}
TAP_KEYS = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "target_layer_ids")
EMBEDDINGS = "embed_tokens.weight"
TWINS = {"input_layernorm": "hidden_norm", "enorm": "hnorm", "markov_w1": "markov_w2"}  # parts of tensors' names
TWINS |= {other: one for one, other in TWINS.items()}
SWITCHES = ("norm_before_residual", "norm_output", "sample_from_anchor")


@dataclass(frozen=True)
class Text:
    """A text that the target wrote from `start` on, with what the target computed at each token."""

    tokens: list[int]
    start: int
    states: Mapping[int, Tensor]  # layer -> its inputs [n, hidden]
    p: Tensor  # [n - start, V]; row i is the distribution of token start + i


Texts = Callable[[], Sequence[Text]]


@dataclass(frozen=True)
class Convention:
    """A way to read heads that differs from what their files say. Of one `kind`, only one is tried at a time."""

    kind: str
    says: str
    edits: Mapping[str, Any] = field(default_factory=dict)  # key of config.json -> its value; None deletes the key
    tensors: Callable[[Weights], Weights] = lambda weights: weights
    normed: bool = True  # whether the head reads the target's last states after the final norm
    texts: Texts | None = None  # writes texts of another kind

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
    def accepted(self) -> Tensor:
        """The expected number of accepted tokens of each draft."""
        return self.overlaps.cumprod(-1).sum(-1)

    @property
    def score(self) -> float:
        return float(self.accepted.mean()) if len(self.accepted) else 0.0

    @property
    def drafts_well(self) -> bool:
        return bool(self.by_place) and self.by_place[0] > max(WEAK, 2 * self.chance)

    def beats(self, other: "Attempt") -> bool:
        if not self.by_place or not other.by_place:  # one of them cannot be loaded
            return self.drafts_well
        mine, theirs, gain = self.accepted, other.accepted, self.score - other.score
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
    target, rng = family.target, torch.Generator().manual_seed(0)
    for prompt in prompts:
        tokens = family.encode(prompt)[-max(1, target.context - ANSWER) :]
        start, cache = len(tokens), target.new_cache(len(tokens) + ANSWER, range(target.depth + 1))
        rows = [target.forward(tokens, cache)]
        while len(rows) < ANSWER:
            tokens.append(int(torch.multinomial(rows[-1][0].float().softmax(-1).cpu(), 1, generator=rng)))
            if tokens[-1] in family.end_tokens:
                break
            rows.append(target.forward(tokens[-1:], cache))
        yield Text(tokens, start, cache.states, torch.cat(rows).float().softmax(-1))


class Examination:
    """A head, and the texts of its target on which it is measured. Raises Refused if it cannot be examined."""

    def __init__(self, family: Family, folder: Path, texts: Sequence[Text], prompts: Sequence[str] = ()) -> None:
        self.family, self.texts = family, texts
        if not isinstance(family.target, Transformer):
            raise Refused("transformers runs this target; heads need one that SpecDec's own decoder runs")
        with hub.reading(folder):
            self.config, self.weights = read_config(folder), dict(open_weights(folder))
        self.stored = draft_dtype(family.target.device) if is_packed(folder) else None
        self.form = head_format(self.config, self.weights)
        if self.form not in KINDS:
            raise Refused("this is a draft model; the doctor examines heads, which read the target's states")
        self.ways = conventions(self.config, self.weights, family, prompts[: TEXTS // 2])

    def load(self, conventions: Sequence[Convention] = ()) -> LoadedMethod:
        """Load the head by `conventions`. Raises Refused if it cannot be loaded so."""
        weights = self.weights
        for way in conventions:
            weights = way.tensors(weights)
        try:
            config = with_edits(self.config, conventions)
            part = head_of(self.form, config, weights, self.family.target, self.stored)
        except (KeyError, IndexError, RuntimeError) as error:
            raise Refused(f"it cannot be loaded: {error}") from error
        if not all(way.normed for way in conventions):
            target: Any = part.target
            part.target = SimpleNamespace(depth=target.depth, normed=lambda states: states, project=target.project)
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


def conventions(
    config: Mapping[str, Any], weights: Weights, family: Family, prompts: Sequence[str] = ()
) -> list[Convention]:
    """Return the rows of the table that concern a head of this format, and change how it is read."""
    facts, target = stated(config, weights), family.target
    assert isinstance(target, Transformer)
    tap_key = next((key for key in TAP_KEYS if facts.get(key)), TAP_KEYS[0])
    usual, rows = list(default_taps(target.depth)), len(weights.get(EMBEDDINGS, target.embedding))
    taps = facts[tap_key] = list(config.get(tap_key) or facts.get(tap_key) or usual)
    named = (facts.get(f"{name}_token_id") for name in ("pad", "eos", "bos"))
    masks = {0, target.vocabulary - 1, rows - 1, *range(target.vocabulary, rows)[:4]}
    masks |= {token for token in named if isinstance(token, int)}
    own, (q, k) = dict(target.config.rope), (outputs(weights, f"self_attn.{part}_proj.weight") for part in "qk")
    table = [
        Convention("taps", "the states one layer earlier", {tap_key: [tap - 1 for tap in taps]}),
        Convention("taps", "the states one layer later", {tap_key: [tap + 1 for tap in taps]}),
        Convention("taps", "the states in reverse order", {tap_key: taps[::-1]}),
        Convention("taps", "the usual layers", {tap_key: usual}),
        Convention("taps", "the layers before the usual ones", {tap_key: [tap - 1 for tap in usual]}),
        *(Convention(key, f"{key} {'off' if facts[key] else 'on'}", {key: not facts[key]}) for key in SWITCHES),
        *(Convention("mask", f"token {i} for those to be drafted", {"mask_token_id": i}) for i in masks),
        Convention("order", "its two inputs in the other order", tensors=with_swapped_inputs),
        Convention("norms", "the norms of its two inputs exchanged", tensors=with_twins_exchanged),
        Convention("table", "the halves of the Markov table exchanged", tensors=with_twins_exchanged),
        Convention("map", "d2t as ids, not offsets", tensors=with_offsets),
        Convention("embeddings", "the target's embeddings, not the file's", tensors=without_embeddings),
        Convention("heads", "the first head left out, as it is for the next token", tensors=without_first_head),
        Convention("state", "the target's states before its final norm", normed=False),
        Convention("rotary", "the target's rotary embeddings", rotary(own)),
        *(
            Convention("rotary", f"a rotary base of {base:,.0f}", rotary(rope))
            for base in (1e4, 5e5, 1e6)
            if (rope := {"rope_type": "default", "rope_theta": base}) != own
        ),
        *(
            Convention("attention", f"attention heads of {n} numbers", attention(n, q // n, k // n))
            for n in sorted({32, 64, 128, target.config.head_dim} - {facts["head_dim"]})
            if k and q % n == k % n == 0 and (q // n) % (k // n) == 0
        ),
        Convention("dtype", "float16 in place of bfloat16, or vice versa", tensors=with_other_bits),
        *(Convention("template", says, texts=texts) for says, texts in texts_otherwise(family, prompts).items()),
    ]
    kinds = KINDS[head_format(config, weights)].split()
    return [
        row
        for row in table
        if row.kind in kinds
        and (
            row.texts
            or not row.normed
            or any(facts.get(key) != value for key, value in row.edits.items())
            or any(row.tensors(weights).get(name) is not tensor for name, tensor in weights.items())
        )
    ]


def stated(config: Mapping[str, Any], weights: Weights) -> dict[str, Any]:
    """Return config.json with the keys of its sections beside all others, and with what it leaves unsaid."""
    kinds = str((config.get("speculators_model_type"), config.get("architectures"))).lower()
    usual = {"norm_before_residual": False, "norm_output": "eh_proj.weight" in weights}
    usual |= {"sample_from_anchor": "dspark" in kinds}
    facts = dict(itertools.chain(usual.items(), config.items(), *(section(config, s).items() for s in SECTIONS)))
    rope = facts.get("rope_parameters") or {"rope_theta": facts.get("rope_theta"), **section(facts, "rope_scaling")}
    size = facts.get("head_dim") or (facts.get("hidden_size") or 0) // (facts.get("num_attention_heads") or 1)
    return facts | rotary({"rope_type": "default", **rope}) | {"head_dim": size}


def outputs(weights: Weights, name: str) -> int:
    return next((len(tensor) for key, tensor in weights.items() if key.endswith(name)), 0)


def rotary(rope: Mapping[str, Any]) -> dict[str, Any]:
    return {"rope_parameters": rope, "rope_theta": None, "rope_scaling": None}


def attention(size: int, heads: int, kv_heads: int) -> dict[str, Any]:
    return {"head_dim": size, "num_attention_heads": heads, "num_key_value_heads": kv_heads}


def with_swapped_inputs(weights: Weights) -> Weights:
    """Exchange the halves of those matrices that read the embedding of a token beside the target's states."""
    layers = r"^eh_proj\.weight" if "eh_proj.weight" in weights else r"self_attn\.[qkv]_proj\.weight"
    swapped = {name: torch.cat(w.chunk(2, -1)[::-1], -1) for name, w in weights.items() if re.search(layers, name)}
    return weights | swapped


def with_twins_exchanged(weights: Weights) -> Weights:
    return {name: weights.get(".".join(TWINS.get(x, x) for x in name.split(".")), w) for name, w in weights.items()}


def with_offsets(weights: Weights) -> Weights:
    return weights | {name: w - torch.arange(len(w)) for name, w in weights.items() if name == MAP}


def without_embeddings(weights: Weights) -> Weights:
    return {name: tensor for name, tensor in weights.items() if name != EMBEDDINGS}


def without_first_head(weights: Weights) -> Weights:
    parts = {name: name.removeprefix("medusa_head.").split(".", 1) for name in weights}
    return {f"{int(number) - 1}.{rest}": weights[name] for name, (number, rest) in parts.items() if number != "0"}


def with_other_bits(weights: Weights) -> Weights:
    """Read the bits of float16 as bfloat16, and vice versa: NumPy has no bfloat16, and some call it float16."""
    kinds = {torch.float16: torch.bfloat16, torch.bfloat16: torch.float16}
    return weights | {name: w.view(kinds[w.dtype]) for name, w in weights.items() if w.dtype in kinds}


def texts_otherwise(family: Family, prompts: Sequence[str]) -> dict[str, Texts]:
    """Return writers of texts without the target's chat template, and with its thinking switched."""

    def written(chat: Chat | None) -> Texts:
        other = copy(family)
        other.chat = chat
        return cache(lambda: list(own_texts(other, prompts)))

    if not prompts or family.chat is None:
        return {}
    texts = {"texts without the chat template": written(None)}
    before, thinks, rest = family.chat.after.partition("<think>")
    if thinks:
        says, after = ("on", before) if "</think>" in rest else ("off", f"{family.chat.after}\n</think>\n\n")
        texts[f"thinking {says}"] = written(replace(family.chat, after=after))
    return texts


def fix(folder: Path, conventions: Sequence[Convention]) -> bool:
    """Write the conventions' edits to config.json. Return False, and write nothing, if one is not about config.json."""
    if is_complete := all(way.edits for way in conventions):
        config = with_edits(read_config(folder), conventions)
        write_whole(folder / "config.json", json.dumps(config, indent=2) + "\n")
    return is_complete
