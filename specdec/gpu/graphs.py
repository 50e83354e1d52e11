"""Our decoder with fixed shapes, and CUDA graphs that capture its steps.

Eager Python launches a step's hundreds of small kernels one by one: for a small draft model this takes longer than
reading its weights. A captured graph launches all at once. This needs fixed shapes: the length of the text is a tensor,
and attention always reads a whole bucket of the cache, a fixed number of positions. No step makes the host wait.
"""

import time
import weakref
from collections.abc import Callable, Hashable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.torch_version import TorchVersion

from ..models.folding import Layer
from ..models.matrix import add_product, linear
from ..models.transformer import Transformer
from .cuda import IN_PROCESS
from .ops import Sight
from .trial import operations

SMALLEST = 256  # positions of the smallest bucket; each further bucket is twice as large
ALIGNED = 64  # a cache's number of positions is a multiple of this; attention over other lengths is slower
WARM_UPS = 2
# Before torch 2.12, a failed capture leaves the allocator in capture mode; the next one fails (pytorch issue 180395).
FAILURES_STAY = TorchVersion(torch.__version__) < "2.12"


def bucket_for(end: int, capacity: int) -> int:
    """Return the size of the smallest bucket that holds `end` positions. The last bucket is the whole cache."""
    size = SMALLEST
    while size < end:
        size *= 2
    return min(size, capacity)


