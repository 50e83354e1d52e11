"""Load models by name: the embedded family, one of `tools.train`, or a target with its drafters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open, SafetensorError
from tokenizers import Tokenizer

from ..drafters.adaptive import AdaptiveDrafter
from ..drafters.base import Drafter
from ..figures import machine
from ..messages import Refused
from ..methods import DRAFT_MODEL, EMBEDDED, EXIT, inner_drafter, Method, METHODS, methods_using, QUANTISED, ROUNDED
from ..models import gguf_header, native, quantised
from ..models.base import LanguageModel, LoadedModel
from ..models.checkpoint import read_config, read_weights, section
from ..models.config import is_ours
from ..models.device import multiplies_bfloat16, Resources
from ..models.files import weight_files
from ..models.grouped import CODE_TYPES, GGUF, INT7
from ..models.matrix import draft_dtype
from ..models.quantised import QuantisedCopy
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..paths import FAMILY
from ..text import ids_of, Pieces
from ..types import Costs
from . import chat, hub, presets, published

# The precisions of a target. `gguf` keeps the codes of a GGUF file. The browser's engine has only `int7` and `gguf`.
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8, "int7": INT7, "gguf": GGUF}
MESSAGE_KEYS = ("role", "content")  # of a message in a chat
SMALL = 50_000_000  # weights; on a CPU, models up to this size compute in float32


@dataclass(frozen=True)
class LoadedMethod:
    """A drafting method and its loaded part: a model, heads, the index of the exit layer, or nothing."""

    method: Method
    part: Any = None

    @property
    def parameters(self) -> int:
        """The number of weights that the drafter adds to the target's."""
        return getattr(self.part, "parameters", 0)


class Family:
    """A target, its tokenizer, and the drafters for it. Every run gets a new drafter."""

    def __init__(
        self,
        name: str,
        target: LoadedModel,
        tokenizer: Tokenizer,
        prefix: tuple[int, ...],
        end_tokens: frozenset[int],
        chat: chat.Chat | None,
    ) -> None:
        """Take a target without drafters. Every text begins with the tokens `prefix`, unless there is a `chat`."""
        self.name, self.target, self.prefix, self.end_tokens, self.chat = name, target, prefix, end_tokens, chat
        tokenizer.encode_special_tokens = True  # text in a prompt never becomes a control token
        self.tokenizer, self.pieces = tokenizer, Pieces(tokenizer)
        self.resources, self.in_memory = Resources(), False  # models in memory have no name to keep their costs by
        self.costs: dict[str, Costs] = {}  # drafter -> the costs that `probe` measured
        self.trained: dict[str, Mapping[str, Any]] = {}  # drafter -> the acceptance that its training measured
        self.drafters = {m.name: LoadedMethod(m) for m in METHODS.values() if not m.part}
        if isinstance(target, Transformer) and target.exit_layers:
            exits = (method for method in METHODS.values() if method.part == EXIT)
            self.drafters |= {method.name: LoadedMethod(method, target.exit_layers[0]) for method in exits}

    @property
    def drafts(self) -> dict[str, LoadedModel]:
        return {name: loaded.part for name, loaded in self.drafters.items() if isinstance(loaded.part, published.Model)}

    def new_drafter(
        self, name: str, capacity: int, around: tuple[int, int] = (0, 0)
    ) -> tuple[LanguageModel[Any], Drafter]:
        """Make a view of the target and a drafter for `capacity` tokens. Raises Refused if it cannot.

        `around` is what `template_counts` returns for the prompt.
        """
        requested, wrapped = name, self.wrapped(name)
        name = wrapped or name
        if name not in self.drafters:
            raise Refused(f"there is no drafter {name!r}; choose from {', '.join(self.drafters)}")
        loaded = self.drafters[name]
        exit_layer = loaded.part if loaded.method.part == EXIT else 0
        view = TargetView(self.target, getattr(loaded.part, "taps", ()), exit_layer)
        drafter: Drafter = loaded.method.make(view, loaded.part, capacity, around)
        drafter.name = name  # several drafters can be of the same class
        if wrapped:
            if name not in self.costs:
                raise Refused(f"{requested} chooses its depth by the costs of {name}: measure them first")
            drafter = AdaptiveDrafter(drafter, self.costs[name], requested)
        return view, drafter

    @property
    def default_drafter(self) -> str:
        """The first that the family has: a trained draft, early exit, the quantised copy, suffix decoding."""
        models = [name for name, loaded in self.drafters.items() if loaded.part is not None]
        models.sort(key=lambda name: (name == QUANTISED, self.drafters[name].method.part == EXIT))
        return next(iter(models), "suffix")

    def wrapped(self, name: str) -> str:
        """Return the drafter that `adaptive` or `adaptive:NAME` wraps in this family; "" for any other name."""
        has_another = name == AdaptiveDrafter.name and DRAFT_MODEL not in self.drafters
        return self.default_drafter if has_another else inner_drafter(name)

    def template_counts(self, prompt: object) -> tuple[int, int]:
        """Return how many tokens of the chat template `encode` puts before and after the prompt, if it is a text."""
        if self.chat is None or not isinstance(prompt, str):
            return 0, 0
        before, after = self.chat.around(self.tokenizer)
        return len(before), len(after)

    def encode(self, prompt: str | Sequence[int] | Sequence[Mapping[str, str]]) -> list[int]:
        """Encode a text or the messages of a chat; token ids stay as they are. Raises Refused for anything else."""
        if isinstance(prompt, str):
            text_ids = ids_of(prompt, self.tokenizer) if self.chat is None else self.chat.tokens(prompt, self.tokenizer)
            return text_ids if self.chat else [*self.prefix, *text_ids]
        items: list[Any] = list(prompt) if isinstance(prompt, Iterable) else [None]
        if all(isinstance(token, int) and 0 <= token < self.target.vocabulary for token in items):
            return [int(token) for token in items]
        if all(isinstance(each, Mapping) and all(isinstance(each.get(x), str) for x in MESSAGE_KEYS) for each in items):
            if self.chat is None:
                raise Refused("This target has no chat template: give a text or token ids instead of messages.")
            return self.chat.conversation(items, self.tokenizer)
        raise Refused(
            "A prompt is a text, a list of messages with role and content, which are texts, or a list of token ids "
            f"below {self.target.vocabulary}."
        )

    @property
    def precision(self) -> str:
        return precision_name(self.target.stored)

    def describe(self) -> dict[str, Any]:
        """Return facts for labels, ready for JSON."""
        facts: dict[str, Any] = {"family": self.name, "target": facts_of(self.target)}
        facts |= {name: facts_of(draft) for name, draft in self.drafts.items()}
        if self.chat is not None:
            facts["chat"] = [self.chat.before, self.chat.after]
        if isinstance(self.target, Transformer) and (self.target.native is not None or native.missing()):
            facts["kernels"] = "native" if self.target.native is not None else f"torch: {native.missing()}"
        threads = self.resources.threads or torch.get_num_threads()
        return facts | {"dtype": self.precision, "device": self.target.device, "threads": threads}


