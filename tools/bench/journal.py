"""The rows of a long suite, each in a file as soon as it is measured: a second start goes on where the first ended."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Journal:
    """A file of lines: what the rows are about, then each row with its unit, a part that is measured whole or again.

    Without a `path` nothing is kept. After `minutes` no further unit is begun. ValueError for a file about something
    else: rows of two machines or settings do not mix.
    """

    def __init__(self, path: Path | None, about: Row, minutes: float | None = None) -> None:
        self._path = path
        self._end = time.monotonic() + 60.0 * minutes if minutes is not None else math.inf
        self._rows: dict[str, list[Row]] = {}
        self._whole: set[str] = set()
        self.left_out: list[str] = []  # units for which no time was left, or that broke off: for the next start
        first, *rest = read(path) or [{}]
        if first and first.get("about") != about:
            raise ValueError(f"{path} holds rows of another machine, version or setting; move it, or name another file")
        for line in rest:
            self._take(line)
        if not first:
            self._write({"about": about})

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def measured(
        self, unit: str, rows: Iterable[Row], holds: Callable[[list[Row]], bool] = lambda rows: True
    ) -> list[Row]:
        """`rows`, which are measured as they are asked for; those of an earlier start; or none, if the time is over.

        Where they do not hold, the next start measures them again.
        """
        if unit in self._whole:
            return self._rows[unit]
        if not self.seconds_left:
            self.left_out.append(unit)
            return []
        self._tell({"unit": unit, "begun": True})
        for row in rows:
            self._tell({"unit": unit, "row": row})
        if holds(self._rows[unit]):
            self._tell({"unit": unit, "whole": True})
        else:
            self.left_out.append(unit)
        return self._rows[unit]

    def close(self) -> None:
        """The file goes once all is measured: the report has its rows."""
        if self._path is not None and not self.left_out:
            self._path.unlink(missing_ok=True)

    def _tell(self, line: Row) -> None:
        self._take(line)
        self._write(line)

    def _take(self, line: Row) -> None:
        unit = line["unit"]
        if "begun" in line:
            self._rows[unit] = []
        elif "row" in line:
            self._rows[unit].append(line["row"])
        else:
            self._whole.add(unit)

    def _write(self, line: Row) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read(path: Path | None) -> list[Row]:
    """The lines of a journal; one that was cut off at the end does not count, and is taken away."""
    if path is None or not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise ValueError(f"{path} is no journal of the bench: {error}") from error
