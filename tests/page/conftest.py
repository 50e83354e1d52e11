"""The page, served once for all files that run in this process."""

from __future__ import annotations

import pytest

from specdec.lanes.worker import Worker
from specdec.ui.build import build
from specdec.ui.theme import launch_settings


@pytest.fixture(autouse=True)
def choose_without_measuring(monkeypatch):
    """What a run leaves open is chosen at once: measuring would load the models."""

    def choose(worker, family, drafter, k, temperature):
        yield "draft_model" if drafter == "default" else drafter, k or 4, 1.5

    monkeypatch.setattr(Worker, "choose", choose)


@pytest.fixture(scope="session")
def address():
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    yield url
    demo.close()
