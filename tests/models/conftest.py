"""How the models of these tests are computed: by torch's operations, or by native.cpp."""

from __future__ import annotations

import pytest

from specdec.models import native


@pytest.fixture
def in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without g++."""
    monkeypatch.setattr(native, "library", lambda: None)
