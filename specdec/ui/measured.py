"""What the bench measured with many texts at once and in several precisions, as the tab Theory shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas

from . import charts, results
from .menu import read_json
from .text import sentences, strings

OURS, PLAIN, LEAST = "specdec", "plain", "int8"
COLOURS = (charts.LIVE, charts.OTHER)  # of the lengths of text
DASHES = ("solid", "dash", "dot")  # of the draft lengths K
LANE = ["engine", "precision", "temperature", "drafted"]


def report(name: str) -> dict[str, Any]:
    """{} if there is none that can be read."""
    return read_json(results.RESULTS / f"{name}.json")


# ---- many texts at once ----


def batches(told: dict[str, Any]) -> pandas.DataFrame:
    """A row per length of text, K and batch; `each` is what one text of a batch is written with."""
    table = pandas.DataFrame(told["points"])
    each, plain = table["tokens_per_second"] / table["batch"], table["plain_tokens_per_second"] / table["batch"]
    return table.assign(each=each, plain_each=plain)


def batch_charts(table: pandas.DataFrame) -> tuple[Any, Any]:
    """Speed-up by batch; and the throughput of all texts by the speed of each, speculative beside plain."""
    words = strings("theory")
    contexts, ks = (list(dict.fromkeys(table[name])) for name in ("context", "k"))
    gains, rates = list[charts.Course](), list[charts.Course]()
    for context in contexts:
        colour = COLOURS[contexts.index(context) % len(COLOURS)]
        for k in ks:
            line = table[(table["context"] == context) & (table["k"] == k)]
            dash = DASHES[ks.index(k) % len(DASHES)]
            name = words["many"]["line"].format(context=context, k=k)
            gains.append(charts.Course(name, line["batch"], line["measured_speedup"], (), colour, dash))
            rates.append(charts.Course(name, line["each"], line["tokens_per_second"], line["batch"], colour, dash))
        plain = words["many"]["plain"].format(context=context)
        rates.append(
            charts.Course(
                plain, line["plain_each"], line["plain_tokens_per_second"], line["batch"], charts.LINE,
                DASHES[contexts.index(context) % len(DASHES)],
            )
        )  # fmt: skip
    return (
        charts.courses(gains, words["batches"]["axis"], even=1.0),
        charts.courses(rates, words["many"]["each"], words["many"]["all"], note=words["many"]["batch"]),
    )


def batch_table(table: pandas.DataFrame) -> pandas.DataFrame:
    columns = strings("theory")["many"]["columns"]
    return table.reindex(columns=list(columns)).rename(columns=columns)


def batch_lines(told: dict[str, Any], table: pandas.DataFrame) -> list[str]:
    """Where and when; of each length of text how the K that is fastest alone fares in the largest batch; the texts."""
    words, machine = strings("theory")["many"], told.get("machine", {})
    made = str(told.get("provenance", {}).get("measured", ""))[:10]
    alone, most = table[table["batch"] == table["batch"].min()], table["batch"].max()
    best = alone.loc[alone.groupby("context", sort=False)["measured_speedup"].idxmax()]
    largest = table[table["batch"] == most]
    pairs = best.merge(largest, on=["context", "k"], suffixes=("", "_all"))
    gains = [
        words["gain"].format(
            name=words["line"].format(context=row.context, k=row.k), n=most,
            one=f"{row.measured_speedup:.2f}×", all=f"{row.measured_speedup_all:.2f}×",
        )
        for row in pairs.itertuples()
    ]  # fmt: skip
    where = words["where"].format(cpu=machine.get("cpu", "?"), cores=machine.get("cores", "?"), date=made)
    return [sentences(where, *gains, words["identical" if table["identical_to_plain"].all() else "differs"])]


# ---- several precisions ----


def fastest(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Of every kind of text plain decoding, and the fastest way to draft; no lane that was not measured whole."""
    rows = rows.assign(drafted=rows["method"] != PLAIN)
    best = rows.loc[rows.groupby([*LANE, "domain"], sort=False)["ratio"].idxmax()]
    return best.groupby(LANE, sort=False).filter(lambda lane: len(lane) == rows["domain"].nunique())


def mean(ratios: pandas.Series) -> float:
    """Geometric: the ratio of two such means is the mean of the ratios, kind by kind. Of medians that does not hold."""
    return math.exp(ratios.map(math.log).mean())


