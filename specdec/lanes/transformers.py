"""A peer in the race: transformers' own assisted generation on the same weights, watched through its streamer.

The streamer reports the tokens that each cycle adds to the text, and nothing else: no drafts, no q, no coins. So this
lane's events are those of a server's lane, whose cycles are blocks of tokens (`Started.server`, `Finished.counted`).
Cycle 0 drafts before the target has read the prompt, and may commit several tokens.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..drafters.draft_model import DraftModelDrafter
from ..drafters.prompt_lookup import PromptLookupDrafter
from ..engine import Stopwatch, Task, Transcript
from ..events import Drafted, Event, Position, Started, Verified
from ..families.zoo import Family
from ..methods import DRAFT_MODEL, LOOKUP
from ..models.checkpoint import open_weights, read_config
from ..models.config import as_library, quiet
from ..models.grouped import CODES
from ..models.hugging_face import build, HuggingFaceModel
from ..models.reduced import ReducedDraft
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import MIN_TEMPERATURE
from ..types import Verdict

NO_CODES = "transformers has no target in these codes: leave out the peer, or choose another precision."
REDUCED = (
    "The draft model reads and writes through the target's matrices, which transformers cannot: "
    "choose prompt_lookup, or leave out the peer."
)
Peered = Transformer | HuggingFaceModel
_library_models: WeakKeyDictionary[Transformer, Any] = WeakKeyDictionary()  # by our model, and freed with it


def usual_drafter(family: Family) -> str:
    """The drafter of a race whose visitor left it open: the draft model if transformers can run it, else a lookup."""
    draft = family.drafts.get(DRAFT_MODEL)
    return LOOKUP if draft is None or isinstance(draft, ReducedDraft) else DRAFT_MODEL


def assisted(task: Task) -> Generator[Event, None, None]:
    """Run `task` with transformers. Closing the iterator ends the run at once: it waits between two cycles.

    ValueError for a drafter that assisted generation does not have.
    """
    if task.k == 0:
        raise ValueError("Assisted generation drafts at least one token: set K to 1 or more.")
    if not isinstance(task.drafter, DraftModelDrafter | PromptLookupDrafter):
        name = task.drafter.name
        raise ValueError(f"Assisted generation is raced with a draft model or prompt lookup, not with {name}.")
    if checked(task.target).stored in CODES:
        raise ValueError(NO_CODES)
    return _run(task, checked(task.drafter.model) if isinstance(task.drafter, DraftModelDrafter) else None)


def checked(model: object) -> Peered:
    """The model behind a view. ValueError where transformers cannot read it."""
    model = model.model if isinstance(model, TargetView) else model
    if isinstance(model, ReducedDraft):
        raise ValueError(REDUCED)
    if not isinstance(model, Peered) or model.source is None:
        raise ValueError("transformers can run only models that come from a folder of files.")
    return model


def library_model(model: Peered) -> Any:
    """transformers' model with the same weights, read at the first run."""
    if isinstance(model, HuggingFaceModel):
        return model.model
    if model not in _library_models:
        assert model.source is not None
        dtype = model.dtype if model.stored in CODES else model.stored  # transformers has no such codes
        _library_models[model] = load_model(model.source, dtype, model.device)
    return _library_models[model]


def load_model(folder: Path, dtype: torch.dtype, device: str) -> Any:
    """transformers' model of a checkpoint, whatever form it is stored in."""
    weights = {name: weight.to(dtype) for name, weight in open_weights(folder).items()}
    return build(as_library(read_config(folder)), weights, dtype, device)


def _run(task: Task, draft: Peered | None) -> Generator[Event, None, None]:
    transcript, clock, start = Transcript(task), Stopwatch(), 0.0
    version = f"transformers {importlib.metadata.version('transformers')}"
    yield Started(task.lane, task.drafter.name, task.k, task.params, len(task.prompt), server=version)
    try:
        with contextlib.closing(blocks(task, draft, transcript.wanted, clock)) as cycles:
            while transcript.reason is None and (emitted := next(cycles, None)):
                transcript.spend("verify", clock.elapsed - start)
                yield from events_of(transcript, emitted, start, clock.elapsed)
                start = clock.elapsed
    except Exception as error:
        yield transcript.fail(f"{type(error).__name__}: {error}", clock.elapsed)
    yield replace(transcript.finished(clock.elapsed), counted="totals")


