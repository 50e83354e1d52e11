"""`python -m tools.bench.tables`: write the measured figures into the README and docs/; nobody types one by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from . import certified, trust
from .certified import line
from .trust import folded

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "domain": "domain", "temperature": "T", "drafter": "drafter", "k": "K", "alpha": "α", "tau": "τ",
    "draft_cost": "c", "verify_cost": "v", "measured_speedup": "measured speed-up",
    "worst_prompt_speedup": "worst prompt", "accounted_speedup": "accounted", "repetition": "repetition",
}  # fmt: skip
NAMES = ("drafter", "domain", "temperature")


STAR = ("bfloat16", "eagle3", "quantised", "gguf")  # SmolLM2: two precisions, and drafters measured alone
PAGES = {
    "README.md": ["headline", "trust"],
    "docs/results.md": [
        "headline",
        "machines",
        "measured",
        "methods",
        "equal",
        "batch",
        "edits",
        "star_passes",
        "star_bfloat16",
        "star_eagle3",
        "star_quantised",
        "star_gguf",
        "browsers",
    ],
    "docs/methods.md": ["models"],
    "docs/certify-a-server.md": ["servers", "certified"],
    "docs/trust.md": ["trust_short", "trust_long"],
}


def main() -> None:
    made = blocks(ROOT)
    for page, names in PAGES.items():
        path = ROOT / page
        path.write_text(filled(path.read_text(encoding="utf-8"), {name: made[name] for name in names}), "utf-8")


def blocks(root: Path) -> dict[str, str]:
    """What the reports below `root` say, as Markdown, by the name of its place."""
    results = root / "assets" / "results"
    embedded, every = read(results / "embedded.json"), read(results / "methods.json")
    tried, special = trust.read(results), read(results / "families" / "tuned.json")
    return {
        "headline": headline(embedded, every),
        "machines": machines([embedded, *map(read, sorted((results / "machines").glob("embedded.*.json")))]),
        "measured": measured(embedded),
        "methods": methods(every),
        "equal": at_equal_depth(every),
        "edits": methods(special),
        "batch": batch(read(results / "batch.json")),
        "servers": certified.table(read(results / "servers.json")),
        "certified": certified.matrix(read(results / "servers.json")),
        "trust": trust.headline(tried),
        "trust_short": trust.table(tried["short"]),
        "trust_long": trust.table(tried["long"]),
        "star_passes": passes(read(results / "star" / "passes.json")),
        **{f"star_{name}": methods(read(results / "star" / f"{name}.json")) for name in STAR},
        "browsers": browsers(read(results / "machines" / "browsers.json")),
        "models": models(read(root / "assets" / "family" / "provenance.json")),
    }


def filled(text: str, blocks: dict[str, str]) -> str:
    """`text` with what stands between <!-- name --> and <!-- /name --> made anew; ValueError without such a place."""
    for name, block in blocks.items():
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- /{name} -->\n")
        if not closing:
            raise ValueError(f"there is no place <!-- {name} --> … <!-- /{name} -->")
        text = f"{before}{opening}{block}\n{closing}{after}"
    return text


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def measured(report: Any) -> str:
    rows = [line(cell(name, row[name]) for name in COLUMNS) for row in report["rows"]]
    return "\n".join([line(COLUMNS.values()), line("---" for _ in COLUMNS), *rows])


def headline(report: Any, every: Any) -> str:
    """The measured speed-ups, those of `every` drafter, whether greedy text stayed the same, transformers beside us."""
    rivals = report["peers"]
    same = all(row["identical_to_plain"] for row in report["rows"] if row["temperature"] == 0)
    plain, speculative = rivals["plain_beside_them"], rivals["speculative_beside_them"]
    generate, assisted = rivals["transformers_generate"], rivals["transformers_assisted"]
    return folded(
        f"- Speculative over plain, best drafter of each domain: greedy {best(report, 'greedy', 0.0)}; "
        f"T = 0.8 {best(report, 'sampled', 0.8)}.",
        f"- Best of {len({row['drafter'] for row in every['rows']})} ways of drafting, at another hour: "
        f"greedy {best(every, 'greedy', 0.0)}; T = 0.8 {best(every, 'sampled', 0.8)}.",
        f"- Greedy text identical to plain decoding's in every run: {'yes' if same else 'NO'}.",
        "- Beside transformers on the same weights, greedy: "
        f"plain decoding is {plain / generate:.1f}× its `generate` ({plain:.0f} against {generate:.0f} tokens/s); "
        f"speculative decoding is {speculative / assisted:.1f}× its assisted generation at its best setting "
        f"({speculative:.0f} against {assisted:.0f} tokens/s, {rivals['transformers_assisted_best']}).",
    )


def machines(reports: list[Any]) -> str:
    """A line a report of the same suite: the headline's figures, by processor."""
    head = ["processor", "cores", "layers in", "measured", "commit", "greedy", "T = 0.8"]
    head += ["plain / `generate`", "speculative / assisted", "greedy text identical"]
    table = [line(head), line("---" for _ in head)]
    for report in reports:
        same = all(row["identical_to_plain"] for row in report["rows"] if row["temperature"] == 0)
        rivals, told = report["peers"], report["provenance"]
        table.append(
            line(
                [
                    str(report["machine"]["cpu"]),
                    str(report["machine"]["cores"]),
                    "C++" if told["models"].get("kernels") == "native" else "torch",
                    told["measured"][:10],
                    told["commit"],
                    *(f"{report['headline'][name]['speedup']:.2f}×" for name in ("greedy", "sampled")),
                    f"{rivals['plain_beside_them'] / rivals['transformers_generate']:.1f}×",
                    f"{rivals['speculative_beside_them'] / rivals['transformers_assisted']:.1f}×",
                    "yes" if same else "NO",
                ]
            )
        )
    return "\n".join(table)


