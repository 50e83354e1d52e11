"""The page, served once for all files that run in this process."""

import httpx
import pytest

from specdec.ui.build import build
from specdec.ui.session import session
from specdec.ui.theme import launch_settings
from tests import toyrun


@pytest.fixture(autouse=True)
def nothing_is_prepared(monkeypatch):
    monkeypatch.setattr(session, "_warming_up", True)


@pytest.fixture
def toy_engine(monkeypatch):
    """Puts a toy in place of the engine's process, by default one that tells the toy run."""

    def put(race=None):
        monkeypatch.setattr(session, "process", toyrun.Engine(race))
        return session.process

    return put


@pytest.fixture(scope="session")
def address():
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    yield url
    demo.close()


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client