def precision_chart(best: pandas.DataFrame) -> Any:
    """A line per precision and engine, and the same with drafts, at each temperature."""
    lanes = list(dict.fromkeys(zip(best["precision"], best["engine"], strict=True)))
    columns = [(t, drafted) for t in dict.fromkeys(best["temperature"]) for drafted in (False, True)]
    cells = {key: lane for key, lane in best.groupby(["precision", "engine", "temperature", "drafted"])}
    found = [[cells.get((*lane, *column)) for column in columns] for lane in lanes]
    return charts.heat_map(
        [f"{precision} · {engine_name(engine)}" for precision, engine in lanes],
        [column(t, drafted) for t, drafted in columns],
        [[None if cell is None else mean(cell["ratio"]) for cell in line] for line in found],
        [
            ["" if cell is None else "<br>".join(map(cell_line, cell.to_dict("records"))) for cell in line]
            for line in found
        ],
        even=1.0,
    )


def column(temperature: float, drafted: bool) -> str:
    """In two rows, as narrow as a phone's."""
    word = strings("theory")["precision"]["drafted" if drafted else "plain"]
    return str(word).format(t=f"{temperature:g}").replace("T =", "<br>T =")


def cell_line(row: Mapping[str, Any]) -> str:
    low, high = row["ratio_interval"]
    return f"{kind(row['domain'])}: {row['ratio']:.2f} ({low:.2f}–{high:.2f}), {method(row['method'])}, K = {row['k']}"


def precision_lines(told: dict[str, Any], best: pandas.DataFrame) -> list[str]:
    """What drafting adds to the fewest bits, by temperature, and how far each precision moves the distribution."""
    words = strings("theory")["precision"]
    moved = words["comma"].join(f"{name} {value:.3f}" for name, value in told.get("law_moved", {}).items())
    return [*(onto(best, t) for t in dict.fromkeys(best["temperature"])), words["shift"].format(each=moved)]


def onto(best: pandas.DataFrame, temperature: float) -> str:
    """Of this engine: what drafting adds to the fewest bits, on the same kinds of text. "" where that is not known."""
    words = strings("theory")["precision"]
    lane = best[(best["engine"] == OURS) & (best["precision"] == LEAST) & (best["temperature"] == temperature)]
    pairs = lane[~lane["drafted"]].merge(lane[lane["drafted"]], on="domain", suffixes=("_plain", ""))
    if pairs.empty:
        return ""
    found = {row["domain"]: change(row) for row in pairs.to_dict("records")}
    ways = [way for _, way in found.values()]
    each = words["comma"].join(
        words["change"].format(domain=kind(name), change=f"{'−' if by < 0 else '+'}{abs(100 * by):.0f}")
        for name, (by, _) in found.items()
    )
    counts = {way: ways.count(way) for way in ("faster", "slower", "close")}
    return words["onto"].format(t=f"{temperature:g}", each=each, all=len(ways), **counts)


def change(row: Mapping[str, Any]) -> tuple[float, str]:
    """What drafting does to one kind of text, by the ratios of the same texts where the bench told them.

    Else it is too close to tell where the intervals of the two lanes overlap, which is the stricter rule.
    """
    paired = row.get("over_plain") is not None and not pandas.isna(row["over_plain"])
    low, high = row["over_plain_interval" if paired else "ratio_interval"]
    least, most = (1.0, 1.0) if paired else row["ratio_interval_plain"]
    by = row["over_plain"] if paired else row["ratio"] / row["ratio_plain"]
    return by - 1, "faster" if low > most else "slower" if high < least else "close"


def precision_note(told: dict[str, Any]) -> str:
    words, machine, made = strings("theory")["precision"], told.get("machine", {}), told.get("provenance", {})
    where = words["note"].format(
        cpu=machine.get("cpu", "?"), cores=machine.get("cores", "?"), date=str(made.get("measured", "?"))[:10],
        threads=made.get("models", {}).get("float32", {}).get("threads", "?"), commit=made.get("commit", "?"),
        tokens=told.get("tokens", "?"),
    )  # fmt: skip
    beside = words["beside"].format(version=told["llama_cpp"]) if told.get("llama_cpp") else words["alone"]
    return sentences(where, beside)


def precision_table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Every lane as it was measured, under the names that people read."""
    named = rows.assign(
        engine=rows["engine"].map(engine_name), method=rows["method"].map(method), domain=rows["domain"].map(kind),
        low=[low for low, _ in rows["ratio_interval"]], high=[high for _, high in rows["ratio_interval"]],
    )  # fmt: skip
    columns = strings("theory")["precision"]["columns"]
    return named.reindex(columns=list(columns)).rename(columns=columns)


def engine_name(name: str) -> str:
    return strings("theory")["precision"]["ours"] if name == OURS else name


def method(name: str) -> str:
    return results.method("none" if name == PLAIN else name)


def kind(name: str) -> str:
    return strings("theory")["precision"]["kinds"].get(name, name)