def precision_name(dtype: torch.dtype | None) -> str:
    return next((name for name, other in PRECISIONS.items() if other == dtype), str(dtype).removeprefix("torch."))


def dtype_of(precision: str | None) -> torch.dtype | None:
    """Return the dtype of a name in `PRECISIONS`; None for None. Raises Refused for any other name."""
    if precision not in (None, *PRECISIONS):
        raise Refused(f"there is no precision {precision!r}; choose from {', '.join(PRECISIONS)}")
    return PRECISIONS[precision] if precision else None


def facts_of(model: LoadedModel) -> dict[str, Any]:
    bits = {"weights": precision_name(model.stored)} if model.stored in CODE_TYPES else {}
    return {"parameters": model.parameters, "layers": model.depth, "hidden_size": model.width} | bits


def load(name: str | presets.ModelNames = EMBEDDED, dtype: torch.dtype | None = None, device: str = "cpu") -> Family:
    """Load what a name that `presets.parse` takes stands for, on "cpu", "cuda" or "auto".

    Without `dtype`, the name or `fastest_dtype` decides. Raises Refused for what cannot be loaded.
    """
    names, device = presets.parse(name) if isinstance(name, str) else name, resolve_device(device)
    dtype = dtype or dtype_of(names.precision)
    if names.kind == "pair":
        return load_pair(names.target, *names.drafts, dtype=dtype, device=device)
    rounded_name = f"{names.target}:{precision_name(dtype)}"
    place = FAMILY if names.kind == "embedded" else Path(names.target)
    return load_family(place, rounded_name if rounded_name in ROUNDED else names.target, dtype, device)


