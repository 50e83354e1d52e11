"""Any answer with one value put wrong: a run that ends, or ServerError, and nothing else."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from specdec.events import Finished
from specdec.servers import connect as door
from specdec.servers import lane
from specdec.servers.answers import ServerError
from specdec.servers.stream import parsed
from specdec.traces.file import line
from tests.servers.record import PROMPTS, SETTINGS, SHORT, TOP
from tests.servers.stub import recording

WRONG: tuple[Any, ...] = (None, -1, 2**70, 1e300, "x", "\ud800", "", True, [], {}, [[]], {"a": 1}, [None], 0.5)
CHANCE = 0.02  # that a value is put wrong


class Wrong:
    """A client that replays a recording, with values put wrong by chance."""

    def __init__(self, calls: list[dict[str, Any]], chance: random.Random) -> None:
        self.calls, self.chance = calls, chance

    def told(self, path: str, body: Any) -> list[str]:
        found = [call["blocks"] for call in self.calls if (call["path"], call["body"]) == (path, body)]
        if not found:
            raise ServerError("nothing was recorded")
        return found[0]

    def ask(self, path: str, body: Any = None) -> Any:
        return self.spoiled(parsed("".join(self.told(path, body)).encode()))

    def read_bytes(self, path: str) -> bytes:
        return "".join(self.told(path, None)).encode()

    def events(self, path: str, body: Any) -> Iterator[tuple[Any, float]]:
        for number, block in enumerate(self.told(path, body)):
            if "[DONE]" not in block:
                yield self.spoiled(json.loads(block.removeprefix("data: "))), 0.1 * number

    def spoiled(self, value: Any) -> Any:
        if self.chance.random() < CHANCE:
            return copy.deepcopy(self.chance.choice(WRONG))
        if isinstance(value, dict):
            return {name: self.spoiled(item) for name, item in value.items()}
        return [self.spoiled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["vllm-draft_model-mended", "llama-plain", "llama-draft_model"])
def test_one_wrong_value_is_no_more_than_a_sentence(name: str, monkeypatch) -> None:
    calls, ends = recording(name)["calls"], {"run": 0, "refused": 0, "failed": 0}
    for seed in range(150):
        chance = random.Random(seed)
        client = Wrong(calls, chance)
        monkeypatch.setattr(door, "Client", lambda *_, client=client: client)
        try:
            server = door.connect("http://127.0.0.1:1")
            client_of_run = SETTINGS[chance.choice([*SETTINGS])]
            events = lane.race(server, None, PROMPTS["facts"], client_of_run, TOP)
            assert isinstance(events[-1], Finished)
            json.dumps([json.loads(line(event)) for event in events], allow_nan=False)
            ends["failed" if events[-1].reason == "failed" else "run"] += 1
            server.distribution(server.tokenize(PROMPTS["story"]), SHORT, 5)
            server.sample(server.tokenize(PROMPTS["story"]), SHORT, 5)
        except ServerError:
            ends["refused"] += 1
    assert ends["failed"] + ends["refused"] > 30  # it does spoil something
