"""`python -m tools.bench.tables`: write the measured figures from the reports into README and docs."""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from specdec.bench.suites import digests
from specdec.proof.black_box import noticed_bias
from specdec.servers.certificate import alarm_of_each
from specdec.ui.results import SHOWN

from . import trust
from .trust import folded

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {"domain": "domain", "temperature": "T", "drafter": "drafter", "k": "K", "alpha": "α", "tau": "τ"}
COLUMNS |= {"draft_cost": "c", "verify_cost": "v", "measured_speedup": "measured speed-up"}
COLUMNS |= {"worst_prompt_speedup": "worst prompt", "accounted_speedup": "accounted", "repetition": "repetition"}
STAR = ("bfloat16", "gguf")  # reports in results/star; they measure SmolLM2
RESULTS = "headline machines measured methods equal star_passes browsers gpu_steps gpu_smollm2 gpu".split()
IDENTICAL = "Greedy text identical to plain decoding's in every run: "
PAGES = {  # page -> the keys of its texts in `blocks`
    "README.md": ["expected", "headline", "trust"],
    "docs/results.md": [*RESULTS, "star_default", *(f"star_{name}" for name in STAR)],
    "docs/methods.md": ["models"],
    "docs/certify-a-server.md": ["servers"],
    "docs/trust.md": ["trust_table"],
}


def main() -> None:
    for name in SHOWN:
        path = ROOT / "assets" / "results" / f"{name}.json"
        report = load(path)
        report["provenance"]["changed"] = changed(report)  # for the page, which may lack the weights
        path.write_text(json.dumps(report, ensure_ascii=False) + "\n", encoding="utf-8")
    texts = blocks(ROOT)
    for page, names in PAGES.items():
        path = ROOT / page
        path.write_text(filled(path.read_text(encoding="utf-8"), {name: texts[name] for name in names}), "utf-8")


def blocks(root: Path) -> dict[str, str]:
    """Render the reports below `root` as Markdown."""
    results = root / "assets" / "results"
    embedded, all_methods = load(results / "embedded.json"), load(results / "methods.json")
    on_gpu = load(results / "machines" / "gpu.h200.json")
    counted = trust.load_reports(results)
    star = {path.stem: load(path) for path in (results / "star").glob("*.json")}
    return {
        "headline": headline(embedded) + outdated(embedded),
        "machines": machines([embedded, *map(load, sorted((results / "machines").glob("embedded.*.json")))]),
        "measured": measured(embedded) + outdated(embedded),
        "methods": methods(all_methods) + outdated(all_methods),
        "equal": at_equal_depth(all_methods) + outdated(all_methods),
        "servers": certificates(load(results / "servers.json")),
        "trust": trust.headline(counted),
        "trust_table": trust.table(counted),
        "star_passes": passes(star["passes"]) + outdated(star["passes"]),
        "expected": expected(star["default"]) + outdated(star["default"]),
        "star_default": by_default(star["default"]) + outdated(star["default"]),
        **{f"star_{name}": methods(star[name]) + outdated(star[name]) for name in STAR},
        "browsers": browsers(load(results / "machines" / "browsers.json")),
        "gpu": gpu(on_gpu) + outdated(on_gpu),
        "gpu_steps": gpu_steps(on_gpu),
        "gpu_smollm2": gpu_smollm2(on_gpu),
        "models": models(load(root / "assets" / "family" / "provenance.json")),
    }


def outdated(*reports: Any) -> str:
    """Say what has changed since reports were measured; "" if nothing has."""
    names = sorted({name for report in reports for name in changed(report)})
    return f"\n\nMeasured before the last change of {', '.join(names)}." if names else ""


def changed(report: Any) -> list[str]:
    """Return the parts that have changed since this report; all of them, if it holds no digests."""
    provenance = report["provenance"]
    now, then = digests(provenance["models"].get("family", "")), provenance.get("digests", {})
    return [name for name in now if now[name] != then.get(name)]