def compute_dtypes(dtype: torch.dtype, device: str) -> tuple[torch.dtype, torch.dtype]:
    """Return the dtypes to compute in and of the matrices. On a CPU, codes, and bfloat16 in C++, compute in float32."""
    if dtype in CODE_TYPES and torch.device(device).type != "cpu":
        raise Refused(f"{precision_name(dtype)} runs only on a CPU; leave out --dtype or --device")
    computes_in_float32 = dtype in CODE_TYPES or (dtype == torch.bfloat16 and native.runs_on(device))
    return torch.float32 if computes_in_float32 else dtype, dtype


def resolve_device(device: str) -> str:
    """Replace "auto" by "cuda" if a GPU works, otherwise by "cpu". Raises Refused for "cuda" without a GPU."""
    if device != "auto":
        if (kind := device.partition(":")[0]) not in ("cpu", "cuda"):
            raise Refused(f"there is no device {device!r}; choose from cpu, cuda, auto")
        if kind == "cuda" and not torch.cuda.is_available():
            raise Refused("torch sees no NVIDIA GPU here; use --device cpu")
        return device
    try:
        return "cuda" if torch.cuda.is_available() and bool(torch.ones(1, device="cuda") + 1) else "cpu"
    except RuntimeError:  # a card that is too old for this torch, or has no memory left
        return "cpu"


def load_family(folder: Path, name: str, dtype: torch.dtype | None, device: str = "cpu") -> Family:
    """Load models that were trained together: `target/`, `tokenizer/`, and perhaps `draft_model/`, `medusa/` …"""
    if not (folder / "target").is_dir():
        raise Refused(f"{folder} holds no folder 'target' with a model in it")
    with hub.reading(folder):
        dtype, stored = compute_dtypes(dtype or fastest_dtype(folder / "target", device), device)
        stored_draft = draft_dtype(device, stored)
        family = load_target(name, folder, dtype, device, stored)
        target = family.target
        heads = {m.folder: folder / m.folder for m in METHODS.values() if m.kind == "heads"}
        for draft, path in (draft_folders(folder) | heads).items():
            if path.is_dir():
                head = published.load_head(path, read_weights(path), target, stored_draft)
                part = head or Transformer.load(path, dtype, device, stored_draft)
                for method in methods_for(part, target):
                    add_drafter(family, f"{draft}:tree" if method.tree else draft, method, part, path)
    return family


def add_drafter(family: Family, name: str, method: Method, part: Any, place: Path) -> None:
    """Add a drafter from `place`, with the acceptance that its config.json states, if any."""
    family.drafters[name] = LoadedMethod(method, part)
    if (place / "config.json").is_file():
        family.trained[name] = section(read_config(place), "trained")


def draft_folders(folder: Path) -> dict[str, Path]:
    """Return the folders of draft models by name: `draft_model`, and `draft_model:NAME` for draft_model_NAME."""
    places = folder / DRAFT_MODEL, *sorted(folder.glob(f"{DRAFT_MODEL}_*"))
    return {path.name.replace(f"{DRAFT_MODEL}_", f"{DRAFT_MODEL}:", 1): path for path in places if path.is_dir()}


def methods_for(part: Any, target: LoadedModel) -> list[Method]:
    """List the methods that draft with `part`. On a GPU, omit trees: they are too slow there."""
    return [method for method in methods_using(part) if not method.tree or target.device == "cpu"]


def load_pair(target: str | Path, *drafts: str | Path, dtype: torch.dtype | None = None, device: str = "cpu") -> Family:
    """Load a target, which can be a family's, and drafters for it: folders, GGUF files, or names on the Hub.

    Of two with the same method, the second is called METHOD:FOLDER. Raises Refused for what cannot be loaded.
    """
    name, device = presets.SEPARATOR.join(map(str, (target, *drafts))), resolve_device(device)
    drafts = drafts or tuple(presets.drafters_of(str(target)))
    folder, *others = map(hub.find, (target, *drafts))
    with hub.reading(target):
        dtype = dtype or fastest_dtype(folders_of(folder)[0], device)
    check_memory(list(zip((target, *drafts), (folders_of(folder)[0], *others), strict=True)), dtype, device)
    with hub.reading(target):
        computed, stored = compute_dtypes(dtype, device)
        family = load_target(name, folder, computed, device, stored)
        model, tokenizer = family.target, family.tokenizer
    for source, place in zip(drafts, others, strict=True):
        with hub.reading(source):
            part = published.load_drafter(place, model, tokenizer)
        for method in methods_for(part, model):
            name = f"{method.name}:{Path(source).name}" if method.name in family.drafters else method.name
            if name in family.drafters:
                raise Refused(f"another draft is already called {name}; rename its folder")
            add_drafter(family, name, method, part, place)
    if isinstance(model, Transformer) and QuantisedCopy.pays(model):
        needed = quantised.BYTES_PER_WEIGHT * model.parameters
        if needed < machine.memory_of(device):
            family.drafters[QUANTISED] = LoadedMethod(METHODS[QUANTISED], QuantisedCopy(model))
    return family


