"""What it costs a run to be watched: the app streams it to a client, and beside it the same run goes to nobody.

Both run in the page's engine process with all details, so the difference is what serving takes. The client reads and
draws nothing: a browser on the same processor takes its own share besides.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, TYPE_CHECKING

from tqdm import tqdm

from specdec import children
from specdec.bench.prompts import PROMPTS
from specdec.events import Event, from_dict
from specdec.figures.stats import Comparison, interval, middle
from specdec.lanes.worker import Worker
from specdec.types import SamplingParams

from .options import Options

if TYPE_CHECKING:
    from gradio_client import Client

SETTING: dict[str, Any] = {"drafter": "draft_model", "k": 3, "temperature": 0.8}


def report(options: Options) -> dict[str, Any]:
    """Tokens per second of both lanes, watched over alone; medians over pairs, the two taking turns at going first."""
    from gradio_client import Client

    prompt = PROMPTS["story"][0]
    params = SamplingParams(SETTING["temperature"], max_tokens=options.tokens)
    with contextlib.closing(Worker()) as worker, served() as url:
        client, family = Client(url, verbose=False), worker.load("embedded", "cpu")
        ways: dict[str, Callable[[], list[Event]]] = {
            "watched": lambda: watched(client, prompt, options.tokens),
            "alone": lambda: list(worker.race(family, prompt, SETTING["drafter"], SETTING["k"], params)),
        }
        ratios: dict[str, list[float]] = {"speculative": [], "plain": [], "speedup": []}
        for repeat in tqdm(range(-1, options.repeats), desc="watched and alone", unit="pair"):
            order = list(ways) if repeat % 2 else list(ways)[::-1]
            runs = {name: Comparison.of(ways[name]()) for name in order}
            if repeat >= 0:  # the first pair warms up
                for name, ratio in shares(runs["watched"], runs["alone"]).items():
                    ratios[name].append(ratio)
    found = {name: {"watched_over_alone": middle(r), "interval": interval(r)} for name, r in ratios.items()}
    for name, figures in found.items():
        print(f"{name}: watched over alone {figures['watched_over_alone']}, {figures['interval']}")
    return {**SETTING, "tokens": options.tokens, "lanes": found, "models": family.describe()}


def shares(watched: Comparison, alone: Comparison) -> dict[str, float]:
    def rate(of: Comparison, lane: str) -> float:
        value = of.measured_speedup if lane == "speedup" else getattr(of, lane).tokens_per_second
        if not value:
            raise RuntimeError("a run ended without a rate")
        return float(value)

    return {lane: rate(watched, lane) / rate(alone, lane) for lane in ("speculative", "plain", "speedup")}


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The app at its address, in a process of its own."""
    app = children.start("specdec", "app", environment={"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True)
    assert app.stdout is not None
    try:
        yield next(word for line in app.stdout for word in line.split() if word.startswith("http://"))
    except StopIteration:
        raise RuntimeError("the app did not start") from None
    finally:
        app.terminate()
        app.wait()


def watched(client: Client, prompt: str, tokens: int) -> list[Event]:
    """A run as it arrives by the app's public endpoint."""
    lines = "".join(client.submit(prompt, max_tokens=tokens, **SETTING, api_name="/run")).splitlines()
    told = [json.loads(line) for line in lines]
    if "event" not in told[0]:
        raise RuntimeError(f"the app refused the run: {told[0]}")
    return [from_dict(one) for one in told[1:]]
