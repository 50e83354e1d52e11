"""Give the page access to the engine, which has its own process (`process.py`).

One run at a time uses the machine: two would distort each other's times. Our own queue (`gateway/visitors.py`) shows
visitors their place. Gradio cancels a generator only between two yields, so these yield every half second.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ..exposure import limits
from ..families import hub, presets
from ..messages import Refused, Step
from ..methods import Choice, DEFAULT_DRAFTER, EMBEDDED
from ..process import Deadline, EngineProcess, ProcessDied
from ..settings import RunRequest
from . import recorded
from .gateway.visitors import has_queue_priority, RateLimit, Ticket, Turns, visitor_address
from .text import kind_of, language, of_drafters, sentences, strings, translate, translated

LOOK_EVERY_S = 0.5  # how often a waiting visitor checks the queue, or another visitor's download
PREPARE_AFTER_S = 1.0  # how long `warm_up` waits, so that the browser gets the first screen first
EXPECTED_S = {"run": 6.0, "certificate": 15.0}  # initial guesses of the duration of a turn
STEPS_S = {"compile": 11.0, "load": 6.0, "measure": 10.0}  # what the steps of preparing take on two quiet cores

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the page is told of a run or a certificate. The last answer is `done`, `cut` or `error`."""

    name: Literal["lines", "waiting", "fetch", "prepare", "running", "read", "done", "cut", "error"]
    text: str  # of `lines`: a run's, or a certificate's state as JSON; "": a heartbeat; else a sentence
    share: float = 1.0  # how much is done of what the text names


class Session:
    """The page's one engine process, the queue before it, and what the engine said of itself."""

    def __init__(self) -> None:
        self.device = "auto"  # of live runs; the engine's process resolves it
        self.process = EngineProcess()  # or, where GPUs are lent, a `ZeroProcess`
        self.turns = Turns(EXPECTED_S)
        self.rate_limit = RateLimit()
        self.choices: dict[str, Choice] = {}  # target -> the drafter and K that are chosen if none is given
        self.preparing: Step | None = None  # how far `_prepare` is, for everybody who waits for it
        self.download: Step | None = None  # how far the download is; only who holds `_downloading` sets it
        self._downloading = threading.Lock()  # one download at a time
        self._warming_up = False

    def run(self, request: RunRequest, stand_in: bool = True) -> Generator[Answer, None, None]:
        """Run all lanes live. Closing the iterator stops the run at the engine's next message."""
        news, deadline = RunNews(request), Deadline(limits().seconds)
        try:
            self.check_rate()
            yield from self.fetch_for(news, stand_in)  # before the turn, so that others need not wait for the download
            with self.place_in_queue("run") as ticket:
                yield from self.wait(ticket, news.remark, say("or_here"))
                arguments = news.request, self.device, kind_of(request.prompt), partial(translate, language())
                with contextlib.closing(self.process.call("run", *arguments)) as call:
                    for item in call:
                        deadline.check(item)
                        yield from news.answers(item, self.preparing)
            yield Answer("done", news.remark)  # the player says that it is done
        except Exception as error:
            yield last_answer(error, news.undone())

    def certify(self, arguments: tuple[Any, ...]) -> Generator[Answer, None, None]:
        """Sample a certificate live. The text of `lines` is the whole certificate so far."""
        deadline = Deadline(limits().seconds)
        try:
            self.check_rate()
            with self.place_in_queue("certificate") as ticket:
                yield from self.wait(ticket)
                yield Answer("running", say("certifying"))
                with contextlib.closing(self.process.call("certify", *arguments)) as call:
                    for state in call:
                        deadline.check(state)
                        yield Answer("lines", state or "")
            yield Answer("done", say("certified"))
        except Exception as error:
            yield last_answer(error)

    def check_rate(self) -> None:
        """Raise Refused for a visitor who has had too many turns in the last minute."""
        address = visitor_address()
        if address and (seconds := self.rate_limit.wait_s(address)):
            raise Refused(say("often", seconds=math.ceil(seconds)))

    @contextlib.contextmanager
    def place_in_queue(self, kind: str) -> Iterator[Ticket]:
        """Hold a place in the queue for this machine. Raises Refused if the queue is full."""
        ticket = self.turns.join(kind, visitor_address(), has_queue_priority())
        if ticket is None:
            raise Refused(sentences(say("full"), say("or_here") if kind == "run" else ""))
        try:
            yield ticket
        finally:
            self.turns.leave(ticket)

    def wait(self, ticket: Ticket, remark: str = "", instead: str = "") -> Iterator[Answer]:
        while place := self.turns.poll(ticket):
            count, seconds = place
            waiting = say("waiting", n=count, seconds=max(5, 5 * math.ceil(seconds / 5)))
            yield Answer("waiting", sentences(remark, waiting, instead))
            time.sleep(LOOK_EVERY_S)

    def fetch_for(self, news: "RunNews", stand_in: bool) -> Iterator[Answer]:
        """Download what a run needs. With `stand_in`, the embedded target runs if SmolLM2 cannot be had."""
        try:
            yield from self.fetch(news.request.target)
        except Refused as error:
            if not stand_in or news.request.target != presets.SMOLLM2:
                raise
            news.remark = sentences(translated(error.sentence), say("instead"))
            news.request = replace(news.request, target=EMBEDDED, drafter=DEFAULT_DRAFTER)

    def fetch(self, target: str) -> Iterator[Answer]:
        """Download the missing files of a pair. Raises Refused if that fails."""
        models = presets.parse(target).models
        if all(map(hub.is_here, models)):
            return
        yield Answer("running", say("looking"))
        while not self._downloading.acquire(timeout=LOOK_EVERY_S):
            yield worded(self.download)
        try:
            if missing := [model for model in models if not hub.is_here(model)]:
                yield Answer("fetch", say("fetching_soon", name=missing[0]))
                with contextlib.closing(hub.fetch(missing, self.device)) as states:
                    for step in states:
                        self.download = step
                        yield worded(step)
        finally:
            self.download = None
            self._downloading.release()

    def warm_up(self) -> None:
        """Make the engine ready, in the background, a moment after this call. Later calls do nothing."""
        if not self._warming_up:
            self._warming_up = True
            timer = threading.Timer(PREPARE_AFTER_S, self._warm_up)
            timer.daemon = True
            timer.start()

    def _warm_up(self) -> None:
        """Prepare the pair that the page begins with, and the embedded target, its stand-in."""
        self.process.start()  # imports torch and compiles, while the pair is fetched
        for target in dict.fromkeys((recorded.first_target(), EMBEDDED)):
            try:
                for _ in self.fetch(target):
                    pass
                while not self._prepare(target):
                    while self.turns.busy():
                        time.sleep(LOOK_EVERY_S)
            except (Refused, RuntimeError) as error:
                log.warning("%s is not prepared: %s", target, error)

    def _prepare(self, target: str) -> bool:
        """Prepare a target. Return False if measuring was interrupted by a visitor's run."""
        try:
            with contextlib.closing(self.process.call("prepare", target, self.device)) as call:
                for item in call:
                    if isinstance(item, Choice):
                        self.choices[target] = item
                    elif isinstance(item, Step):
                        self.preparing = item
                        if item.name == "measure" and self.turns.busy():
                            return False
            return True
        finally:
            self.preparing = None


