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

    Without a `path` nothing is written. After `minutes` no further unit is begun. ValueError for a file about something
    else: rows of two machines or settings do not mix.
    """

    def __init__(self, path: Path | None, about: Row, minutes: float | None = None) -> None:
        self._path = path
        self._end = math.inf if minutes is None else time.monotonic() + 60.0 * minutes
        self._rows: dict[str, list[Row]] = {}
        self._whole: set[str] = set()
        self.left_out: list[str] = []  # units for which no time was left, or that broke off: for the next start
        text = path.read_text(encoding="utf-8") if path and path.exists() else ""
        try:
            head, *lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()] or [about]
        except ValueError as error:
            raise ValueError(f"{path} is no journal of the bench: {error}") from error
        if head != about:
            raise ValueError(f"{path} holds rows of another machine, version or setting; move it, or name another file")
        if path:
            path.write_text("", encoding="utf-8")
        self._write(about)
        for line in lines:
            self._add(**line)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def measured(
        self, unit: str, rows: Iterable[Row], holds: Callable[[list[Row]], bool] = lambda rows: True
    ) -> list[Row]:
        """Return `rows`, measured as they are iterated; or those of an earlier start; or none, if the time is over.

        Where they do not hold, the next start measures them again.
        """
        if unit in self._whole:
            return self._rows[unit]
        self._rows[unit] = []
        if self.seconds_left:
            self._add(unit, "begun")
            for row in rows:
                self._add(unit, "row", row)
            if holds(self._rows[unit]):
                self._add(unit, "whole")
        if unit not in self._whole:
            self.left_out.append(unit)
        return self._rows[unit]

    def close(self) -> None:
        """Remove the file once all is measured: the report has its rows."""
        if self._path and not self.left_out:
            self._path.unlink(missing_ok=True)

    def _add(self, unit: str, event: str, row: Row | None = None) -> None:
        self._write({"unit": unit, "event": event, "row": row})
        if event == "begun":
            self._rows[unit] = []
        elif event == "whole":
            self._whole.add(unit)
        elif row is not None:
            self._rows[unit].append(row)

    def _write(self, line: Row) -> None:
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
