"""The tab Theory: what the formulas say, and how far the run of the tab Race bears them out."""

from __future__ import annotations

from ..components.theory import theory


def build() -> None:
    theory()
