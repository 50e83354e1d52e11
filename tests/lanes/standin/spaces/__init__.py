"""Stands in for Hugging Face's `spaces` on ZeroGPU, without a GPU: what 0.51.3 does with a decorated generator.

A call asks for its seconds, forks this process, and runs there in a fresh thread. Arguments and answers are pickled,
and answers are fetched whether or not anybody reads them. A closed call ends after its next answer. Only Gradio's own
errors keep their sentence. Unlike there, a fork serves one call.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import Any

import gradio as gr

assert os.environ.get("SPACES_ZERO_GPU") and ("torch" not in sys.modules or "pytest" in sys.modules)

refusal = ""  # what there is against a call
free = threading.Event()  # while it is not set, calls wait for a GPU
free.set()
asked: list[float] = []  # seconds, of each call
forks: list[Any] = []
_context = multiprocessing.get_context("fork")
_forked = False


def gradio_auto_wrap(function: Any) -> Any:
    return function


def GPU(task: Any = None, *, duration: Any = 60, size: str | None = None) -> Any:
    if task is None:
        return lambda task: GPU(task, duration=duration, size=size)
    assert inspect.isgeneratorfunction(task)

    @wraps(task)
    def call(*args: Any, **options: Any) -> Iterator[Any]:
        assert not _forked
        asked.append(duration)
        if refusal:
            raise error("ZeroGPU quota exceeded", refusal)
        free.wait()
        (source, sink), stop = _context.Pipe(duplex=False), _context.Event()
        fork = _context.Process(target=serve, args=(task, pickle.dumps((args, options)), sink, stop), daemon=True)
        forks.append(fork)
        fork.start()
        sink.close()
        told: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        with ThreadPoolExecutor(1) as pool:  # a call that is closed waits for the end of its fork
            pool.submit(fetch, source, told)
            while (answer := told.get())[0] == "item":
                try:
                    yield answer[1]
                except GeneratorExit:
                    stop.set()
                    raise
        if answer[0] != "end":
            raise answer[1] or error("ZeroGPU worker error", "GPU task aborted")

    return call


def fetch(source: Any, told: Any) -> None:
    answer = "item", None
    while answer[0] == "item":
        try:
            answer = source.recv()
        except EOFError:
            answer = "aborted", None
        told.put(answer)


def serve(task: Callable[..., Iterator[Any]], called: bytes, sink: Any, stop: Any) -> None:
    """In the fork."""
    global _forked
    _forked = True
    args, options = pickle.loads(called)

    def iterate() -> tuple[str, Any]:
        items = task(*args, **options)
        try:
            for item in items:
                if stop.is_set():
                    items.close()  # type: ignore[attr-defined]
                    break
                sink.send(("item", item))
        except gr.Error as broken:
            return "error", broken
        except Exception as broken:
            return "error", error("ZeroGPU worker error", type(broken).__name__)
        return "end", None

    with ThreadPoolExecutor(1) as pool:
        sink.send(pool.submit(copy_context().run, iterate).result())


def error(title: str, sentence: str) -> gr.Error:
    return gr.Error(sentence, title=title, print_exception=False)
