"""A figure of the report: what was counted, what it should be, and whether it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table. `skipped` is why nothing was counted here; such a line breaks nothing."""

    name: str
    figure: str
    target: str
    holds: bool
    skipped: str = ""


def at_least(name: str, found: float, least: float) -> Figure:
    return Figure(name, f"{found:,}", f"≥ {least:,}", found >= least)


def at_most(name: str, found: float, most: float, unit: str = "") -> Figure:
    """nan is more than anything."""
    return Figure(name, f"{found:.3g}{unit}", f"≤ {most:g}{unit}", found <= most)


def none(name: str, found: int) -> Figure:
    return Figure(name, f"{found:,}", "0", found == 0)


def all_of(name: str, good: int, tried: int, least: int) -> Figure:
    """Every one, of enough of them."""
    return Figure(name, f"{good:,} of {tried:,}", f"all, of ≥ {least:,}", good == tried >= least)


def skipped(name: str, target: str, why: str) -> Figure:
    return Figure(name, "–", target, True, why)
