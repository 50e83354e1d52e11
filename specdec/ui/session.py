"""Give the page access to the engine and to recorded runs.

The engine has its own process (`lanes/worker.py`), so the page does not need torch. Only one run at a time uses the
machine, because two runs would distort each other's times. Visitors wait in our own queue (`gateway/turns.py`) instead
of Gradio's, because ours shows them their place, and they can leave it.

Gradio can cancel a generator only between two yields. Therefore every generator here yields at least every half second,
if necessary without text.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from ..events import Event, Failed
from ..exposure import limits
from ..families import hub, presets
from ..lanes.heartbeat import within
from ..lanes.worker import Prepared, Worker, WorkerDied
from ..methods import DEFAULT_DRAFTER, EMBEDDED, METHODS
from ..settings import RunRequest
from ..traces.file import line, live_header, recording
from ..types import TranslatableText
from . import menu
from .gateway.turns import Ticket, Turns
from .gateway.visitors import has_queue_priority, rate_limit, visitor_address
from .request import CertificateRequest
from .text import ASSETS, kind_of, of_drafters, sentences, strings, translated

LOOK_EVERY_S = 0.5  # how often a waiting visitor checks the queue, or another visitor's download
TRACES = ASSETS / "traces"
CERTIFICATES = ASSETS / "certificates.json"
FIRST = ("coding", "tips", "story")  # the first recorded runs: a greedy one for the first screen, then two sampled ones
WARM_AFTER_S = 1.0  # how long `warm` waits, so that the browser gets the first screen first
EXPECTED_S = {"run": 6.0, "certificate": 15.0}  # initial guesses of the duration of a turn

log = logging.getLogger(__name__)
device = "auto"  # the device of live runs; the engine's process resolves it
_worker = Worker()
_machine = Turns(EXPECTED_S)
_loaded: set[str] = set()  # families that the worker has loaded for runs
_chosen: dict[str, Prepared] = {}  # family -> the drafter and K that were chosen by default
_downloading = threading.Lock()  # one download at a time
_progress: hub.Fetched | None = None  # progress of the download, for all visitors who wait for it


@dataclass(frozen=True, slots=True)
class News:
    """One update for the page: lines of a run, a certificate, or a sentence for the notice beside the button.

    The last update has the kind `done`, `cut` (at the deadline) or `error`. `share` is the finished part of a download.
    """

    kind: Literal["lines", "notice", "fetching", "waiting", "done", "cut", "error"]
    text: str
    share: float = 1.0


R = TypeVar("R")
HEARTBEAT = News("lines", "")


def guarded(work: Callable[[R], Iterator[News]]) -> Callable[[R], Iterator[News]]:
    """Wrap `work` so that it refuses visitors who ask too often, and turns each error raised into one sentence."""

    @functools.wraps(work)
    def steps(request: R) -> Iterator[News]:
        address = visitor_address()
        if address and (seconds := rate_limit.wait_s(address)):
            yield News("error", notice("often", seconds=math.ceil(seconds)))
            return
        try:
            yield from work(request)
        except ValueError as error:  # the engine refused the run; the message is one sentence
            yield News("error", translated(error.args[0] if error.args else str(error)))
        except TimeoutError as error:
            yield News("cut", notice("deadline", seconds=round(error.args[0])))
        except WorkerDied:
            _loaded.clear()
            log.exception("the engine's process is gone")
            yield News("error", notice("died"))
        except Exception:
            log.exception("a run broke off")
            yield News("error", notice("broken"))

    return steps


@guarded
def run(request: RunRequest) -> Iterator[News]:
    """Run all lanes live. Closing the iterator stops the run within one cycle."""
    remark = ""  # why another family runs, and what was chosen by default
    try:
        yield from fetch(request.family)  # before the turn, so that others need not wait for the download
    except ValueError as error:
        if request.family != presets.SMOLLM2:
            raise
        remark = sentences(translated(error.args[0]), notice("instead"))
        request = replace(request, family=EMBEDDED, drafter=DEFAULT_DRAFTER)
    with place_in_line("run") as ticket:
        yield from wait(ticket, remark, notice("or_here"))
        ready = yield from prepare(request, remark)
        if request.drafter == DEFAULT_DRAFTER or not request.k:
            _chosen[request.family] = ready
            remark = sentences(remark, chosen_line(request.family))
            request = replace(request, drafter=ready.drafter, k=ready.k)
        yield News("notice", sentences(remark, notice("peer" if request.peer else "running")))
        yield from lines(request, ready, _worker.call("race", request.family, device, **request.arguments))
        yield News("done", sentences(remark, notice("done")))


@guarded
def certify(request: CertificateRequest) -> Iterator[News]:
    """Sample a certificate live. An update of kind `lines` is "" or the whole certificate so far, as JSON."""
    with place_in_line("certificate") as ticket:
        yield from wait(ticket)
        yield News("notice", notice("certifying" if request.pair != EMBEDDED or EMBEDDED in _loaded else "loading"))
        arguments = request.pair, request.text, request.mistake, request.draws, request.seed
        for state in within(limits().seconds, _worker.call("certify", *arguments)):
            yield News("lines", json.dumps(state, ensure_ascii=False)) if state else HEARTBEAT
        yield News("done", notice("certified"))


@contextlib.contextmanager
def place_in_line(kind: str) -> Iterator[Ticket]:
    """Hold a place in the queue for this machine. Raises ValueError if the queue is full."""
    ticket = _machine.join(kind, visitor_address(), has_queue_priority())
    if ticket is None:
        raise ValueError(sentences(notice("full"), notice("or_here") if kind == "run" else ""))
    try:
        yield ticket
    finally:
        _machine.leave(ticket)


def wait(ticket: Ticket, remark: str = "", instead: str = "") -> Iterator[News]:
    """Wait for the ticket's turn, and yield notices with the expected wait."""
    while (place := _machine.before(ticket)) != (0, 0.0):
        count, seconds = place
        waiting = notice("waiting", n=count, seconds=max(5, 5 * math.ceil(seconds / 5)))
        yield News("waiting", sentences(remark, waiting, instead))
        time.sleep(LOOK_EVERY_S)