def filled(text: str, blocks_by_name: dict[str, str]) -> str:
    """Replace the text between <!-- name --> and <!-- /name -->. Raises ValueError if one of these is missing."""
    for name, block in blocks_by_name.items():
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- /{name} -->\n")
        if not closing:
            raise ValueError(f"there is no place <!-- {name} --> … <!-- /{name} -->")
        text = f"{before}{opening}{block}\n{closing}{after}"
    return text


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def table(head: Iterable[str], rows: Iterable[Iterable[str]], *notes: str) -> str:
    """Render a Markdown table, and `notes` below it."""
    names = list(head)
    lines = ["| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def pivot(head: list[str], cells: dict[tuple[tuple[str, ...], str], str], *notes: str) -> str:
    """Render a table. A key of `cells` is a pair: the row's first cells, and the column's name."""
    starts, columns = [key[0] for key in cells], list(dict.fromkeys(key[1] for key in cells))
    rows = ([*start, *(cells.get((start, column), "–") for column in columns)] for start in dict.fromkeys(starts))
    return table([*head, *columns], rows, *notes)


def machine_and_date(report: Any) -> str:
    machine, provenance = report["machine"], report["provenance"]
    return f"{machine['cpu']}, {machine['cores']} cores, {provenance['measured'][:10]}"


def measured(report: Any) -> str:
    return table(COLUMNS.values(), ([cell(name, row[name]) for name in COLUMNS] for row in report["rows"]))


def compare_with_transformers(report: Any) -> tuple[str, float, float]:
    """Return "yes" if every greedy text equals plain decoding's, otherwise "NO"; and two ratios of speeds.

    The first is plain decoding over transformers' `generate`; the second, speculative over assisted decoding.
    """
    same = all(row["identical_to_plain"] for row in report["rows"] if row["temperature"] == 0)
    peers = report["peers"]
    plain = peers["plain_beside_them"] / peers["transformers_generate"]
    return "yes" if same else "NO", plain, peers["speculative_beside_them"] / peers["transformers_assisted"]


def headline(report: Any) -> str:
    """Write the gain of the built-in pair's best drafter in each domain, and a comparison with transformers."""
    same, plain, speculative = compare_with_transformers(report)
    rates = {name: f"{rate:.0f}" for name, rate in report["peers"].items() if isinstance(rate, float)}
    cells: dict[tuple[tuple[str, ...], str], str] = {}
    for row in sorted(report["rows"], key=lambda row: (row["temperature"], row["measured_speedup"])):
        drafter = f"`{row['drafter']}`, K = {row['k']}"  # the fastest is written last
        gains = gain(row["measured_speedup"], row["worst_prompt_speedup"])
        cells[(row["domain"],), gain_column(row["temperature"])] = f"{gains} · {drafter}"
    note = (
        f"Built-in pair, float32, {machine_and_date(report)}. {IDENTICAL}{same}. "
        f"Beside transformers on the same weights, greedy: plain decoding is {plain:.1f}× its `generate` "
        f"({rates['plain_beside_them']} against {rates['transformers_generate']} tokens/s); "
        f"speculative decoding is {speculative:.1f}× its assisted generation at its best setting "
        f"({rates['speculative_beside_them']} against {rates['transformers_assisted']} tokens/s, "
        f"{report['peers']['transformers_assisted_best']})."
    )
    return pivot(["text"], cells, note)


def expected(report: Any) -> str:
    """Write what SmolLM2 gains by default, by kind of question: the median and the worst."""
    gains: dict[tuple[tuple[str, ...], str], list[float]] = {}
    for row in report["rows"]:
        column = gain_column(row["temperature"], f"`{row['drafter']}`, K = {row['k']}")
        gains.setdefault(((row["kind"],), column), []).append(row["measured_speedup"])
    medians = sorted(gains, key=lambda key: median(gains[key]), reverse=True)
    cells = {key: gain(median(gains[key]), min(gains[key])) for key in medians}
    same = all(row["identical_to_plain"] for row in report["rows"] if not row["temperature"])
    note = f"SmolLM2-135M, bfloat16, {machine_and_date(report)}. {IDENTICAL}"
    return pivot(["text"], cells, note + ("yes." if same else "NO."))


def gain_column(temperature: float, drafter: str = "") -> str:
    return ": ".join(filter(None, [f"T = {temperature:g}" if temperature else "greedy", drafter]))


def gain(typical: float, worst: float) -> str:
    return f"{typical:.2f}×, worst {worst:.2f}×"


def machines(reports: list[Any]) -> str:
    """Write a line for each processor, with the headline figures of the *embedded* report measured there."""
    head = ["processor", "cores", "layers in", "measured", "commit", "greedy", "T = 0.8"]
    head += ["plain / `generate`", "speculative / assisted", "greedy text identical"]
    rows = []
    for report in reports:
        machine, provenance = report["machine"], report["provenance"]
        language = "C++" if provenance["models"].get("kernels") == "native" else "torch"
        start = [machine["cpu"], str(machine["cores"]), language, provenance["measured"][:10], provenance["commit"]]
        gains = (f"{report['headline'][name]['speedup']:.2f}×" for name in ("greedy", "sampled"))
        same, *ratios = compare_with_transformers(report)
        rows.append([*start, *gains, *(f"{ratio:.1f}×" for ratio in ratios), same])
    return table(head, rows)


def methods(report: Any) -> str:
    """Write a line for each drafter: measured speed-up, α and τ at its best K, by temperature and domain."""
    cells = {cell_key(row): brief(row) for row in by_temperature(report)}
    return pivot(["drafter"], cells, f"{machine_and_date(report)}, commit {report['provenance']['commit']}.")


def at_equal_depth(report: Any) -> str:
    """Write a line for each drafter: τ at every K, by temperature and domain. Drafters with only one K are left out."""
    rows = [row for row in by_temperature(report) if len(row["tau_by_k"]) > 1]
    depths = sorted({k for row in rows for k in row["tau_by_k"]}, key=int)
    cells = {cell_key(row): " · ".join(cell("tau", row["tau_by_k"][k]) for k in depths) for row in rows}
    return pivot([f"τ at K = {' · '.join(depths)}"], cells)


def by_temperature(report: Any) -> list[Any]:
    return sorted(report["rows"], key=lambda row: row["temperature"])


def cell_key(row: Any) -> tuple[tuple[str, ...], str]:
    return (f"`{row['drafter']}`",), f"{row['domain']}, T = {row['temperature']:g}"


def passes(report: Any) -> str:
    """Write a line for each engine, precision and number of threads: a step's time, and v(n) of docs/results.md."""
    counts = [count for count in report["rows"][0]["v"] if count != "1"]
    head = ["engine", "weights", "threads", "step, ms", "step / reading", *(f"v({count})" for count in counts)]
    rows = []
    for row in report["rows"]:
        step = f"{row['step_ms']:.1f}", f"{row['step_ms'] / row['reading_ms']:.2f}"
        costs = (f"{row['v'][count]:.2f}" for count in counts)
        rows.append([row["engine"], row["precision"], str(row["threads"]), *step, *costs])
    commit, peer = report["provenance"]["commit"], report["llama_cpp_python"]
    return table(head, rows, f"{machine_and_date(report)}, commit {commit}; llama-cpp-python {peer}.")


def by_default(report: Any) -> str:
    """Write a line for each question: the default drafter's speed-up by temperature."""
    cells, notes = dict[tuple[tuple[str, ...], str], str](), list[str]()
    for row in sorted(report["rows"], key=lambda row: (row["temperature"], row["measured_speedup"])):
        column = f"T = {row['temperature']:g}: `{row['drafter']}`, K = {row['k']}"
        cells[(row["question"], row["kind"], row["list"]), column] = f"{row['measured_speedup']:.2f}×"
    for list_name, temperature in sorted({(row["list"], row["temperature"]) for row in report["rows"]}):
        rows = [row for row in report["rows"] if (row["list"], row["temperature"]) == (list_name, temperature)]
        gains = [row["measured_speedup"] for row in rows]
        notes.append(f"{list_name}, T = {temperature:g}: median {median(gains):.2f}×, worst {min(gains):.2f}×")
    same = all(row["identical_to_plain"] for row in report["rows"] if not row["temperature"])
    note = f"{machine_and_date(report)}. {'; '.join(notes)}. Greedy texts identical to plain decoding's: "
    return pivot(["question", "kind", "list"], cells, note + ("all." if same else "NOT ALL."))


def browsers(report: Any) -> str:
    """Write a line for each family, kind of text, drafter and K: τ, and the speed-up by browser and threads.

    The last lines give each family's median tokens per second in plain decoding.
    """
    cells: dict[tuple[tuple[str, ...], str], str] = {}
    rates: dict[tuple[tuple[str, ...], str], list[float]] = {}
    for row in report["rows"]:
        threads = f"{row['threads']} thread{'s' * (row['threads'] != 1)}"
        column = f"{row['browser'].title()} {report['versions'][row['browser']]}, {threads}"
        setting = row["family"], row["kind"], f"`{row['drafter']}`, {row['k']}", f"{row['tau']:.2f}"
        cells[setting, column] = f"{row['speed_up']:.2f}×"
        plain = row["family"], "all, tokens/s", "plain decoding", "1"
        rates.setdefault((plain, column), []).append(row["plain_per_s"])
    cells |= {key: f"{median(values):.0f}" for key, values in rates.items()}
    return pivot(["target", "text", "drafter, K", "τ"], cells, f"{machine_and_date(report)}.")


def gpu(report: Any) -> str:
    """Write README's sentences about a GPU."""
    stages, card = report["stages"], report["machine"]["gpu"]
    plain, drafted = (row for row in stages["steps"] if "synthetic_alpha" in row and row["context"] == 128)
    (generate,) = stages["generate"]
    token, step = plain["seconds_per_token"], generate["seconds_per_step"]
    by_precision = {row["dtype"]: row for row in stages["embedded"]}
    best = {row["temperature"]: row for row in sorted(stages["smollm2"], key=lambda row: row["measured_speedup"])}
    return folded(
        f"- {card}, Qwen3-8B's shape in bfloat16 with random weights, 128 tokens of context: plain decoding takes "
        f"{1e3 * token:.2f} ms a token ({1 / token:.0f} tokens/s), {step / token:.1f}× as fast as transformers' eager "
        f"`generate` there ({1e3 * step:.1f} ms). With Qwen3-0.6B's shape as draft, K = {drafted['k']}, and "
        f"*synthetic* acceptance of {drafted['synthetic_alpha']}: {1e3 * drafted['seconds_per_token']:.2f} ms, "
        f"{drafted['measured_speedup']:.2f}×.",
        "- The embedded pair, T = 0.8, K = 4: "
        + ", ".join(f"{row['measured_speedup']:.2f}× in {name}" for name, row in by_precision.items())
        + f"; greedy text was plain decoding's for {by_precision['bfloat16']['identical']} of "
        f"{by_precision['bfloat16']['prompts']} prompts in both. SmolLM2 in bfloat16, K = {best[0.0]['k']}: greedy "
        f"{best[0.0]['measured_speedup']:.2f}× (`{best[0.0]['drafter']}`), T = 0.8 "
        f"{best[0.8]['measured_speedup']:.2f}× (`{best[0.8]['drafter']}`).",
    )


def gpu_steps(report: Any) -> str:
    """Write a line for each context and K: times of draft and verification; c and v as in docs/results.md."""
    head = ["context", "K", "draft, ms", "verification, ms", "c", "v", "kernels of a cycle"]
    rows, plain = [], 0.0
    for row in report["stages"]["steps"]:
        if "verify_ms" not in row:
            continue
        plain = plain if row["k"] else row["verify_ms"]  # each context begins with the row for K = 0
        c = f"{row['draft_ms'] / row['k'] / plain:.2f}" if row["k"] else "–"
        costs = f"{row['draft_ms']:.2f}", f"{row['verify_ms']:.2f}", c, f"{row['verify_ms'] / plain:.2f}"
        rows.append([str(row["context"]), str(row["k"]), *costs, str(row["kernels"])])
    machine, commit = report["machine"], report["provenance"]["commit"]
    day = report["provenance"]["measured"][:10]
    note = f"{machine['gpu']}, {day}, commit {commit}, torch {machine['torch']}, Triton {machine['triton']}, driver "
    return table(head, rows, f"{note}{machine['driver']}; a copy moves {report['copy_gbps']:,.0f} GB/s.")


def gpu_smollm2(report: Any) -> str:
    """Write a line for each drafter of SmolLM2 and K: speed-up, α and τ, greedy and sampled."""
    cells = dict[tuple[tuple[str, ...], str], str]()
    for row in report["stages"]["smollm2"]:
        cells[(f"`{row['drafter']}`", str(row["k"])), f"T = {row['temperature']:g}"] = brief(row)
    return pivot(["drafter", "K"], cells)


NAMES = {"smollm2": "SmolLM2-135M"}  # certificates of the embedded pair name no family


def certificates(report: Any) -> str:
    """Write a line for each certificate of a server."""
    head = ["engine", "version", "method", "T", "draws × prompts", "verdict"]
    head += ["bias that would have shown, %", "seconds", "date"]
    rows = []
    for row in report["rows"]:
        draws = f"{row['draws']:,} × {len(row['contexts'])}" if row["draws"] else f"greedy × {len(row['contexts'])}"
        verdict = f"**{row['verdict']}**" if row["status"] else row["verdict"]
        verdict += ": greedy text alone" if row["status"] and not is_wrong(row) else ""
        parts = f"`{row['method']}`", row["note"], *filters(row), NAMES.get(row.get("family", ""), "")
        method = ", ".join(part for part in parts if part)
        setting = [row["engine"], row["version"], method, f"{row['temperature']:g}"]
        rows.append([*setting, draws, verdict, biases(row), str(row["seconds"]), row["date"]])
    return table(head, rows)


def biases(row: Any) -> str:
    """Return what a lossless row's draws would have noticed after each prompt."""
    if row["status"] or not row["draws"]:
        return "–"
    alarm = alarm_of_each(len(row["contexts"]), row["length"])
    degrees = [context["tests"][-1][1] for context in row["contexts"]]
    return " · ".join(f"{100 * noticed_bias(each, row['draws'], alarm):.0f}" for each in degrees)


def filters(row: Any) -> list[str]:
    return [f"{name.replace('_', '-')} {row[name]:g}" for name in ("top_k", "top_p") if name in row]


def is_wrong(row: Any) -> bool:
    """Return whether texts at the row's temperature are wrong. `status` is also set if only greedy texts are wrong."""
    return bool(row["status"]) and (not row["temperature"] or any(any(each["red"] or ()) for each in row["contexts"]))


def brief(row: Any) -> str:
    return " · ".join(cell(name, row[name]) for name in ("measured_speedup", "alpha", "tau"))


def models(provenance: Any) -> str:
    """Write a line for each part of the embedded family that was trained."""
    head = ["", "shape", "parameters", "tokens seen", "bits per byte, held out (story · code · facts)"]
    rows = []
    for name, facts in provenance.items():
        if "tokens_seen" in facts:
            layers, width = (facts.get("shape", {}).get(field, 0) for field in ("num_hidden_layers", "hidden_size"))
            shape = f"{layers} layer{'s' * (layers > 1)} × {width}" if layers else "heads"
            bits = facts.get("bits_per_byte_held_out")
            scores = " · ".join(f"{bits[domain]:.2f}" for domain in ("story", "code", "facts")) if bits else "–"
            size, seen = f"{facts['parameters'] / 1e6:.2f} M", f"{facts['tokens_seen'] / 1e6:.0f} M"
            rows.append([name.replace("_", " "), shape, size, seen, scores])
    return table(head, rows)


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
