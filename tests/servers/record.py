"""Records what a real server answers, for `stub.replay`: python -m tests.servers.record ADDRESS NAME "its flags"

The requests are those that the tests make: the facts, and a story, code and a question, greedily and at T = 0.8.
"""

import contextlib
import json
import re
import sys
from collections.abc import Generator
from datetime import date
from typing import Any

from specdec.servers import connect as door
from specdec.servers import lane
from specdec.servers.answers import ServerError
from specdec.servers.stream import Client
from specdec.types import SamplingParams
from tests.servers.stub import lines, PAYLOADS

PROMPTS = {
    "story": "The old lighthouse keeper",
    "code": "def mean(values):\n",
    "facts": "Question: What is the capital of France?\nAnswer:",
}
TOP, TOKENS = 2, 24
SETTINGS = {
    "greedy": SamplingParams(max_tokens=TOKENS),
    "sampled": SamplingParams(temperature=0.8, max_tokens=TOKENS, seed=3),
}
SHORT = SamplingParams(temperature=1.0, max_tokens=3, seed=5)


class Recorder(Client):
    calls: list[dict[str, Any]] = []  # noqa: RUF012

    def _answer(self, path: str, body: dict[str, Any] | None) -> Generator[tuple[bytes, float], None, None]:
        blocks, status = list[bytes](), 200
        try:
            for block, at in super()._answer(path, body):
                blocks.append(block)
                yield block, at
        except ServerError as error:
            status = error.status
            blocks.append(json.dumps({"error": {"message": error.message}}).encode())
            raise
        finally:
            told = [*lines(blocks)]
            if path == "/metrics":  # of hundreds of lines, those that are read
                told = ["".join(f"{x}\n" for x in told[0].split("\n") if x.startswith("vllm:spec"))]
            told = [re.sub(r'"(root|model_path)":"[^"]*"', r'"\1":"target"', block) for block in told]  # no folder here
            if path == "/props":
                props = json.loads(told[0])
                read = ("default_generation_settings", "build_info", "chat_template")
                told = [json.dumps({name: props[name] for name in read})]
            kind = "text/event-stream" if told and told[0].startswith("data:") else "application/json"
            call = {"method": "GET" if body is None else "POST", "path": path, "body": body, "status": status}
            self.calls.append({**call, "type": kind, "blocks": told})


def record(address: str, name: str, flags: str) -> None:
    door.Client = Recorder
    server = door.connect(address)
    for prompt in PROMPTS.values():
        for params in SETTINGS.values():
            lane.race(server, None, prompt, params, TOP)
    ids = server.tokenize(PROMPTS["story"])
    server.sample(ids, SHORT, 5)
    server.distribution(ids, SHORT, 5)
    for params in SETTINGS.values():
        with contextlib.suppress(ServerError):
            server.distribution(ids, params, 5)
    told = {"server": f"{server.facts.kind} {server.facts.version}", "flags": flags, "date": str(date.today())}
    content = json.dumps({**told, "calls": Recorder.calls}, ensure_ascii=False, indent=1)
    (PAYLOADS / f"{name}.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(*sys.argv[1:])
