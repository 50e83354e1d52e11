"""Our own engine as a server that speaks vLLM's dialect: with any drafter, and with any known mistake planted in it."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from torch import Tensor

from specdec.events import Committed, Drafted
from specdec.loop import generate, Task
from specdec.proof.certify import Crowd
from specdec.proof.mistakes import Mistake
from specdec.proof.pair import CachedRows, drafter_of, ModelPair
from specdec.proof.toys import run_loop
from specdec.sampling import probabilities, RandomSampler
from specdec.servers.vllm import NO_TEMPLATE
from specdec.types import SamplingParams

MakeTask = Callable[[Sequence[int], SamplingParams], Task]


class Ours(ThreadingHTTPServer):
    """`task` makes a run. `tells`: whether it reports log-probabilities, which are those of the distribution in use."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, task: MakeTask, encode: Callable[[str], Sequence[int]], tells: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.task, self.encode, self.tells = task, encode, tells
        made = task([0], SamplingParams())
        self.k, self.context = made.k, made.target.context
        self.turn = threading.Lock()  # the models serve one request at a time

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def sample(self, prompt: Sequence[int], params: SamplingParams, n: int) -> list[tuple[int, ...]]:
        run = run_loop(lambda: self.task(prompt, params))
        dice = torch.Generator().manual_seed(params.seed)
        groups, texts = [((), n)], []
        while groups:
            script, count = groups.pop()
            crowd = Crowd(dice, count, script)
            text = run(crowd)
            texts += [text] * crowd.count
            groups += crowd.others
        return texts

    def distribution(self, prompt: Sequence[int], params: SamplingParams) -> Tensor:
        """Log-probabilities of the next token.  # [V]"""
        target = self.task(prompt, params).target
        with torch.inference_mode():
            logits = target.forward(prompt, target.new_cache(len(prompt)))[-1:]
        return probabilities(logits, params)[0].double().log()


class Handler(BaseHTTPRequestHandler):
    server: Ours

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/metrics":
            kept = "".join(f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} 0\n' for i in
                           range(self.server.k))  # fmt: skip
            return self.send(f"vllm:spec_decode_num_drafts_total 0\n{kept}".encode())
        model = {"id": "ours", "owned_by": "vllm", "max_model_len": self.server.context}
        self.answer({"/version": {"version": "ours"}, "/v1/models": {"data": [model]}}[self.path])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.turn:
            if self.path == "/tokenize" and "messages" in body:  # as a server of a model without a chat template
                return self.send(json.dumps({"error": {"message": NO_TEMPLATE}}).encode(), 400)
            if self.path == "/tokenize":
                return self.answer({"tokens": list(self.server.encode(body["prompt"]))})
            params = SamplingParams(
                body["temperature"], body["top_k"], body["top_p"], body["max_tokens"], body["seed"], ignore_end=True
            )
            if body.get("stream"):
                self.stream(body["prompt"], params)
            elif "logprobs" in body:
                self.answer({"model": "ours", "choices": [self.likeliest(body["prompt"], params, body["logprobs"])]})
            else:
                texts = self.server.sample(body["prompt"], params, body["n"])
                self.answer({"model": "ours", "choices": [{"token_ids": list(text)} for text in texts]})

    def likeliest(self, prompt: Sequence[int], params: SamplingParams, top: int) -> Any:
        if not self.server.tells:
            return {"logprobs": None}
        distribution = self.server.distribution(prompt, params)
        best = distribution.topk(min(top, len(distribution)))
        told = {f"token_id:{i}": p for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)}
        return {"logprobs": {"top_logprobs": [{name: p for name, p in told.items() if math.isfinite(p)}]}}

    def stream(self, prompt: Sequence[int], params: SamplingParams) -> None:
        """One chunk a cycle, and what each step drafted and accepted at the end."""
        self.head("text/event-stream")
        drafted = 0
        steps: list[tuple[int, int]] = []
        for event in generate(self.server.task(prompt, params), RandomSampler(params.seed)):
            if isinstance(event, Drafted):
                drafted = len(event.tokens)
            elif isinstance(event, Committed):
                if drafted:
                    steps.append((drafted, min(event.accepted, drafted)))
                drafted = 0
                choice = {
                    "text": "".join(event.pieces),
                    "token_ids": list(event.tokens),
                    "logprobs": {"tokens": list(event.pieces), "token_logprobs": [None] * len(event.pieces)},
                    "finish_reason": "length" if event.total == params.max_tokens else None,
                }
                self.event({"model": "ours", "choices": [choice]})
        told = {"per_step_drafted": [n for n, _ in steps], "per_step_accepted": [n for _, n in steps]}
        self.event({"model": "ours", "choices": [], "metrics": {"speculative_decoding": told}})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data: Any) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())

    def answer(self, data: Any) -> None:
        self.send(json.dumps(data).encode())

    def head(self, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def send(self, data: bytes, status: int = 200) -> None:
        self.head("application/json", status)
        self.wfile.write(data)


@contextlib.contextmanager
def serving(
    task: MakeTask,
    encode: Callable[[str], Sequence[int]] = lambda _: (0, 1),
    tells: bool = True,
    kind: type[Ours] = Ours,
) -> Iterator[str]:
    """The address of such a server."""
    server = kind(task, encode, tells)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def of_pair(pair: ModelPair, mistake: Mistake | None = None, k: int = 2) -> MakeTask:
    """A toy pair with a planted mistake; drafts of as many tokens as that needs. k = 0 is the plain server."""
    k = max(k, mistake.least_k) if mistake else k
    target, draft = (CachedRows(model, 64) for model in pair.models)

    def task(prompt: Sequence[int], params: SamplingParams) -> Task:
        made = Task(target, tuple(prompt), params, drafter_of(mistake, draft), k, piece=pair.piece, details=False)
        return mistake.apply(made, draft) if mistake else made

    return task
