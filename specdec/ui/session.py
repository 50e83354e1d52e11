"""The page's only door to the engine and to recorded runs.

The engine has a process of its own (`worker.py`): the page itself needs no torch. One run at a time has the machine,
because two would spoil each other's clocks. The queue for it is ours (`turns.py`), not Gradio's: a visitor in it
sees the place, and can leave. On ZeroGPU a run asks for a shared GPU first (`zero.py`).

Every generator here yields something at least every half second, empty lines if there is nothing to tell: Gradio closes
a generator between two steps only, and no step may hold up the site. `guarded` turns what breaks into one sentence.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from ..events import Event
from ..exposure import limits
from ..families import hub, presets
from ..lanes.heartbeat import with_heartbeat, within
from ..lanes.worker import NoGPU, Worker, WorkerDied
from ..methods import EMBEDDED, is_wrapper, METHODS, OPEN
from ..settings import RunRequest
from ..traces.file import line, live_header, recording, Trace
from ..types import TranslatableText
from . import menu
from .gateway.turns import Turns
from .gateway.visitors import has_queue_priority, rate_limit, visitor_address
from .request import CertificateRequest
from .text import ASSETS, kind_of, of_drafters, sentences, strings, translated

LOOK = 0.5  # seconds between two looks at the line
TRACES, CERTIFICATES = ASSETS / "traces", ASSETS / "certificates.json"
FIRST = ("coding", "tips", "story")  # of what is recorded, the first screen's, which is greedy; then sampled ones
UNMEASURED_K = 4
WARM_AFTER = 1.0  # seconds, which are the first screen's

log = logging.getLogger(__name__)
device = "auto"  # of live runs; the engine resolves it where it runs
_worker = Worker()
_gpu: Any = None  # shared, beside the worker
if os.environ.get("SPACES_ZERO_GPU"):
    from ..lanes.zero import ZeroGPU

    _gpu = ZeroGPU()
EXPECTED = {"run": 6.0, "series": 30.0, "certificate": 15.0}  # seconds, at first
_machine = Turns(EXPECTED)
_warming = threading.Event()
_fetching = threading.Lock()  # one download at a time
_chosen: dict[str, str] = {}  # by family, the sentence on what was chosen by default
_fetched: hub.Fetched | None = None  # its last word, for all who wait for it


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell the page: lines of the run, or a notice beside the button; `cut` is why lines are missing.

    A `whole` run takes the place of all lines before it. `done`, `cut` and `error` come last. `share` is how much of a
    download is there.
    """

    kind: Literal["lines", "whole", "notice", "fetching", "waiting", "done", "cut", "error"]
    text: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Raced:
    """A race that is over, with all its events."""

    request: RunRequest
    events: tuple[Event, ...]


R = TypeVar("R")
T = TypeVar("T")


def guarded(work: Callable[[R], Iterator[T]]) -> Callable[[R], Iterator[News | T]]:
    """`work`, unless its visitor asks too often. Whatever breaks becomes one sentence."""

    @functools.wraps(work)
    def steps(request: R) -> Iterator[News | T]:
        address = visitor_address()
        if address and (seconds := rate_limit.wait_s(address)):
            yield News("error", notice("often", seconds=math.ceil(seconds)))
            return
        try:
            yield from work(request)
        except ValueError as error:  # what the engine refuses; its message is one sentence
            yield News("error", translated(error.args[0] if error.args else str(error)))
        except TimeoutError as late:
            yield News("cut", notice("deadline", seconds=round(late.args[0])))
        except WorkerDied:
            log.exception("the engine's process is gone")
            yield News("error", notice("died"))
        except Exception:
            log.exception("a run broke off")
            yield News("error", notice("broken"))

    return steps


