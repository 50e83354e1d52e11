"""The page, served once for all files that run in this process."""

from __future__ import annotations

import pytest
from specdec.lanes.worker import Worker

from specdec.ui import session
from specdec.ui.build import build
from specdec.ui.theme import launch_settings


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch):
    monkeypatch.setattr(session, "_loaded", set())


@pytest.fixture(scope="session")
def address():
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    yield url
    demo.close()


@pytest.fixture(autouse=True)
def costs_are_measured(monkeypatch):
    """Choose the default drafter and K without measuring, which would load the models."""
    call = Worker.call

    def chosen(self, name, *arguments, **options):
        if name == "prepare":
            family, device, drafter, k, temperature = arguments
            arguments = family, device, "draft_model" if drafter == "default" else drafter, k or 3, temperature
        return call(self, name, *arguments, **options)

    monkeypatch.setattr(Worker, "call", chosen)
