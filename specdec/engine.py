"""An engine: a target with its drafters on one device. Page, command, bench, certificates and notebooks use it.

    engine = Engine("smollm2")                                   # or embedded, a folder, a GGUF file, a name on the Hub
    run = engine.race("Why is the sky blue?", temperature=0.8)   # speculative beside plain decoding: a Trace
    for event in engine.stream("Why is the sky blue?", drafter="eagle3", k=4): ...

Engines do not disturb each other, and outside of a run torch has the threads that it had before.
"""

import json
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .drafters.base import Drafter
from .events import Event, PEER, PLAIN, SPECULATIVE
from .families import hub, presets, zoo
from .gpu.lane import release_memory
from .lanes import probe
from .lanes.interleave import broken_off
from .lanes.race import OnRead, race_lanes
from .messages import Refused, Step, StepName
from .methods import Choice, DEFAULT_DRAFTER, EMBEDDED
from .models import native
from .models.quantised import QuantisedCopy
from .settings import RunRequest
from .traces.file import live_header, Trace, TraceHeader
from .types import SamplingParams
from .verify import Rule

REPORT_EVERY_S = 0.25
Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]
OnStep = Callable[[Step], object]


class RunFailed(RuntimeError):
    """A run broke off because of an error that is not a wrong argument. `trace` is the run so far."""

    def __init__(self, reason: str, trace: Trace) -> None:
        super().__init__(reason)
        self.trace = trace


@dataclass(frozen=True)
class Run:
    """A run that begins with the first of its `events`. Closing them ends it. `choice` fills what was left open."""

    choice: Choice
    header: TraceHeader
    events: Generator[Event, None, None]