def fetch(family: str) -> Iterator[News]:
    """Download the missing files of a pair. Raises ValueError if that fails."""
    global _progress
    pair = presets.parse_pair(family)
    if pair is None or family in _loaded:
        return
    yield News("notice", notice("looking"))
    while not _downloading.acquire(timeout=LOOK_EVERY_S):
        yield progress(_progress)
    try:
        if missing := [model for model in pair.models if not hub.is_here(model)]:
            yield News("fetching", notice("fetching_soon", name=missing[0]))
            with contextlib.closing(hub.fetch(missing, menu.memory())) as states:
                for _progress in states:
                    yield progress(_progress)
    finally:
        _downloading.release()


def progress(state: hub.Fetched | None) -> News:
    """Say how much of a download is finished."""
    if state is None or not state.total:
        return News("fetching", notice("fetching_soon", name=state.name) if state else notice("looking"))
    unit, digits, size = ("GB", 1, 1e9) if state.total >= 1e9 else ("MB", 0, 1e6)
    done, total = f"{state.done / size:.{digits}f}", f"{state.total / size:.{digits}f} {unit}"
    return News("fetching", notice("fetching", name=state.name, done=done, total=total), state.done / state.total)


def prepare(request: RunRequest, remark: str = "") -> Generator[News, None, Prepared]:
    """Let the worker load the request's pair, and choose drafter and K if the request leaves them open."""
    yield News("notice", sentences(remark, notice("running" if request.family in _loaded else "loading")))
    choices = request.drafter, request.k, request.params.temperature
    ready = None
    try:
        with contextlib.closing(_worker.call("prepare", request.family, device, *choices)) as items:
            for item in items:
                if isinstance(item, Prepared):
                    ready = item
                else:
                    yield News("notice", sentences(remark, notice(item))) if item else HEARTBEAT
    except ValueError as error:
        # The engine's own sentences, and errors of a pair that somebody named, already say what is wrong.
        if isinstance(error.args[0], TranslatableText) or presets.parse_pair(request.family):
            raise
        log.exception("the models cannot be loaded")
        raise ValueError(notice("no_engine")) from error
    assert ready is not None
    _loaded.add(request.family)
    return ready


def chosen_line(family: Any) -> str:
    """Say what was chosen by default for the family, or how the default is chosen."""
    words, ready = strings("page")["settings"]["chosen"], _chosen.get(str(family))
    if ready is None:
        return words["line"]
    template = words["not_measured" if not ready.speedup else "pays" if ready.speedup > 1.0 else "never_pays"]
    return template.format(drafter=of_drafters("name").get(ready.drafter, ready.drafter), k=ready.k)


def lines(request: RunRequest, ready: Prepared, events: Generator[Event | None, None, None]) -> Iterator[News]:
    """Yield a run as the lines of a trace. Raises TimeoutError at the deadline."""
    header = ""
    for event in within(limits().seconds, events):
        if event is not None and not header:  # not earlier: the engine can still refuse the prompt
            kind = kind_of(request.prompt)
            header = live_header(request.prompt, ready.models, kind, request.peer, ready.machine).line()
            yield News("lines", header)
        if isinstance(event, Failed):
            event = replace(event, reason=translated(event.reason))
        yield News("lines", line(event)) if event else HEARTBEAT


def recorded_certificates(pair: Any) -> dict[str, Any]:
    """Return a pair's recorded certificates, with mistakes as keys; {} if there are none."""
    return menu.read_json(CERTIFICATES).get(str(pair), {})


def recorded(name: str, drafter: str = "") -> str:
    """Return the text of a recorded run, by default of the main drafter; "" if there is none."""
    if name not in recorded_names() or (drafter and drafter not in METHODS):
        return ""
    path = recording(TRACES, name, drafter) if drafter else TRACES / f"{name}.jsonl"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def recorded_names() -> list[str]:
    """List the names of the main recorded runs. The first screen's run comes first."""
    names = sorted(path.stem for path in TRACES.glob("*.jsonl"))
    return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def first_recorded() -> str:
    """Return the run for the first screen, or "" if no run is recorded."""
    return recorded(next(iter(recorded_names()), ""))


def sampled_name() -> str:
    return next(filter(recorded, FIRST[1:]), "")


def sampled_run(_: Any = None) -> str:
    """Return a sampled recorded run, for lessons about random acceptance, which a greedy run does not show."""
    return recorded(sampled_name())


@functools.cache
def warm() -> None:
    """Start the worker and download the host's pair, a moment after the first visit.

    Models are loaded only in a run, because costs are measured right after loading, on an idle machine.
    """
    timer = threading.Timer(WARM_AFTER_S, _start_and_fetch)
    timer.daemon = True
    timer.start()


def _start_and_fetch() -> None:
    _worker.start()
    try:
        for _ in fetch(presets.host_pair()):
            pass
    except ValueError as error:
        log.warning("the pair of this host: %s", error)


def notice(name: str, /, **values: Any) -> str:
    return strings("page")["notice"][name].format(**values)
