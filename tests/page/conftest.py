"""The page, served once for all files that run in this process."""

from __future__ import annotations

import pytest

from specdec.lanes.worker import Worker
from specdec.ui import session
from specdec.ui.build import build
from specdec.ui.theme import launch_settings


@pytest.fixture(autouse=True)
def chosen_without_measuring(monkeypatch):
    """Engines that stand in for ours have no costs."""

    def choose(family, drafter, k, temperature):
        return "draft_model" if drafter == "default" else drafter, k or 4, 1.5

    monkeypatch.setattr(session, "_choose", choose)


@pytest.fixture(scope="session")
def address():
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    yield url
    demo.close()


@pytest.fixture(autouse=True)
def costs_are_measured(monkeypatch):
    """What a run's visitor leaves open is chosen at once: measuring would load the models."""
    monkeypatch.setattr(Worker, "choose", lambda *_: iter([("draft_model", 3, 1.5)]))