def events_of(transcript: Transcript, emitted: list[int], start: float, end: float) -> Generator[Event, None, None]:
    """The events of one cycle. All of its tokens but the last count as accepted drafts."""
    task, cycle = transcript.task, transcript.cycle
    pieces, drafts = tuple(map(task.piece, emitted)), range(len(emitted) - 1)
    positions = tuple(Position(node, emitted[node], pieces[node], "accepted", None, None, None) for node in drafts)
    committed, readable = transcript.commit(emitted)
    if drafts:
        parents = tuple(node - 1 for node in drafts)
        yield Drafted(task.lane, cycle, tuple(emitted[:-1]), pieces[:-1], parents, start, start)
    yield Verified(task.lane, cycle, positions, start, end)
    verdict = Verdict(tuple(drafts), emitted[-1], "bonus", ())
    yield transcript.committed(committed, pieces, readable, verdict, end)


class Left(BaseException):
    """Nobody waits for the next block."""


def blocks(task: Task, draft: Peered | None, wanted: int, clock: Stopwatch) -> Generator[list[int], None, None]:
    """What each cycle of `generate` adds. Its thread runs only while the next block is awaited, and so does `clock`."""
    turns: SimpleQueue[bool] = SimpleQueue()
    answers: SimpleQueue[list[int] | BaseException | None] = SimpleQueue()

    class Streamer:
        def put(self, tokens: Tensor) -> None:
            answers.put(tokens.flatten().tolist())
            if not turns.get():
                raise Left

        def end(self) -> None:
            """Called as the text is done."""

    def work() -> None:
        try:
            generate(task, draft, wanted, Streamer())
            answers.put(None)
        except BaseException as error:  # for whoever still waits
            answers.put(error)

    def next_block() -> list[int] | None:
        with clock:
            answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    thread = Thread(target=work, name="transformers", daemon=True)
    thread.start()
    try:
        next_block()  # the prompt
        turns.put(True)
        while (block := next_block()) is not None:
            yield block
            turns.put(True)
    finally:
        turns.put(False)
        thread.join()


def generate(task: Task, draft: Peered | None, wanted: int, streamer: Any) -> None:
    """Call the library's `generate`, with K drafts in every cycle and the sampling of the other lanes."""
    from transformers import GenerationConfig

    params, device = task.params, torch.device(checked(task.target).device)
    # Transformers 5.23 divides the draft's logits by the temperature twice: `_get_logits_processor` appends its
    # warpers to a list that has the target's already. So the square must not be below MIN_TEMPERATURE.
    temperature = max(params.temperature, MIN_TEMPERATURE**0.5)
    sampling = {"temperature": temperature, "top_k": params.top_k, "top_p": params.top_p}
    with quiet(), torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(params.seed)
        model = library_model(checked(task.target))
        options: dict[str, Any] = {}
        if draft is not None:
            options["assistant_model"] = assistant = library_model(draft)
            assistant.generation_config = GenerationConfig(
                num_assistant_tokens=task.k,
                num_assistant_tokens_schedule="constant",
                assistant_confidence_threshold=0.0,  # by default a draft ends where the draft model is unsure
            )
        model.generation_config = settings = GenerationConfig(
            do_sample=params.temperature > 0,
            max_new_tokens=wanted,
            eos_token_id=([] if params.ignore_end else sorted(task.end_tokens)) or None,
            pad_token_id=0,
            prompt_lookup_num_tokens=task.k if draft is None else None,
            **(sampling if params.temperature > 0 else {}),
        )
        ids = torch.tensor([list(task.prompt)], device=device)
        mask = torch.ones_like(ids)
        model.generate(ids, attention_mask=mask, generation_config=settings, streamer=streamer, **options)
