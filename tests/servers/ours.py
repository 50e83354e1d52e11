"""Our own engine as a server that speaks vLLM's dialect: with any drafter, and with any known mistake planted in it."""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Committed, Drafted
from specdec.host import HostExecutor
from specdec.loop import generate
from specdec.proof.black_box import CachedRows
from specdec.proof.certify import Crowd, ModelPair
from specdec.proof.mistakes import Mistake
from specdec.proof.toys import run_loop
from specdec.sampling import probabilities, RandomSampler
from specdec.task import Task
from specdec.types import SamplingParams
from tests.servers.stub import Asked, NO_TEMPLATE, Reply, Stub

MakeTask = Callable[[Sequence[int], SamplingParams], Task]
Encode = Callable[[str], Sequence[int]]
POSITIONS = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{}"}} 0\n'


class Ours:
    """`task` makes a run. `tells`: whether it reports log-probabilities, which are those of the distribution in use."""

    def __init__(self, task: MakeTask, encode: Encode = lambda _: (0, 1), tells: bool = True) -> None:
        self.task, self.encode, self.tells = task, encode, tells
        made = task([0], SamplingParams())
        self.k, self.context = made.k, made.target.context
        self.turn = threading.Lock()  # the models serve one request at a time

    def __call__(self, asked: Asked) -> Reply:
        with self.turn:
            return self.answer(asked.path, asked.body or {})

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        if path == "/metrics":
            positions = "".join(POSITIONS.format(i) for i in range(self.k))
            return Reply([f"vllm:spec_decode_num_drafts_total 0\n{positions}".encode()])
        if path == "/version":
            return Reply.of({"version": "ours"})
        if path == "/v1/models":
            return Reply.of({"data": [{"id": "ours", "owned_by": "vllm", "max_model_len": self.context}]})
        if path == "/tokenize" and "messages" in body:  # as a server of a model without a chat template
            return Reply.of({"error": {"message": NO_TEMPLATE}}, 400)
        if path == "/tokenize":
            return Reply.of({"tokens": list(self.encode(body["prompt"]))})
        sampling = (body[name] for name in ("temperature", "top_k", "top_p", "max_tokens", "seed"))
        params, prompt = SamplingParams(*sampling, ignore_end=True), body["prompt"]
        if body.get("stream"):
            return Reply.stream([*self.stream(prompt, params), "[DONE]"])
        if "logprobs" in body:
            choices = [self.likeliest(prompt, params, body["logprobs"])]
        else:
            choices = [{"token_ids": list(text)} for text in self.sample(prompt, params, body["n"])]
        return Reply.of({"model": "ours", "choices": choices})

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

    def likeliest(self, prompt: Sequence[int], params: SamplingParams, top: int) -> Any:
        if not self.tells:
            return {"logprobs": None}
        target = self.task(prompt, params).target
        with torch.inference_mode():
            logits = target.forward(prompt, target.new_cache(len(prompt)))[-1:]
        distribution = probabilities(logits, params)[0].double().log()  # of the next token  # [V]
        best = distribution.topk(min(top, len(distribution)))
        told = {f"token_id:{i}": p for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)}
        return {"logprobs": {"top_logprobs": [{name: p for name, p in told.items() if math.isfinite(p)}]}}

    def stream(self, prompt: Sequence[int], params: SamplingParams) -> Iterator[Any]:
        """One chunk a cycle, and what each step drafted and accepted at the end."""
        drafted = 0
        steps: list[tuple[int, int]] = []
        task = self.task(prompt, params)
        for event in generate(task, HostExecutor(task, RandomSampler(params.seed))):
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
                yield {"model": "ours", "choices": [choice]}
        told = {"per_step_drafted": [n for n, _ in steps], "per_step_accepted": [n for _, n in steps]}
        yield {"model": "ours", "choices": [], "metrics": {"speculative_decoding": told}}


@contextlib.contextmanager
def serving(task: MakeTask, kind: type[Ours] = Ours, **options: Any) -> Iterator[str]:
    with Stub(kind(task, **options)) as stub:
        yield stub.address


def of_pair(pair: ModelPair, mistake: Mistake | None = None, k: int = 2) -> MakeTask:
    """A toy pair with a planted mistake; drafts of as many tokens as that needs. k = 0 is the plain server."""
    k = max(k, mistake.least_k) if mistake else k
    target, draft = (CachedRows(model, 64) for model in pair.models)

    def task(prompt: Sequence[int], params: SamplingParams) -> Task:
        made = Task(target, tuple(prompt), params, DraftModelDrafter(draft), k, piece=pair.piece, details=False)
        return mistake.apply(made, draft) if mistake else made

    return task