def methods(report: Any) -> str:
    """A line a drafter: measured speed-up, α and τ at its best K, by temperature and domain."""
    places = places_of(report["rows"])
    cells = {(row["drafter"], row["temperature"], row["domain"]): row for row in report["rows"]}
    table = [line(["drafter", *(f"{domain}, T = {temperature:g}" for temperature, domain in places)])]
    table.append(line("---" for _ in range(len(places) + 1)))
    for drafter in dict.fromkeys(row["drafter"] for row in report["rows"]):
        rows = [cells[(drafter, *place)] for place in places]
        table.append(line([f"`{drafter}`", *(" · ".join(brief(row)) for row in rows)]))
    return "\n".join(table)


def places_of(rows: Any) -> list[tuple[float, str]]:
    """Every temperature and domain, greedy first."""
    return sorted(dict.fromkeys((row["temperature"], row["domain"]) for row in rows), key=lambda place: place[0])


def at_equal_depth(report: Any) -> str:
    """A line a drafter: τ at every K that was tried, by temperature and domain."""
    rows = [row for row in report["rows"] if len(row["tau_by_k"]) > 1]
    found = {(row["drafter"], row["temperature"], row["domain"]): row["tau_by_k"] for row in rows}
    places = places_of(rows)
    depths = sorted({k for row in rows for k in row["tau_by_k"]}, key=int)
    head = [f"τ at K = {' · '.join(depths)}", *(f"{domain}, T = {temperature:g}" for temperature, domain in places)]
    table = [line(head), line("---" for _ in head)]
    for drafter in dict.fromkeys(row["drafter"] for row in rows):
        taus = (found[(drafter, *place)] for place in places)
        table.append(line([f"`{drafter}`", *(" · ".join(cell("tau", by_k[k]) for k in depths) for by_k in taus)]))
    return "\n".join(table)


def batch(report: Any) -> str:
    """A line a batch size: tokens/s of all texts by plain decoding; then by K with speculation, the speed-up and v."""
    cells = {(point["context"], point["k"], point["batch"]): point for point in report["points"]}
    contexts, ks, batches = (list(dict.fromkeys(place[i] for place in cells)) for i in range(3))
    head = ["texts at once"]
    for context in contexts:
        head += [f"{context} tokens: plain", *(f"K = {k}" for k in ks)]
    table = [line(head), line("---" for _ in head)]
    for texts in batches:
        row = [str(texts)]
        for context in contexts:
            found = [cells[context, k, texts] for k in ks]
            row.append(f"{found[0]['plain_tokens_per_second']:,.0f}")
            row += [
                f"{one['tokens_per_second']:,.0f} · {one['measured_speedup']:.2f}× · {one['verify_cost']:.2f}"
                for one in found
            ]
        table.append(line(row))
    same = all(point["identical_to_plain"] for point in report["points"])
    about = f"{report['machine']['cpu']}, {report['machine']['cores']} cores, {report['provenance']['measured'][:10]}"
    kept = [f"{context}, K = {k}: {cells[context, k, batches[0]]['tau']:.2f}" for context in contexts for k in ks]
    told = f"Measured on {about}. τ with texts of {'; '.join(kept)}."
    return "\n".join([*table, "", f"{told} Texts identical to plain decoding's: {'all' if same else 'NOT ALL'}."])


