"""What can go stale, in one file: `assets/sources.json`, each entry with its sources and the day it was checked.

`python -m tools.sources 30` lists the entries not checked for more than 30 days, oldest first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date
from typing import Any

from specdec.paths import ASSETS
from specdec.ui.menu import read_json

DAYS = 30


def sources() -> dict[str, list[dict[str, Any]]]:
    """By kind: `systems`, how each is switched on; `defaults`, what each does while sampling if nothing is set;
    `beside`, what was measured elsewhere; `answers`, what the Guide's answers say of others; `certified`, what
    docs/certify-a-server.md and docs/reports say of engines."""
    return read_json(ASSETS / "sources.json")  # type: ignore[no-any-return]


def entries() -> Iterator[tuple[str, date, list[str]]]:
    """Name, day of the last check and links of all that can go stale, the hardware's figures included."""
    for kind, listed in sources().items():
        for one in listed:
            yield f"{kind}: {one['name']}", date.fromisoformat(one["checked"]), one["links"]
    hardware = read_json(ASSETS / "hardware.json")
    links = [one["link"] for one in hardware["machines"] if "link" in one]
    yield "hardware", date.fromisoformat(hardware["read"]), links


def stale(days: int = DAYS, today: date | None = None) -> list[str]:
    """A line for each entry whose last check was more than `days` days before `today`."""
    now = today or date.today()
    old = [(checked, name, links) for name, checked, links in entries() if (now - checked).days > days]
    return [f"{checked}  {name}  {' '.join(links)}" for checked, name, links in sorted(old)]


if __name__ == "__main__":
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    print("\n".join(stale(limit)) or f"Everything was checked within {limit} days.")
