"""A peer in the race: transformers' own assisted generation on the same weights, reported as the same events.

Its `generate` returns when the text is done, so it runs in a thread of its own, which works only while the race
waits for its next event. Cycles are seen where its candidate generator is called: before and after a draft, and
when a draft was judged. Acceptance, residual and text are the library's; here they are only told. The coins are not:
it keeps them to itself, so `u` is absent.

Two things differ from a lane of ours. Cycle 0 drafts before the target has read the prompt, and may commit several
tokens. And `Verified` ends when the draft was judged, not when the pass was done.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from .. import describe
from ..drafters import DraftModelDrafter, PromptLookupDrafter
from ..engine import Stopwatch, Task, Transcript
from ..events import Drafted, Event, Started, Verified
from ..models.checkpoint import open_weights, read_config
from ..models.config import as_library, quiet
from ..models.gguf_header import is_file
from ..models.grouped import CODES
from ..models.hugging_face import HuggingFaceModel
from ..models.packed import is_packed
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import MIN_TEMPERATURE, normalised, probabilities, residual, SharedNoiseSampler
from ..types import Kind, Proposal, Trial, Verdict

Tell = Callable[[Event], None]
Peered = Transformer | HuggingFaceModel


def assisted(task: Task) -> Generator[Event, None, None]:
    """Run `task` by transformers. Closing the iterator ends it at once: it waits between two cycles.

    ValueError for a drafter that assisted generation has no counterpart of.
    """
    draft = counterpart(task)
    if checkpoint(task.target)[0].stored in CODES:
        raise ValueError("transformers has no target in these codes: leave out the peer, or choose another precision.")
    return in_turns(lambda tell: Run(task, tell).generate(draft))


def counterpart(task: Task) -> Peered | None:
    """The draft model; None where transformers drafts without a model, by prompt lookup."""
    if task.k == 0:
        raise ValueError("Assisted generation drafts at least one token: set K to 1 or more.")
    if isinstance(task.drafter, PromptLookupDrafter):
        return None
    if isinstance(task.drafter, DraftModelDrafter):
        return checkpoint(task.drafter.model)[0]
    raise ValueError(
        f"transformers' assisted generation is raced with a draft model or prompt lookup, not with {task.drafter.name}."
    )


def checkpoint(model: object) -> tuple[Peered, Path]:
    """The model itself, and the folder that it was read from."""
    model = model.model if isinstance(model, TargetView) else model
    if not isinstance(model, Peered) or model.source is None:
        raise ValueError("transformers can run only models that come from a folder of files.")
    return model, model.source


def read(folder: Path, dtype: torch.dtype, device: str) -> Any:
    """The same files, read by the library; packed ones are unpacked for it."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    config = as_library(read_config(folder))
    if is_packed(folder) or is_file(folder):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=False)
        model.load_state_dict(open_weights(folder), strict=not config.tie_word_embeddings)
    else:
        model = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, local_files_only=True, use_safetensors=True, trust_remote_code=False
        )
    return model.to(device).eval()


_read: WeakKeyDictionary[Transformer, Any] = WeakKeyDictionary()  # each ends with the model of ours


def shared(model: object) -> Any:
    """transformers' model with the same weights, read at the first run."""
    model, folder = checkpoint(model)
    if isinstance(model, HuggingFaceModel):
        return model.model
    if model not in _read:
        dtype = model.dtype if model.stored in CODES else model.stored  # transformers has no such codes
        _read[model] = read(folder, dtype, model.device)
    return _read[model]


def own(model: object) -> Any:
    """What a run sets on the model, it sets on this shallow copy."""
    return copy.copy(shared(model))


