"""How the models of these tests are computed: by torch's operations, or by native.cpp."""

import pytest

from specdec.models.native import Blocked


@pytest.fixture
def in_torch(monkeypatch) -> None:
    """Models that are made meanwhile are as on a machine without g++."""
    monkeypatch.setattr(Blocked, "pays", lambda *matrix: False)
