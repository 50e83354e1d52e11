"""The calls that the engine's process answers: prepare a target, run a request, certify.

A call takes the engines of the process, `send`, and what the page has sent with it.
"""

import contextlib
import json
import logging
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace

import torch

from .engine import Engine, Run
from .events import Committed, Failed, Finished, Started
from .families import presets, zoo
from .gpu.cuda import IN_PROCESS
from .loop import NO_ROOM
from .messages import Refused, Step
from .methods import Choice
from .proof import certify as certificate
from .proof.mistakes import MISTAKES
from .settings import RunRequest
from .traces.file import escaped, line

UPDATES_PER_SECOND = 8  # of lines; at any speed of the engine
Send = Callable[[str | Step | Choice], None]
Engines = dict[tuple[str, str], Engine]  # by target and device
log = logging.getLogger(__name__)


def engine_for(engines: Engines, target: str, device: str) -> Engine:
    """Return the engine of a target on a device, a new one if there is none. Of pairs, only the last one stays."""
    key = target, zoo.resolve_device(device)
    if key not in engines:
        if presets.parse(target).kind == "pair":
            for other in [key for key in engines if presets.parse(key[0]).kind == "pair"]:
                engines.pop(other).close()
        engines[key] = Engine(target, device=key[1], spared_cores=1)  # one core is for the page
    return engines[key]


def explain(error: Exception, engines: Iterable[Engine]) -> Exception:
    """Convert an error to one that can be pickled. Visitors see the message of `Refused`; others are logged."""
    if isinstance(error, Refused):
        log.info("refused", exc_info=error)
        return Refused(*error.args)
    log.error("a call of the engine failed", exc_info=error)
    if isinstance(error, torch.OutOfMemoryError):
        for engine in engines:
            engine.release_memory()
        return Refused(NO_ROOM)
    return RuntimeError(f"{type(error).__name__}: {error}")


def is_spoiled() -> bool:
    """Return whether every further run would fail."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        log.exception("CUDA cannot recover from an error, so this process ends")
        return True
    return IN_PROCESS.spoiled


def prepare(engines: Engines, send: Send, target: str, device: str) -> None:
    """Prepare a run of this target that leaves drafter and K open, and send what is chosen for it."""
    send(engine_for(engines, target, device).prepare(on_step=send))


def run(
    engines: Engines, send: Send, request: RunRequest, device: str, kind: str, translate: Callable[[str], str]
) -> None:
    """Run a request. Send the steps of preparing, the choice of drafter and K, and then the lines of the trace.

    Between lines, steps named `read` say how much of a long prompt the lane `text` has read. `kind` is the prompt's
    kind for the header. `translate` is that of `lines_of`.
    """

    def on_read(lane: str, done: int, total: int) -> None:
        send(Step("read", done, total, text=lane))

    started = engine_for(engines, request.target, device).start(request, send, on_read, measure=False, kind=kind)
    send(started.choice)
    with contextlib.closing(lines_of(started, translate)) as texts:
        for text in texts:
            send(text)


def lines_of(started: Run, translate: Callable[[str], str]) -> Generator[str, None, None]:
    """Run what was started, and yield its trace, several lines at a time, and no cycle in parts.

    `translate` puts the engine's sentences into another language. Closing the iterator ends the run.
    """
    lines, sent_at = started.header.line(), 0.0
    with contextlib.closing(started.events) as events:
        for event in events:
            if isinstance(event, Failed):
                event = replace(event, reason=translate(event.reason))
            lines += line(event)
            is_whole = isinstance(event, Started | Committed | Finished)  # a fatal failure is followed by `Finished`
            if is_whole and time.monotonic() - sent_at >= 1 / UPDATES_PER_SECOND:
                text, lines, sent_at = escaped(lines), "", time.monotonic()
                yield text
    if lines:
        yield escaped(lines)


def certify(engines: Engines, send: Send, pair: str, text: str, mistake: str, draws: int, seed: int) -> None:
    chosen = certificate.toy() if pair == "toy" else certificate.embedded(engine_for(engines, pair, "cpu").models, text)
    for state in certificate.certify(chosen, MISTAKES[mistake] if mistake else None, draws, seed):
        send(json.dumps(state, ensure_ascii=False))


CALLS: dict[str, Callable[..., None]] = {"prepare": prepare, "run": run, "certify": certify}