class Run:
    """One text by `generate`, and what was seen of it."""

    def __init__(self, task: Task, tell: Tell) -> None:
        self.task, self.tell = task, tell
        self.transcript = Transcript(task)
        self.clock = Clock(task.params.seed, checkpoint(task.target)[0].device)
        self.noise = SharedNoiseSampler(task.params.seed)  # for the examples that people see
        self.start = self.drafted = 0.0
        self.candidates: tuple[Tensor, Tensor | None]

    def generate(self, draft: Peered | None) -> None:
        task, transcript, clock = self.task, self.transcript, self.clock
        rule = task.rule
        self.tell(
            Started(task.lane, task.drafter.name, task.k, task.params, len(task.prompt), rule.name, rule.lossless)
        )
        try:
            if transcript.reason is None:
                target, options = self.prepare(draft)
                with contextlib.suppress(Ended), quiet(), clock, torch.inference_mode():
                    target.generate(**options)
        except Exception as error:
            self.tell(transcript.fail(error, clock.elapsed))
        self.tell(transcript.finished(clock.elapsed))

    def prepare(self, draft: Peered | None) -> tuple[Any, dict[str, Any]]:
        """The target and what it is asked for: always K drafts, and sampling exactly as in the other lanes."""
        from transformers import GenerationConfig

        task, params = self.task, self.task.params
        target = own(task.target)
        # Transformers 5.23 divides the draft's logits by the temperature twice: `_get_logits_processor` appends its
        # warpers to a list that has the target's already. So the square must not be below MIN_TEMPERATURE.
        sampling = {
            "temperature": max(params.temperature, MIN_TEMPERATURE**0.5),
            "top_k": params.top_k,
            "top_p": params.top_p,
        }
        ends = [] if params.ignore_end else sorted(task.end_tokens)
        settings = GenerationConfig(
            do_sample=params.temperature > 0,
            max_new_tokens=self.transcript.wanted,
            eos_token_id=ends or None,
            pad_token_id=0,
            prompt_lookup_num_tokens=task.k if draft is None else None,
            **(sampling if params.temperature > 0 else {}),
        )
        target.generation_config = settings
        make = target._get_candidate_generator
        target._get_candidate_generator = lambda **options: self.observe(make(**options))
        ids = torch.tensor([list(task.prompt)], device=checkpoint(task.target)[0].device)
        options = {"inputs": ids, "attention_mask": torch.ones_like(ids), "generation_config": settings}
        if draft is not None:
            assistant = own(draft)
            assistant.generation_config = GenerationConfig(
                num_assistant_tokens=task.k,
                num_assistant_tokens_schedule="constant",
                assistant_confidence_threshold=0.0,  # by default a draft ends where the draft model is unsure
            )
            options["assistant_model"] = assistant
        return target, options

    def observe(self, generator: Any) -> Any:
        """The library's own candidate generator; its two calls a cycle are seen from here on."""
        draft, judged = generator.get_candidates, generator.update_candidate_strategy

        def get_candidates(*inputs: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
            self.start = self.clock.now()
            self.candidates = draft(*inputs, **options)
            self.drafted = self.clock.now()
            return self.candidates

        def update_candidate_strategy(text: Tensor, logits: Tensor, matches: Any) -> None:
            judged(text, logits, matches)
            with self.clock.paused():
                self.tell_cycle(text, logits)
            if self.transcript.reason is not None:
                raise Ended

        generator.get_candidates, generator.update_candidate_strategy = get_candidates, update_candidate_strategy
        return generator

    def tell_cycle(self, text: Tensor, logits: Tensor) -> None:
        """One cycle's events, and then the wait for the next turn. `logits` are warped already, as the draft's are."""
        task, transcript, at = self.task, self.transcript, self.clock.elapsed
        cycle, length = transcript.cycle, len(transcript.tokens)
        emitted, tokens = text[0, length:].tolist(), self.candidates[0][0, length:].tolist()
        proposal, rows, verdict = self.judgement(tokens, emitted, logits[0])
        self.noise.at(length)
        details = describe.verification(proposal, rows, verdict, task.piece, self.noise if task.details else None)
        if len(emitted) == len(verdict.path):  # the text ended with a draft: the target added nothing
            details |= {"distribution": None, "p": None}
        # Cycle 0 drafts before the target has read the prompt: all of it is prefill.
        transcript.spend("draft", self.drafted - (self.start if cycle else 0.0))
        transcript.spend("verify", at - self.drafted)
        if tokens:
            pieces = tuple(map(task.piece, tokens))
            self.tell(Drafted(task.lane, cycle, tuple(tokens), pieces, proposal.parents, self.start, self.drafted))
        self.tell(Verified(task.lane, cycle, start=self.drafted, end=at, **details))
        pieces = tuple(map(task.piece, emitted))
        committed, readable = transcript.commit(emitted)
        self.tell(transcript.committed(committed, pieces, readable, verdict, at))

    def judgement(self, tokens: list[int], emitted: list[int], logits: Tensor) -> tuple[Proposal, Tensor, Verdict]:
        """What the library decided, as the text shows: a rejected token never comes back in its own place.

        (The residual excludes it; and where drafts are matched against the target's choice, that choice differs.)
        """
        greedy, drafted = self.task.params.temperature == 0, self.candidates[1]
        rows = probabilities(logits, self.task.params) if greedy else normalised(logits.softmax(-1))
        q = None if greedy or drafted is None else normalised(drafted[0].softmax(-1))
        matches = 0
        while matches < min(len(tokens), len(emitted)) and emitted[matches] == tokens[matches]:
            matches += 1
        rejected = matches < min(len(tokens), len(emitted))
        trials = tuple(
            Trial(i, token, float(rows[i, token]), 1.0 if q is None else float(q[i, token]), None, i < matches)
            for i, token in enumerate(tokens[: matches + rejected])
        )
        distribution = residual(rows[matches], q[matches], tokens[matches]) if rejected and q is not None else None
        kind: Kind = "resampled" if matches < len(tokens) else "bonus"
        verdict = Verdict(tuple(range(matches)), emitted[-1], kind, trials, distribution=distribution)
        return Proposal.chain(tokens, q), rows, verdict


class Clock(Stopwatch):
    """The lane's clock. While it runs, the process's random numbers are the lane's, too: it draws globally."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__()
        place = torch.device(device)
        on_gpu = place.type == "cuda"
        self._source = torch.cuda.default_generators[place.index or 0] if on_gpu else torch.default_generator
        self._mine = torch.Generator(device).manual_seed(seed).get_state()

    def __enter__(self) -> Clock:
        self._others = self._source.get_state()
        self._source.set_state(self._mine)
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._mine = self._source.get_state()
        self._source.set_state(self._others)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


class Ended(Exception):
    """The text is complete; `generate` need not check by itself."""


class Stopped(BaseException):
    """The caller no longer waits for the next event."""


def in_turns(body: Callable[[Tell], None]) -> Generator[Event, None, None]:
    """The events of `body`, one by one. It has a thread of its own, which runs only while an event is awaited."""
    turns: SimpleQueue[bool] = SimpleQueue()
    told: SimpleQueue[Event | BaseException | None] = SimpleQueue()

    def tell(event: Event) -> None:
        told.put(event)
        if not turns.get():
            raise Stopped

    def work() -> None:
        try:
            body(tell)
        except Stopped:
            pass
        except BaseException as error:  # the waiting caller must learn of it
            told.put(error)
        told.put(None)

    thread = Thread(target=work, name="transformers", daemon=True)
    thread.start()
    try:
        while (event := told.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
            turns.put(True)
    finally:
        turns.put(False)
        thread.join()
