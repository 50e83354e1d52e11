"""Certificates of real servers as Markdown: a line a row, and who has one for which way to draft."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

HEAD = (
    "engine", "version", "method", "T", "draws × prompts", "verdict", "known mistakes that would have shown",
    "seconds", "date",
)  # fmt: skip
MODELS = {"smollm2": "SmolLM2-135M"}  # beside the embedded pair, which is not named
SAME = {"ngram": "prompt_lookup"}  # n-grams of the text, by two names


def table(report: Any) -> str:
    """What was asked, the verdict, and of the known mistakes how many would have shown."""
    made = [line(HEAD), line("---" for _ in HEAD)]
    for row in report["rows"]:
        power = f"{row['shown']} of {row['known']}" if row["shown"] is not None else "–"
        draws = f"{row['draws']:,} × {len(row['contexts'])}" if row["draws"] else f"greedy × {len(row['contexts'])}"
        verdict = f"**{row['verdict']}**" if row["status"] else row["verdict"]
        verdict += ": greedy text alone" if row["status"] and not wrong(row) else ""
        parts = f"`{row['method']}`", row["note"], *filters(row), model(row)
        method = ", ".join(part for part in parts if part)
        named = [row["engine"], row["version"], method, f"{row['temperature']:g}"]
        made.append(line([*named, draws, verdict, power, str(row["seconds"]), row["date"]]))
    return "\n".join(made)


def matrix(report: Any) -> str:
    """A line an engine, a column a way to draft: the temperatures of its certificates; bold where wrong there."""
    found: dict[tuple[str, str], dict[tuple[float, str], bool]] = {}
    for row in report["rows"]:
        name = ", ".join(part for part in (row["engine"], row["note"], model(row)) if part)
        here = found.setdefault((name, way(row)), {})
        asked = row["temperature"], " ".join((f"{row['temperature']:g}", *filters(row)))
        here[asked] = here.get(asked, False) or wrong(row)
    ways, names = (list(dict.fromkeys(key[i] for key in found)) for i in (1, 0))
    made = [line(["engine", *(f"`{one}`" for one in ways)]), line("---" for _ in range(len(ways) + 1))]
    for name in names:
        cells = (sorted(found.get((name, one), {}).items()) for one in ways)
        told = (", ".join(f"**{asked}**" if red else asked for (_, asked), red in cell) for cell in cells)
        made.append(line([name, *(cell or "–" for cell in told)]))
    engines, pairs = {row["engine"] for row in report["rows"]}, {(row["engine"], way(row)) for row in report["rows"]}
    whole = len(engines) * len(ways)
    return "\n".join([*made, "", f"Without any certificate: {whole - len(pairs)} of {whole} pairs of these."])


def filters(row: Any) -> list[str]:
    return [f"{name.replace('_', '-')} {row[name]:g}" for name in ("top_k", "top_p") if name in row]


def model(row: Any) -> str:
    return MODELS.get(row.get("family", ""), "")


def wrong(row: Any) -> bool:
    """Whether the texts at the row's own temperature are: each certificate compares greedy texts besides."""
    return bool(row["status"]) and (not row["temperature"] or any(any(one["red"] or ()) for one in row["contexts"]))


def way(row: Any) -> str:
    return SAME.get(row["method"], row["method"])


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