def from_memory(model: Any, tokenizer: Any, drafts: Sequence[Any] = ()) -> Family:
    """Make a family of transformers' causal language models, which stay as they are, or raise Refused."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(backend, Tokenizer):
        raise Refused("name the tokenizer of a model in memory: Engine(model, tokenizer=tokenizer), a fast one")
    target, *others = map(published.model_in_memory, (model, *drafts))
    backend = Tokenizer.from_str(backend.to_str())  # a copy, since a family sets it up for its prompts
    backend.no_truncation()
    backend.no_padding()
    published.cut_vocabulary(target, published.shared_vocabulary(target, backend))
    for draft in others:
        published.cut_vocabulary(draft, target.vocabulary)
    ends = getattr(model.generation_config, "eos_token_id", None)
    end_tokens = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
    family = Family(type(model).__name__, target, backend, published.prefix(backend), end_tokens, None)
    if template := getattr(tokenizer, "chat_template", None):
        controls = {name: str(value) for name, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
        family.chat = chat.make_chat(template, controls)
    family.in_memory = True
    for i, draft in enumerate(others, 1):
        family.drafters[DRAFT_MODEL if i == 1 else f"{DRAFT_MODEL}:{i}"] = LoadedMethod(METHODS[DRAFT_MODEL], draft)
    return family


def load_target(name: str, place: Path, dtype: torch.dtype, device: str, stored: torch.dtype | None = None) -> Family:
    """Load a checkpoint or the target of a family's folder, with tokenizer and template, without drafters."""
    folder, words = folders_of(place)
    model, template = published.load_model(folder, dtype, device, stored), chat.load_chat(words)
    tokenizer = published.load_tokenizer(words)
    published.cut_vocabulary(model, published.shared_vocabulary(model, tokenizer))
    ends = published.end_tokens(folder)
    # A family learned from texts in a row, so each begins with the token that ended the one before.
    prefix = published.prefix(tokenizer) if folder == place else tuple(ends)
    return Family(name, model, tokenizer, prefix, ends, template)


def folders_of(place: Path) -> tuple[Path, Path]:
    """Return a family's folders of target and tokenizer; any other place twice."""
    return (place / "target", place / "tokenizer") if (place / "target").is_dir() else (place, place)


def check_memory(places: Sequence[tuple[str | Path, Path]], dtype: torch.dtype, device: str) -> None:
    """Raise Refused if the weights of these checkpoints do not fit into free memory."""
    count = 0
    for name, place in places:
        with hub.reading(name):
            count += weights_in(place)
    needed = hub.MORE * count * max(dtype.itemsize, 2)  # int8 needs 2 bytes, too, as embeddings stay in float32
    free = machine.memory_of(device)
    if needed > free:
        raise hub.too_large(str(places[0][0]), needed, free)


def weights_in(place: Path) -> int:
    """Count the weights of a checkpoint by the headers of its files."""
    if gguf_header.is_file(place):
        return sum(math.prod(entry.shape) for entry in gguf_header.read_header(place).entries.values())
    count = 0
    for file in weight_files(place):
        with suppress(FileNotFoundError, SafetensorError), safe_open(place / file, "pt") as tensors:  # loading raises
            count += sum(math.prod(part.get_shape()) for part in map(tensors.get_slice, tensors.keys()))
    return count


def fastest_dtype(folder: Path, device: str = "cpu") -> torch.dtype:
    """Return bfloat16 if hardware or `native.cpp` multiplies it, else, and for small models, float32."""
    if device != "cpu":
        return torch.bfloat16 if multiplies_bfloat16(device) else torch.float32
    if weights_in(folder) <= SMALL:
        return torch.float32
    fast = multiplies_bfloat16(device) or (native.runs_on(device) and is_ours(read_config(folder)))
    return torch.bfloat16 if fast else torch.float32
