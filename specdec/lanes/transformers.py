"""Run transformers' own assisted generation on the same weights, as a peer in the race.

transformers reports only the tokens that each cycle adds to the text: no drafts, no probabilities, no random numbers.
This lane's events are therefore like those of a server (`Started.server`, `Finished.counted`).
Cycle 0 drafts before the target has read the prompt, so it can commit several tokens.
"""

import contextlib
import copy
import importlib.metadata
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch
from torch import Tensor

from .. import loop
from ..drafters.draft_model import DraftModelDrafter
from ..drafters.prompt_lookup import PromptLookupDrafter
from ..events import Details, Event, Finished, Position, Started
from ..families.zoo import Family
from ..messages import Refused
from ..methods import DRAFT_MODEL, LOOKUP
from ..models.checkpoint import open_weights, read_config
from ..models.config import library_config, quiet
from ..models.grouped import CODE_TYPES
from ..models.hugging_face import build, HuggingFaceModel
from ..models.reduced import ReducedDraft
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import MIN_TEMPERATURE
from ..task import CycleResult, Task
from ..types import Proposal, Verdict

NO_CODES = "transformers cannot run a target in this precision: leave out the peer, or choose another precision."
FolderModel = Transformer | HuggingFaceModel


def usual_drafter(family: Family) -> str:
    """Choose the drafter of a race with a peer: the draft model if transformers can run it, or else prompt lookup."""
    draft = family.drafts.get(DRAFT_MODEL)
    return LOOKUP if draft is None or isinstance(draft, ReducedDraft) else DRAFT_MODEL


def assisted(task: Task) -> Generator[Event, None, None]:
    """Run `task` with transformers and yield its events. Closing the iterator ends the run.

    Raises Refused for K = 0, and for a model, drafter or precision that assisted generation does not support.
    """
    if not isinstance(task.drafter, DraftModelDrafter | PromptLookupDrafter):
        name = task.drafter.name
        raise Refused(f"Assisted generation supports a draft model or prompt lookup, not {name}.")
    if task.k == 0:
        raise Refused("Assisted generation drafts at least one token: set K to 1 or more.")
    if unwrapped(task.target).stored in CODE_TYPES:
        raise Refused(NO_CODES)
    draft = unwrapped(task.drafter.model) if isinstance(task.drafter, DraftModelDrafter) else None
    return seen_from_outside(loop.generate(task, AssistedExecutor(task, draft)))