@dataclass(slots=True)
class RunNews:
    """Words the engine's answers to a run. `remark` and `chosen` stay before what else its visitor is told."""

    request: RunRequest
    remark: str = ""
    chosen: str = ""  # by default
    reading: Step | None = None  # how much of a long prompt is read, until the text goes on
    has_begun: bool = False  # whether lines of the trace are there

    def answers(self, item: Any, preparing: Step | None) -> Iterator[Answer]:
        """Word one answer. While the call waits, `preparing` is the step that it waits for."""
        match item:
            case str():
                self.has_begun = True
                yield Answer("lines", item)
                if self.reading and item:
                    self.reading = None
                    yield Answer("running", sentences(self.remark, self.chosen) or say("running"))
            case Choice():
                if self.request.leaves_open(item):
                    self.chosen = chosen_sentence(item)
                peer = say("peer") if self.request.peer else ""
                yield Answer("running", sentences(self.remark, self.chosen, peer) or say("running"))
            case Step("read"):
                self.reading = item
                yield Answer("read", read_so_far(item), share(item))
            case Step("ask"):
                if item.text:  # the platform's reason why there is no GPU
                    self.remark = sentences(self.remark, item.text, say("refused"), say("or_here"))
                yield Answer("running", self.remark if item.text else sentences(self.remark, say("asking")))
            case _:
                step = item or preparing
                is_shown = step and step.name in STEPS_S and not self.has_begun
                yield worded(step, sentences(self.remark, self.chosen)) if is_shown else Answer("lines", "")

    def undone(self) -> str:
        """Say what a run that is cut leaves undone."""
        unwritten = say("unwritten", total=self.request.params.max_tokens)
        return sentences(read_so_far(self.reading, "unread") if self.reading else unwritten, self.remark)


def chosen_sentence(choice: Choice | None) -> str:
    """Say what was chosen by default, or how the default is chosen."""
    words = strings("page")["settings"]["chosen"]
    if choice is None:
        return words["line"]
    template = words["not_measured" if not choice.speedup else "pays" if choice.speedup > 1.0 else "never_pays"]
    return template.format(drafter=of_drafters("name").get(str(choice.drafter), choice.drafter), k=choice.k)


def worded(step: Step | None, remark: str = "") -> Answer:
    """Say what is done to prepare a run, and how far it is. None: another visitor's download."""
    if step is None:
        return Answer("fetch", sentences(remark, say("looking")))
    if step.name == "fetch":
        unit, digits, size = ("GB", 1, 1e9) if step.total >= 1e9 else ("MB", 0, 1e6)
        done, total = f"{step.done / size:.{digits}f}", f"{step.total / size:.{digits}f} {unit}"
        asking = say("fetching_soon", name=step.text)
        text = say("fetching", name=step.text, done=done, total=total) if step.total else asking
    else:
        left = STEPS_S.get(step.name, 0.0) - step.seconds
        more = say("more", seconds=math.ceil(left)) if left > 0 else ""
        so_far = say("so_far", seconds=math.floor(step.seconds))
        text = sentences(say(step.name), so_far + more + say("stop"))
    return Answer("fetch" if step.name == "fetch" else "prepare", sentences(remark, text), share(step))


def share(step: Step) -> float:
    return step.done / step.total if step.total else 1.0


def read_so_far(step: Step, name: str = "reading") -> str:
    return say(name, lane=strings("page")["lanes"][step.text], done=step.done, total=step.total)


def last_answer(error: Exception, undone: str = "") -> Answer:
    """Turn the error that ended a run into its last answer. `undone` is added at the deadline."""
    if isinstance(error, Refused):
        return Answer("error", translated(error.sentence))
    if isinstance(error, Deadline):
        return Answer("cut", sentences(say("deadline", seconds=round(error.seconds)), undone))
    log.error("a run broke off", exc_info=error)
    return Answer("error", say("died" if isinstance(error, ProcessDied) else "broken"))


def say(name: str, /, **values: Any) -> str:
    return strings("page")["notice"][name].format(**values)


session = Session()
