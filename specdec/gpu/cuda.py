"""Hold what CUDA has once in a process."""

from collections.abc import Hashable

import torch

STREAMS = 32  # CUDA streams in torch's pool; after the last stream, the pool returns the first again


class InProcess:
    """What CUDA has once in a process: the streams that graphs are captured on, and whether any can be captured.

    cuBLAS has one workspace for each stream. Graphs captured on a stream hold the workspace's address, and since torch
    2.12, deleting any of them frees it (pytorch issue 193402). So graphs that share a stream must be deleted together.
    """

    def __init__(self) -> None:
        self.broken = ""  # why no more graphs can be captured after a failed capture; "" if they can
        self.spoiled = False  # whether memory ran out in the failed capture; `process.py` then ends the process
        self.unfit: dict[tuple[object, ...], str] = {}  # kind of layers -> why Triton's kernels do not fit (`trial.py`)
        self._free: list[torch.cuda.Stream] = []
        self._made: set[int] = set()

    def lend(self) -> torch.cuda.Stream:
        """Lend a stream for the graphs of one owner. Raises RuntimeError if all streams are lent."""
        if self._free:
            return self._free.pop()
        for _ in range(STREAMS):
            stream = torch.cuda.Stream()
            if stream.cuda_stream not in self._made:
                self._made.add(stream.cuda_stream)
                return stream
        raise RuntimeError(f"all {STREAMS} CUDA streams of torch are in use for graphs")

    def give_back(self, stream: torch.cuda.Stream, graphs: dict[Hashable, torch.cuda.CUDAGraph]) -> None:
        graphs.clear()  # before another owner captures on this stream
        self._free.append(stream)


IN_PROCESS = InProcess()