def passes(report: Any) -> str:
    """A line an engine, precision and number of threads: a step, what reading its bytes takes, v by rows."""
    widths = [rows for rows in report["rows"][0]["v"] if rows != "1"]
    head = ["engine", "weights", "threads", "step, ms", "step / reading", *(f"v({rows})" for rows in widths)]
    table = [line(head), line("---" for _ in head)]
    for one in report["rows"]:
        told = [one["engine"], one["precision"], str(one["threads"]), f"{one['step_ms']:.1f}"]
        read_once = one["step_ms"] / one["reading_ms"]
        table.append(line([*told, f"{read_once:.2f}", *(f"{one['v'][rows]:.2f}" for rows in widths)]))
    made, told = report["machine"], report["provenance"]
    where = f"{made['cpu']}, {made['cores']} cores, {told['measured'][:10]}, commit {told['commit']}"
    return "\n".join([*table, "", f"{where}; llama-cpp-python {report['llama_cpp_python']}."])


def browsers(report: Any) -> str:
    """A line a family, kind of text, drafter and K: τ; by browser and threads, the speed-up. Below, plain tokens/s."""
    cells, lines = {}, {}
    for row in report["rows"]:
        place = f"{row['browser'].title()} {report['versions'][row['browser']]}, {row['threads']}"
        cells[row["family"], row["kind"], row["drafter"], row["k"], place] = row
        lines[row["family"], row["kind"], row["drafter"], row["k"]] = f"{row['tau']:.2f}"
    places = list(dict.fromkeys(place for *_, place in cells))
    head = ["target", "text", "drafter, K", "τ", *(f"{place} thread{'s' * (place[-1] != '1')}" for place in places)]
    table = [line(head), line("---" for _ in head)]
    for (family, kind, drafter, k), tau in lines.items():
        found = (cells[family, kind, drafter, k, place]["speed_up"] for place in places)
        table.append(line([family, kind, f"`{drafter}`, {k}", tau, *(f"{one:.2f}×" for one in found)]))
    for family in dict.fromkeys(family for family, *_ in lines):
        of_family: dict[str, list[float]] = {place: [] for place in places}
        for (whose, *_, place), row in cells.items():
            of_family[place] += [row["plain_per_s"]] if whose == family else []
        plain = (f"{median(found):.0f}" for found in of_family.values())
        table.append(line([family, "all, tokens/s", "plain decoding", "1", *plain]))
    made = report["machine"]
    return "\n".join([*table, "", f"{made['cpu']}, {made['cores']} cores, {report['provenance']['measured'][:10]}."])


def brief(row: Any) -> tuple[str, str, str]:
    return cell("measured_speedup", row["measured_speedup"]), cell("alpha", row["alpha"]), cell("tau", row["tau"])


def best(report: Any, name: str, temperature: float) -> str:
    """The headline, then each domain; those left out are named."""
    headline = report["headline"][name]
    rows = [row for row in report["rows"] if row["temperature"] == temperature]
    by_domain = {
        domain: max(row["measured_speedup"] for row in rows if row["domain"] == domain)
        for domain in dict.fromkeys(row["domain"] for row in rows)
    }
    each = ", ".join(f"{domain} {value:.2f}×" for domain, value in by_domain.items())
    if not headline["looping"]:
        return f"{headline['speedup']:.2f}× (median of: {each})"
    left_out = f"{' and '.join(headline['looping'])} repeat themselves too much to count"
    if headline["speedup"] is None:
        return f"{each} ({left_out})"
    return f"{headline['speedup']:.2f}× (median of those that count among {each}; {left_out})"


def models(provenance: Any) -> str:
    head = ["", "shape", "parameters", "tokens seen", "bits per byte, held out (story · code · facts)"]
    table = [line(head), line("---" for _ in head)]
    for name, facts in provenance.items():
        if "tokens_seen" not in facts:
            continue
        bits = facts.get("bits_per_byte_held_out")
        scores = " · ".join(f"{bits[domain]:.2f}" for domain in ("story", "code", "facts")) if bits else "–"
        size, seen = f"{facts['parameters'] / 1e6:.2f} M", f"{facts['tokens_seen'] / 1e6:.0f} M"
        table.append(line([name.replace("_", " "), shape(facts), size, seen, scores]))
    return "\n".join(table)


def shape(facts: Any) -> str:
    if "shape" not in facts:
        return "heads"
    layers, width = facts["shape"]["num_hidden_layers"], facts["shape"]["hidden_size"]
    return f"{layers} {'layer' if layers == 1 else 'layers'} × {width}"


def cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name == "drafter":
        return f"`{value}`"
    if name == "temperature":
        return f"{value:.1f}"
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return text + "×" if name.endswith("speedup") else text


if __name__ == "__main__":
    main()
