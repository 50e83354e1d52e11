"""What the bench measured with many texts at once, as the tab Theory shows it."""

from __future__ import annotations

from typing import Any

import pandas

from . import charts, results
from .menu import read_json
from .text import sentences, strings

COLOURS = (charts.LIVE, charts.OTHER)  # of the lengths of text
DASHES = ("solid", "dash", "dot")  # of the draft lengths K


def report(name: str) -> dict[str, Any]:
    """{} if there is none that can be read."""
    return read_json(results.RESULTS / f"{name}.json")


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
        charts.courses(gains, words["many"]["axis"], even=1.0),
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