def seen_from_outside(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    """Mark a lane's events as those of another engine, which reports only tokens, and not how it judged them."""
    with contextlib.closing(events):
        for event in events:
            if isinstance(event, Started):
                event = replace(event, rule="", server=f"transformers {importlib.metadata.version('transformers')}")
            elif isinstance(event, Finished):
                event = replace(event, counted="totals")
            yield event


def unwrapped(model: object) -> FolderModel:
    """Return the model behind a view, or `model` itself. Raises Refused if transformers cannot load it."""
    model = model.model if isinstance(model, TargetView) else model
    if isinstance(model, ReducedDraft):
        raise Refused(
            "The draft model uses the target's embedding and output matrices, which transformers does not support: "
            "choose prompt_lookup, or leave out the peer."
        )
    if not isinstance(model, HuggingFaceModel) and (not isinstance(model, Transformer) or model.source is None):
        raise Refused("transformers can run only models that were loaded from files.")
    return model


def library_model(model: FolderModel, peers: dict[Any, Any]) -> Any:
    """Return transformers' model of the same checkpoint. The first run loads it into `peers`."""
    if isinstance(model, HuggingFaceModel):
        return copy.copy(model.model)  # shares weights, and has settings of its own
    if model not in peers:
        assert model.source is not None
        dtype = model.dtype if model.stored in CODE_TYPES else model.stored  # transformers cannot store codes
        peers[model] = load_model(model.source, dtype, model.device)
    return peers[model]


def load_model(folder: Path, dtype: torch.dtype, device: str) -> Any:
    weights = {name: weight.to(dtype) for name, weight in open_weights(folder).items()}
    return build(library_config(read_config(folder)), weights, dtype, device)


class AssistedExecutor:
    """Runs each cycle in transformers' `generate`. All tokens of a cycle except the last count as accepted drafts.

    `generate` runs in a thread, and this object is its streamer. The thread runs only while `cycle` waits for it.
    """

    eager: str | None = None

    def __init__(self, task: Task, draft: FolderModel | None) -> None:
        self.task, self.draft = task, draft
        self.turns: SimpleQueue[bool] = SimpleQueue()  # True: compute the next block of tokens; False: end
        self.answers: SimpleQueue[list[int] | BaseException] = SimpleQueue()

    @contextlib.contextmanager
    def allocated(self, limit: int) -> Iterator[None]:
        call = prepare_call(self.task, self.draft, limit - len(self.task.prompt))
        thread = Thread(target=self.work, args=(call,), name="transformers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.turns.put(False)
            thread.join()

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        start = time.perf_counter()
        if len(tokens) == len(self.task.prompt):
            self.next_block()  # the first block is the prompt
        *drafted, last = self.next_block()
        seconds = time.perf_counter() - start
        verdict = Verdict(tuple(range(len(drafted))), last, "bonus", ())
        positions = [Position(i, t, self.task.piece(t), "accepted", None, None, None) for i, t in enumerate(drafted)]
        details = Details(tuple(positions))
        return CycleResult(Proposal.chain(drafted), verdict, lambda noise: details, 0.0, seconds)

    def stop_drafting(self) -> None:
        """Do nothing: the engine calls this after failed drafts, and drafts of this executor never fail."""

    def next_block(self) -> list[int]:
        self.turns.put(True)
        answer = self.answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def work(self, generate: Callable[..., object]) -> None:
        try:
            if self.turns.get():
                device = unwrapped(self.task.target).device
                with quiet(), torch.random.fork_rng([device] if torch.device(device).type == "cuda" else []):
                    torch.manual_seed(self.task.params.seed)
                    generate(streamer=self)
            raise EOFError("transformers stopped before the text was complete")
        except BaseException as error:  # `next_block` raises it again
            self.answers.put(error)

    def put(self, tokens: Tensor) -> None:
        self.answers.put(tokens.flatten().tolist())
        if not self.turns.get():
            raise GeneratorExit  # nobody waits for the next block

    def end(self) -> None:
        """Do nothing: `generate` calls this at the end of the text."""


def prepare_call(task: Task, draft: FolderModel | None, max_tokens: int) -> Callable[..., object]:
    """Load the models; return transformers' `generate` for `task`, to be called with a streamer."""
    from transformers import GenerationConfig

    params, target, peers = task.params, unwrapped(task.target), task.resources.peers
    # Transformers 5.23 divides the draft's logits by the temperature twice (in `_get_logits_processor`). Therefore the
    # temperature's square must be at least MIN_TEMPERATURE.
    temperature = max(params.temperature, MIN_TEMPERATURE**0.5)
    sampling = {"temperature": temperature, "top_k": params.top_k, "top_p": params.top_p}
    with quiet():
        model, assistant = library_model(target, peers), None if draft is None else library_model(draft, peers)
        if assistant is not None:
            assistant.generation_config = GenerationConfig(
                num_assistant_tokens=task.k,
                num_assistant_tokens_schedule="constant",
                assistant_confidence_threshold=0.0,  # by default, a draft ends early where the draft model is unsure
            )
        model.generation_config = settings = GenerationConfig(
            do_sample=params.temperature > 0,
            max_new_tokens=max_tokens,
            eos_token_id=([] if params.ignore_end else sorted(task.end_tokens)) or None,
            pad_token_id=0,
            prompt_lookup_num_tokens=task.k if draft is None else None,
            **(sampling if params.temperature > 0 else {}),
        )
    ids = torch.tensor([list(task.prompt)], device=target.device)
    inputs = {"attention_mask": torch.ones_like(ids), "generation_config": settings, "assistant_model": assistant}
    return partial(model.generate, ids, **inputs)