@guarded
def run(request: RunRequest) -> Iterator[News]:
    """A live run, all lanes. Closing the iterator stops it within one cycle."""
    reason = ""  # why it is not quite the run that was asked for
    try:
        yield from _fetch(request.family)  # before the turn: nobody waits for another one's download
    except ValueError as error:
        if request.family != presets.STAR:
            raise
        reason = sentences(translated(error.args[0]), notice("instead"))
        request = replace(request, family=EMBEDDED, drafter=OPEN)
    if _gpu is not None and request.family == _gpu.family.name:
        try:  # takes no turn: the platform has a line of its own
            yield from _race(unmeasured(request), _gpu.family, _gpu.race, _gpu)
            return
        except NoGPU as refusal:
            minutes = math.ceil(refusal.wait.total_seconds() / 60) if refusal.wait else 0
            hours = {"hours": minutes // 60, "minutes": minutes % 60}
            reason = notice("no_quota", **hours) if minutes else notice("no_gpu")
    with contextlib.closing(_alone("run", _race_here(request))) as work:
        for news in work:
            yield news if news.kind == "lines" else replace(news, text=sentences(reason, news.text))


@guarded
def series(requests: Sequence[RunRequest]) -> Iterator[News | Raced]:
    """Races one after the other, without details, as fast as they go. Closing the iterator stops within one cycle."""
    yield from _fetch(requests[0].family)
    yield from _alone("series", _races(requests))


@guarded
def certify(request: CertificateRequest) -> Iterator[News]:
    """A live certificate: each of the lines is the whole of it so far, as JSON. Closing the iterator stops it."""
    yield from _alone("certificate", _certify(request))


def recorded_certificates(pair: Any) -> dict[str, Any]:
    """What `python -m tools.certificates` wrote of a pair, by mistake; nothing if there is none."""
    return menu.read_json(CERTIFICATES).get(str(pair), {})


def recorded(name: str, drafter: str = "") -> str:
    """A recorded run as NDJSON, checked: the first screen's, or a drafter's; "" if there is none."""
    if name not in recorded_names() or (drafter and drafter not in METHODS):
        return ""
    path = recording(TRACES, name, drafter) if drafter else TRACES / f"{name}.jsonl"
    try:
        return Trace.load(path).dumps() if path.exists() else ""
    except (OSError, ValueError) as error:
        log.warning("recorded run %s cannot be read: %s", path.relative_to(TRACES), error)
        return ""


def recorded_names() -> list[str]:
    """What is there, the first screen's first."""
    names = sorted(path.stem for path in TRACES.glob("*.jsonl"))
    return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def first_recorded() -> str:
    """The run for the first screen; any that can be read will do."""
    return next(filter(None, map(recorded, recorded_names())), "")


def sampled_name() -> str:
    return next(filter(recorded, FIRST[1:]), "")


def sampled_run(_: Any = None) -> str:
    """The recorded run for lessons about the coin: at temperature 0 it decides nothing."""
    return recorded(sampled_name())


def warm() -> None:
    """Have the engine imported, once the page is served: torch alone takes a second or two. The host's pair is fetched.

    Our models wait for a run: as they are loaded they measure this machine, which wants it quiet.
    """
    if not _warming.is_set():
        _warming.set()
        timer = threading.Timer(WARM_AFTER, _prepare)
        timer.daemon = True
        timer.start()


def _prepare() -> None:
    _worker.start()
    try:
        for _ in _fetch(presets.hosts()):
            pass
    except ValueError as error:
        log.warning("the pair of this host: %s", error)


def _fetch(family: str) -> Iterator[News]:
    """Until all that a pair needs is on this machine. ValueError says why it cannot be had."""
    pair = presets.named(family)
    if pair is None or _loaded(family):
        return
    yield News("notice", notice("looking"))
    while not _fetching.acquire(timeout=LOOK):
        yield _far(_fetched)
    try:
        if missing := [model for model in pair.models if not hub.is_here(model)]:
            yield News("fetching", notice("fetching_soon", name=missing[0]))
            yield from _download(missing)
    finally:
        _fetching.release()


def _download(models: Sequence[str]) -> Iterator[News]:
    global _fetched
    with contextlib.closing(hub.fetch(models, menu.memory())) as states:
        for _fetched in states:
            yield _far(_fetched)


def _far(state: hub.Fetched | None) -> News:
    """How far a download is."""
    if state is None or not state.total:
        return News("fetching", notice("fetching_soon", name=state.name) if state else notice("looking"))
    unit, digits, size = ("GB", 1, 1e9) if state.total >= 1e9 else ("MB", 0, 1e6)
    done, total = f"{state.done / size:.{digits}f}", f"{state.total / size:.{digits}f} {unit}"
    return News("fetching", notice("fetching", name=state.name, done=done, total=total), state.done / state.total)


def _alone(kind: str, work: Iterator[T]) -> Generator[News | T, None, None]:
    """`work`, while the machine is ours; until then how long that may take, again and again."""
    more = notice("or_here") if kind == "run" else ""
    ticket = _machine.join(kind, visitor_address(), has_queue_priority())
    if ticket is None:
        raise ValueError(sentences(notice("full"), more))
    try:
        while (place := _machine.before(ticket)) != (0, 0.0):
            count, seconds = place
            text = notice("waiting", n=count, seconds=max(5, 5 * math.ceil(seconds / 5)))
            yield News("waiting", sentences(text, more))
            time.sleep(LOOK)
        yield from work
    finally:
        _machine.leave(ticket)


def patiently(work: Callable[[], T]) -> Generator[News, None, T]:
    """What `work` returns or raises. It has a thread of its own, which carries on if the caller stops waiting."""
    for result in with_heartbeat(work() for _ in range(1)):
        if result is not None:
            return result
        yield News("lines", "")
    raise AssertionError("nothing came")


def _models(name: str) -> Generator[News, None, tuple[Any, Any]]:
    """The family, loaded, and what races it."""
    yield News("notice", notice("running" if _loaded(name) else "loading"))
    try:
        return (yield from patiently(lambda: _engine(name)))
    except Exception as error:
        text = error.args[0] if isinstance(error, ValueError) and error.args else ""
        if text and (isinstance(text, TranslatableText) or presets.named(name)):  # it says what does not fit
            raise
        log.exception("the models cannot be loaded")
        raise ValueError(notice("no_engine")) from error


def _race_here(request: RunRequest) -> Iterator[News]:
    family, race = yield from _models(request.family)
    request, chosen = yield from _filled(request, family)
    for news in _race(request, family, race, _worker):
        yield news if news.kind == "lines" else replace(news, text=sentences(chosen, news.text))


def _filled(request: RunRequest, family: Any) -> Generator[News, None, tuple[RunRequest, str]]:
    """The request with what its visitor left open, and a sentence about that. Once for a pair, costs are measured."""
    if request.drafter != OPEN and request.k:
        return request, ""
    yield News("notice", notice("measuring"))
    wanted = request.drafter, request.k, request.params.temperature
    drafter, k, speedup = yield from patiently(lambda: _choose(family, *wanted))
    words = strings("page")["settings"]["chosen"]
    line = words["not_measured" if not speedup else "pays" if speedup > 1.0 else "never_pays"]
    _chosen[request.family] = line.format(drafter=of_drafters("name").get(drafter, drafter), k=k)
    return replace(request, drafter=drafter, k=k), _chosen[request.family]


def _choose(family: Any, *wanted: Any) -> tuple[str, int, float]:
    (choice,) = filter(None, _worker.choose(family, *wanted))
    return choice  # type: ignore[no-any-return]


def unmeasured(request: RunRequest) -> RunRequest:
    """The same on a machine that is lent for a run, whose seconds are too dear to measure costs."""
    drafter = menu.drafters(request.family)[0] if request.drafter == OPEN else request.drafter
    return replace(request, drafter=drafter, k=request.k or UNMEASURED_K)


def chosen_line(family: Any) -> str:
    """What was last chosen for that family by default; before a run, how it will be."""
    return _chosen.get(str(family)) or strings("page")["settings"]["chosen"]["line"]


def _race(request: RunRequest, family: Any, race: Any, engine: Any) -> Iterator[News]:
    slow_start = "peer" if request.peer else "probing" if is_wrapper(request.drafter) else "running"
    yield News("notice", notice("asking" if engine is _gpu else slow_start))
    seconds = math.inf if engine is _gpu else limits().seconds  # there the run asked for its own
    header = ""
    for event in within(seconds, race(family, **request.arguments)):
        if event is not None and not header:  # not before: until the first event the engine may refuse the prompt
            kind = kind_of(request.prompt)
            header = live_header(request.prompt, family.describe(), kind, request.peer, engine.machine).line()
            yield News("lines", header)
        yield News("lines", "" if event is None else line(event))
    yield News("done", notice("done"))


def _races(requests: Sequence[RunRequest]) -> Iterator[News | Raced]:
    family, race = yield from _models(requests[0].family)

    def races() -> Generator[Event | Raced | None, None, None]:
        for request in requests:
            events = []
            with contextlib.closing(race(family, **request.arguments, details=False)) as answers:
                for event in answers:
                    events += [] if event is None else [event]
                    yield event
            yield Raced(request, tuple(events))

    for item in within(limits().seconds, races()):
        yield item if isinstance(item, Raced) else News("lines", "")


def _certify(request: CertificateRequest) -> Iterator[News]:
    yield News("notice", notice("loading" if request.pair == EMBEDDED and not _loaded(EMBEDDED) else "certifying"))
    wanted = request.pair, request.text, request.mistake, request.draws, request.seed
    for state in within(limits().seconds, _worker.call("certify", *wanted)):
        yield News("lines", "" if state is None else json.dumps(state, ensure_ascii=False))
    yield News("done", notice("certified"))


def _engine(family: str) -> tuple[Any, Any]:
    return _worker.load(family, device), _worker.race


def _loaded(family: str) -> bool:
    return _worker.is_loaded(family)


def notice(name: str, /, **values: Any) -> str:
    return strings("page")["notice"][name].format(**values)