class Engine:
    """A target model with its drafters on one device.

    Runs of one engine follow each other, and share its models, measured costs and captured CUDA graphs.
    """

    def __init__(
        self,
        target: str | Path | Any = EMBEDDED,
        draft: Any = None,
        *,
        tokenizer: Any = None,
        dtype: str | None = None,
        device: str = "auto",
        spared_cores: int = 0,
    ) -> None:
        """Name the models; `prepare` or the first run loads them.

        Args:
            target: "embedded", "smollm2", a folder, a GGUF file, a name on the Hub, or a causal language model of
                transformers, which then needs its `tokenizer`. `TARGET + DRAFT` names a pair.
            draft: a draft model or a head of a published layout, named or in memory like the target; or a list of them.
            dtype: "float32", "bfloat16", "int8", "int7" or "gguf" (the codes of a GGUF file); by default the fastest.
            device: "cpu", "cuda", or "auto": a GPU if one works.
            spared_cores: processors that torch leaves to other programs.

        Raises Refused if an argument cannot name what it should.
        """
        drafts = draft if isinstance(draft, list | tuple) else [] if draft is None else [draft]
        in_memory = not isinstance(target, str | Path)
        if any(isinstance(each, str | Path) == in_memory for each in drafts):
            raise Refused("name both target and draft, or give both as models in memory")
        self._names = None if in_memory else presets.parse(str(target), [str(each) for each in drafts])
        if dtype is not None and (self._names is None or self._names.precision not in (None, dtype)):
            raise Refused("this target has a precision of its own; leave out dtype")
        if tokenizer is not None and not in_memory:
            raise Refused("a named model has its own tokenizer; leave out tokenizer")
        self._in_memory = target, tokenizer, drafts  # used if the models have no names
        self._dtype = zoo.dtype_of(dtype)
        self._device, self._spared_cores = device, spared_cores
        self._models: zoo.Family | None = None
        self._loading = threading.Lock()

    @property
    def models(self) -> zoo.Family:
        """The loaded models: `target`, `tokenizer`, and `drafters` by name. Loads them, if `prepare` has not.

        Raises Refused if they cannot be found, do not fit into memory, or do not fit each other.
        """
        with self._loading:
            if self._models is None:
                self._models = self._load()
            return self._models

    def prepare(
        self,
        drafter: str | Drafter = DEFAULT_DRAFTER,
        k: int = 0,
        temperature: float = 0.0,
        *,
        measure: bool = True,
        peer: bool = False,
        on_step: OnStep = lambda step: None,
    ) -> Choice:
        """Fetch, compile, load and measure whatever a run with these settings needs; choose what they leave open.

        The drafter, if it is "default", and the depth, if `k` is 0, become those that are expected to be fastest here,
        by Leviathan et al. 2022 (arXiv 2211.17192), theorem 3.8, and by costs that short runs measure, once on a
        machine. If no draft is expected to pay, the choice's `speedup` is at most 1 and K is 1. Unless `measure`,
        unknown costs are measured only for `adaptive`, which cannot run without them; the usual K and a `speedup` of 0
        stand for them. With `peer`, the default is a drafter that transformers has, too.

        `on_step` is called with a `Step`, several times a second; if it raises, the work ends as soon as it can, and
        what is done stays. Raises Refused as `models` does, and for a drafter whose costs cannot be measured.
        """
        if self._models is None:
            names = self._names.models if self._names else ()
            if missing := [name for name in names if not hub.is_here(name)]:
                with closing(hub.fetch(missing, zoo.resolve_device(self._device))) as fetching:
                    for step in fetching:
                        on_step(step)
            if self._names and zoo.resolve_device(self._device) == "cpu":
                run_in_thread("compile", lambda report: native.library(), on_step)
            run_in_thread("load", lambda report: self.models, on_step)
        models = self.models
        chosen = partial(probe.choose, models, drafter, k, temperature, measure, peer)
        choice: Choice = run_in_thread("measure", chosen, on_step)
        loaded = models.drafters.get(models.wrapped(name := str(choice.drafter)) or name)
        if loaded is not None and isinstance(loaded.part, QuantisedCopy):
            run_in_thread("load", lambda report: loaded.part.model(), on_step)
        return choice

    def stream(
        self,
        prompt: Prompt,
        drafter: str | Drafter = DEFAULT_DRAFTER,
        k: int = 0,
        *,
        rule: str | Rule = "rejection",
        params: SamplingParams | None = None,
        details: bool = False,
        **sampling: Any,
    ) -> Generator[Event, None, None]:
        """Decode `prompt` in one lane, and yield its events. Closing the iterator ends the run.

        Args:
            prompt: a text, messages with `role` and `content`, or token ids.
            drafter: a name of `METHODS` ("none": plain decoding), or an object with `name` and `propose`, which drafts
                for this run alone.
            k: the greatest depth of a draft; 0: what `prepare` chooses.
            rule: "rejection", "match", "shared_noise", "block", the lossy "typical", or an object of a class of `Rule`.
            params: the sampling parameters, some of which `sampling` replaces (temperature, top_p, max_tokens …).
            details: whether events describe both distributions at each position, which takes milliseconds a cycle.

        Raises Refused for a prompt that is empty or too long, and for anything else that cannot run.
        """
        request = RunRequest(prompt, drafter, k, replace(params or SamplingParams(), **sampling), rule)
        return self.start(request, details=details, alone=True).events

    def race(
        self,
        prompt: Prompt,
        drafter: str | Drafter = DEFAULT_DRAFTER,
        k: int = 0,
        *,
        rule: str | Rule = "rejection",
        peer: bool = False,
        params: SamplingParams | None = None,
        details: bool = True,
        on_event: Callable[[Event], object] = lambda event: None,
        **sampling: Any,
    ) -> Trace:
        """Decode `prompt` speculatively and plainly, in turns on one clock; return the run with its figures.

        `peer` adds a lane: assisted generation of transformers. `on_event` is called with each event as it comes.
        Other arguments and errors are those of `stream`. Raises RunFailed, with the run so far as `trace`, if a lane
        breaks off; the peer's may.
        """
        request = RunRequest(prompt, drafter, k, replace(params or SamplingParams(), **sampling), rule, peer=peer)
        started, events = self.start(request, details=details), list[Event]()
        with closing(started.events) as running:
            for event in running:
                events.append(event)
                on_event(event)
        trace = Trace(started.header, tuple(events))
        if failed := broken_off(events):
            raise RunFailed(f"the lane {failed.lane} broke off: {failed.reason}", trace)
        return trace

    def start(
        self,
        request: RunRequest,
        on_step: OnStep = lambda step: None,
        on_read: OnRead = lambda lane, done, total: None,
        *,
        measure: bool = True,
        kind: str = "",
        details: bool = True,
        alone: bool = False,
    ) -> Run:
        """Prepare what a run needs, choose what `request` leaves open, and return the run; errors are `stream`'s.

        `measure` and `on_step` are those of `prepare`. `on_read` is told, between two events, how much of a long prompt
        a lane has read. `kind` is the prompt's, for the header. If `alone`, there is no lane but the speculative one.
        """
        choice = self.prepare(
            request.drafter, request.k, request.params.temperature, measure=measure, peer=request.peer, on_step=on_step
        )
        settled = replace(request, drafter=choice.drafter, k=choice.k)
        events = race_lanes(self.models, settled, details, alone, on_read)
        prompt = request.prompt
        text = prompt if isinstance(prompt, str) else json.dumps(list(prompt), default=dict, ensure_ascii=False)
        lanes = (SPECULATIVE,) if alone else (SPECULATIVE, *[PEER] * request.peer, PLAIN)
        return Run(choice, live_header(text, self.models.describe(), lanes, kind), events)

    def release_memory(self) -> None:
        """Free the captured graphs that no run uses."""
        if self._models is not None:
            release_memory(self._models.resources)

    def close(self) -> None:
        """Free models and graphs. A later run loads them again."""
        if self._models is not None:
            resources, self._models = self._models.resources, None
            resources.peers.clear()
            release_memory(resources)  # when no model is left, so that its memory goes back to the device

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> zoo.Family:
        if self._names:
            family = zoo.load(self._names, self._dtype, self._device)
        else:
            family = zoo.from_memory(*self._in_memory)
            if self._device not in ("auto", place := family.target.device, place.partition(":")[0]):
                raise Refused(f"the model in memory is on {place}; leave out device, or move the model")
        if family.target.device == "cpu":
            family.resources.threads = probe.fastest_threads(family, self._spared_cores)
        probe.recall(family)
        return family


def run_in_thread(name: StepName, work: Callable[..., Any], on_step: OnStep) -> Any:
    """Do the work in a thread, and return its result. Call `on_step` several times a second, and then at the end.

    Of work that is done at once, because another run has done it before, `on_step` hears nothing.
    `work` takes `report`, which it calls with the parts that are done, and with all. If `on_step` raises, so does
    `report`: a CancelledError, which is no Exception that the work catches. Until the work ends, `on_step` still hears.
    """
    state, since = [0, 0], time.monotonic()
    raised: BaseException | None = None

    def report(done: int, total: int) -> None:
        state[:] = done, total
        if raised:
            raise CancelledError

    with ThreadPoolExecutor(1, f"specdec-{name}") as pool:
        future = pool.submit(torch.inference_mode()(work), report=report)
        while not future.done():
            try:
                if not wait([future], REPORT_EVERY_S).done:
                    on_step(Step(name, state[0], state[1], time.monotonic() - since))
            except BaseException as error:
                raised = raised or error
        if raised:
            raise raised
        result = future.result()
    if time.monotonic() - since > REPORT_EVERY_S:
        total = state[1] or 1
        on_step(Step(name, total, total, time.monotonic() - since))
    return result
