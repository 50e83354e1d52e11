"""Find outdated statements: `assets/sources.json` lists facts about others with their sources and the day of the check.

`python -m tools.sources 30` lists the entries that were not checked for more than 30 days, oldest first.
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
    """Read the entries by kind.

    `systems`: how to switch speculation on. `defaults`: how an engine samples by default. `beside`: measurements of
    others. `answers`: statements in the Guide about others. `certified`: statements about engines in
    docs/certify-a-server.md and docs/reports.
    """
    return read_json(ASSETS / "sources.json")  # type: ignore[no-any-return]


def entries() -> Iterator[tuple[str, date, list[str]]]:
    """Yield name, day of the last check and links of every entry, and of the hardware's figures."""
    for kind, listed in sources().items():
        for entry in listed:
            yield f"{kind}: {entry['name']}", date.fromisoformat(entry["checked"]), entry["links"]
    hardware = read_json(ASSETS / "hardware.json")
    links = [machine["link"] for machine in hardware["machines"] if "link" in machine]
    yield "hardware", date.fromisoformat(hardware["read"]), links


def stale(days: int = DAYS, today: date | None = None) -> list[str]:
    """Return a line for each entry whose last check was more than `days` days before `today`."""
    now = today or date.today()
    old = [(checked, name, links) for name, checked, links in entries() if (now - checked).days > days]
    return [f"{checked}  {name}  {' '.join(links)}" for checked, name, links in sorted(old)]


if __name__ == "__main__":
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    print("\n".join(stale(limit)) or f"Everything was checked within {limit} days.")
