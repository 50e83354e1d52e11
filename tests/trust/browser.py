"""The engine of the page of files: its loop on toys, and its runs beside ours."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import nodejs
import test_browser_engine

from .figures import all_of, at_least, Figure, skipped


def count(long: bool) -> list[Figure]:
    if nodejs.find_node() is None:
        return [skipped("runs with our tokens, verdicts and draws", "all", "node is not installed")]
    told = nodejs.check("engine.test.js")
    planted = re.findall(r"^(not ok|ok) \d+ - planted: ", told, re.M)
    runs = 200 if long else 15
    with tempfile.TemporaryDirectory() as folder:
        counted = test_browser_engine.hold(Path(folder), range(runs))
    return [
        at_least("joint distributions enumerated", int(re.findall(r"# (\d+) distributions", told)[0]), 192),
        all_of("planted mistakes caught", planted.count("ok"), len(planted), 25),
        all_of("runs with our tokens, verdicts and draws", counted["runs"], runs, runs),
        at_least("draws compared in them", counted["trials"], 200),
    ]
