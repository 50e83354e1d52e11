"""Twenty people who run their own prompts at once: served in the order in which they came, none mixed, none lost.

Each is a client of its own, with a prompt that no other has. What comes back is audited, too.
"""

from __future__ import annotations

import time
from typing import Any, TYPE_CHECKING

from tqdm import tqdm

from specdec.figures.stats import middle
from specdec.traces import audit
from specdec.traces.file import Trace

from .serving import served

if TYPE_CHECKING:
    from gradio_client.client import Job

VISITORS = 20
LOOK = 0.05


def report(tokens: int) -> dict[str, Any]:
    from gradio_client import Client

    prompts = [f"Visitor number {i} opened the door and" for i in range(VISITORS)]
    with served() as url:
        list(Client(url, verbose=False).submit("The models load", max_tokens=2, api_name="/run"))
        clients = [Client(url, verbose=False) for _ in tqdm(prompts, desc="visitors", unit="client")]
        came: list[float] = []
        jobs: list[Job] = []
        for client, prompt in zip(clients, prompts, strict=True):
            came.append(time.monotonic())
            jobs.append(client.submit(prompt, max_tokens=tokens, temperature=0.8, api_name="/run"))
            while not (jobs[-1].outputs() or jobs[-1].done()):  # it is told something: it stands in the line
                time.sleep(LOOK)
        begun = first_words(jobs)
        logs = ["".join(job) for job in jobs]
        over = time.monotonic()
    runs = [Trace.loads(log) if log.startswith('{"event":"header"') else None for log in logs]
    whole = [run for run in runs if run and audit.holds(audit.audit(run.header.lanes, run.events))]
    return {
        "visitors": VISITORS,
        "tokens": tokens,
        "lost": VISITORS - len(whole),
        "mixed": sum(run is not None and run.header.prompt != own for run, own in zip(runs, prompts, strict=True)),
        "in_order": begun == sorted(begun),
        "seconds_waited": middle([start - arrival for start, arrival in zip(begun, came, strict=True)]),
        "seconds_in_all": round(over - came[0], 2),
    }


def first_words(jobs: list[Job]) -> list[float]:
    """When each was told the first line of its run."""
    begun: dict[int, float] = {}
    while len(begun) < len(jobs):
        for i, job in enumerate(jobs):
            if i not in begun and (job.done() or any(job.outputs())):
                begun[i] = time.monotonic()
        time.sleep(LOOK)
    return [begun[i] for i in range(len(jobs))]
