"""A CUDA that keeps books: streams, cuBLAS's workspaces, captures. It computes nothing, and needs no GPU.

As torch 2.13 has it (CUDAGraph.cpp, CublasHandlePool.cpp): 32 streams in turn; one workspace a stream, whose address
every graph captured there holds; the end of a graph frees the workspace of its stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

STREAMS = 32


class Workspace:
    alive = True


class Device:
    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.workspaces: dict[int, Workspace] = {}
        self.current: Stream
        self.capturing: Graph | None = None
        self.stays_capturing = False  # the allocator, after a failure, as before torch 2.12
        self.stuck = False

    def product(self) -> None:
        """What a matrix product asks of cuBLAS."""
        workspace = self.workspaces.setdefault(self.current.cuda_stream, Workspace())
        if self.capturing is not None:
            self.capturing.workspaces.append(workspace)


class Stream:
    def __init__(self, device: Device, number: int) -> None:
        self.device, self.cuda_stream = device, number

    def wait_stream(self, other: Stream) -> None:
        assert isinstance(other, Stream)


class Graph:
    def __init__(self, device: Device) -> None:
        self.device, self.workspaces, self.stream = device, list[Workspace](), -1

    def pool(self) -> object:
        return self

    def replay(self) -> None:
        if not all(workspace.alive for workspace in self.workspaces):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def __del__(self) -> None:
        if workspace := self.device.workspaces.pop(self.stream, None):
            workspace.alive = False


@pytest.fixture
def false_cuda(monkeypatch: pytest.MonkeyPatch) -> Device:
    """In place of torch's own."""
    device = Device()
    default = Stream(device, -1)
    device.current = default
    shared = Stream(device, next(device.numbers) % STREAMS)  # torch's own, where a capture names none

    @contextmanager
    def stream(one: Stream) -> Iterator[None]:
        before, device.current = device.current, one
        yield
        device.current = before

    @contextmanager
    def graph(made: Graph, pool: Any = None, stream: Stream | None = None) -> Iterator[None]:
        assert not device.stuck, "captures_underway.empty() INTERNAL ASSERT FAILED"
        before, device.current = device.current, stream or shared
        device.capturing, made.stream = made, device.current.cuda_stream
        try:
            yield
        except Exception:
            device.capturing, device.stuck = None, device.stays_capturing
            raise  # and the stream stays
        device.capturing, device.current = None, before

    for name, thing in {
        "Stream": lambda: Stream(device, next(device.numbers) % STREAMS),
        "CUDAGraph": lambda: Graph(device),
        "stream": stream,
        "graph": graph,
        "current_stream": lambda: device.current,
        "set_stream": lambda one: setattr(device, "current", one),
    }.items():
        monkeypatch.setattr(torch.cuda, name, thing)
    return device