def aligned(capacity: int) -> int:
    return -(-capacity // ALIGNED) * ALIGNED


class StaticDecoder:
    """Runs `model` over a cache of `capacity` positions, with the text's length on the device."""

    def __init__(self, model: Transformer, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> None:
        self.model, self.cache = model, model.new_cache(capacity, taps, exit_layer)
        self.ops = operations(model)
        self._places = torch.arange(capacity, device=model.device)
        # Drafts beyond the context are never judged, so their rotary angles do not matter.
        self._angles = model.angles.index_select(0, self._places.clamp(max=model.context - 1))

    def clear(self) -> None:
        """Empty the cache and fill it with zeros: masked entries have weight 0, but 0 times NaN is NaN."""
        self.cache.keep(0)
        for tensor in (self.cache.data, *self.cache.states.values()):
            tensor.zero_()

    def prefill(self, tokens: Sequence[int]) -> Tensor:
        """Read a text from its start, without fixed shapes; return logits after its last token.  # [1, vocabulary]"""
        self.clear()
        return self.model.forward(tokens, self.cache)

    def places(self, start: Tensor, count: int) -> Tensor:
        """Return `count` positions from `start` [1] on.  # [count]"""
        return start if count == 1 else start + self._places[:count]

    def place(self, index: int) -> Tensor:
        """Return the position `index` as a tensor, for a step outside of graphs.  # [1]"""
        return self._places[index : index + 1]

    def forward(self, ids: Tensor, start: Tensor, bucket: int, past_exit: int = 0) -> Tensor:
        """Append `ids` [n] at position `start` [1] and return their logits; start + n <= bucket.  # [n, vocabulary]

        Entries of the cache from `start` on are overwritten or masked, so a smaller `start` rolls the cache back. The
        first `past_exit` tokens have already passed the layers below the early exit, and continue from the exit.
        """
        if not past_exit:
            return self.model.logits(self.run_layers(ids, start, bucket))
        exit_layer = self.cache.exit_layer
        self.run_layers(ids[past_exit:], start + past_exit, bucket, 0, exit_layer)
        states = self.cache.states[exit_layer].index_select(0, self.places(start, len(ids)))
        return self.model.logits(self.run_layers(states, start, bucket, exit_layer))

    def run_layers(
        self,
        source: Tensor,
        start: Tensor,
        bucket: int,
        first: int = 0,
        last: int | None = None,
        normed_input: Tensor | None = None,
    ) -> Tensor:
        """Send ids [n] or states [n, hidden] through the layers `first` to `last` - 1.

        `normed_input` replaces the normed input of the first layer's attention. States in `source` are overwritten.
        """
        model, states = self.model, self.cache.states
        last = len(model.layers) if last is None else last
        places = self.places(start, len(source))
        angles = self._angles.index_select(0, places)
        sights = {window: self.ops.sight(places, bucket, window, model.dtype) for window in model.windows}
        x = source if source.is_floating_point() else F.embedding(source, model.embedding)
        for i, layer in enumerate(model.layers[first:last], first):
            if i in states:
                states[i].index_copy_(0, places, x)
            self._block(x, layer, self.cache.data[i], angles, sights[layer.window], normed_input)
            normed_input = None
        if last in states:
            states[last].index_copy_(0, places, x)
        return x

    def _block(
        self, x: Tensor, layer: Layer, kv_cache: Tensor, angles: Tensor, sight: Sight, normed: Tensor | None
    ) -> None:
        """Apply one layer to `x` in place, as the model's own `_run_layer` does."""
        ops, residual_stream = self.ops, None
        if normed is None:
            normed, residual_stream = ops.norm(x)
        queries = ops.rotate(linear(normed, layer.qkv), residual_stream, layer, angles, kv_cache, sight.places)
        add_product(x, ops.attend(queries, kv_cache, sight), layer.out)
        if layer.out_bias is not None:
            x.add_(layer.out_bias)
        normed, residual_stream = ops.norm(x)
        add_product(x, ops.gate(linear(normed, layer.gate_up), residual_stream), layer.down)


class Graphs:
    """Captures each step at its first use, and replays it afterwards.

    If a capture fails, except for lack of memory, every step runs without a graph, and `reason` says why. The graphs
    share a CUDA stream and a memory pool, which each step overwrites, so a step's results go to tensors from outside.
    """

    def __init__(self, device: str) -> None:
        self.reason = "" if torch.device(device).type == "cuda" else "there is no CUDA device"
        self.seconds = 0.0  # time of capturing
        self.keys: list[Hashable] = []  # in the order of first use, captured or not
        self._captured: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._stream: torch.cuda.Stream | None = None

    def prepare(self, key: Hashable, step: Callable[[], None], state: Tensor) -> None:
        """Capture `step`, unless `key` was, and restore the counters in `state`. Raises OutOfMemoryError."""
        if key in self.keys:
            return
        self.keys.append(key)
        self.reason = self.reason or IN_PROCESS.broken
        if not self.reason:
            start = time.perf_counter()
            try:
                self._captured[key] = self._capture(step, state)
            except Exception as error:  # kernels and the driver raise errors of many classes
                self._captured.clear()  # the failed capture may have freed the cuBLAS workspace of the other graphs
                if is_out_of_memory(error):
                    IN_PROCESS.spoiled = bool(IN_PROCESS.broken)
                    raise torch.OutOfMemoryError(str(error)) from error
                self.reason = f"the graph could not be captured: {type(error).__name__}: {error}"
            self.seconds += time.perf_counter() - start

    def run(self, key: Hashable, step: Callable[[], None], state: Tensor) -> None:
        """Run `step`, as a graph if possible. `step` must depend only on `key` and on tensors that stay in place."""
        self.prepare(key, step, state)
        if key in self._captured:
            self._captured[key].replay()
        else:
            step()

    def _capture(self, step: Callable[[], None], state: Tensor) -> torch.cuda.CUDAGraph:
        """Run the step to warm up, since libraries initialise in their first calls; then capture it."""
        if self._stream is None:
            self._stream = IN_PROCESS.lend()
            weakref.finalize(self, IN_PROCESS.give_back, self._stream, self._captured)
        before, current, stream = state.clone(), torch.cuda.current_stream(), self._stream
        capturing = False
        stream.wait_stream(current)
        try:
            with torch.cuda.stream(stream):
                for _ in range(WARM_UPS):
                    step()
                    state.copy_(before)
            current.wait_stream(stream)
            pool = next((graph.pool() for graph in self._captured.values()), None)
            graph = torch.cuda.CUDAGraph()
            capturing = True
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                step()
            capturing = False
        finally:
            if capturing and FAILURES_STAY:
                IN_PROCESS.broken = "an earlier capture failed, and torch before 2.12 can capture no other after that"
            torch.cuda.set_stream(current)  # a failed capture may leave its stream as the current one
            state.copy_(before)
        return graph


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether memory ran out, perhaps as the cause of an error that ended the capture."""
    return error is not None and (isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(error.__context__))
