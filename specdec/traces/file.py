"""Read and write traces: one line of JSON for the header, then one for each event (NDJSON).

The live stream, downloads and recordings have this same format. Traces of older versions can be read; newer ones are
refused. A file can come from anyone, so each of its lines is checked.
"""

import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any, TYPE_CHECKING

from ..events import Committed, Event, Failed, from_dict, SCHEMA, to_dict
from ..figures import machine
from ..figures.stats import Comparison, summary
from ..messages import Refused, TranslatableText
from ..paths import write_whole
from .cycle import cycles, is_lossless, ShapeCheck, start_of

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_BYTES = 16_000_000
MAX_LINE = 1_000_000  # characters; a parsed line can take 24 times as much memory
MAX_LANES = 3
MAX_EXCERPT = 120  # characters that are shown of an error's reason or of a prompt
FIELDS = {"run": str, "source": str, "prompt": str, "lanes": list}  # of the header; these are required
FIELDS |= {"kind": str, "models": dict, "machine": dict, "created": str}
MARKS = {"accepted": "✓", "rejected": "✗", "discarded": "·", "resampled": "↻", "bonus": "+1"}  # beside the colours
STYLES = {
    "accepted": "background:#cbeadf",
    "rejected": "background:#f9cbb2;text-decoration:line-through",
    "discarded": "background:#e8ebef",
    "resampled": "background:#bfe0f7",
    "bonus": "background:#f8e29a",
}
# Control characters (not tab and newline), line separators, marks that can reverse a line, and lone surrogates.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class TraceError(Refused):
    """A text cannot be read as a trace."""

    def __init__(self, reason: str, /, **values: Any) -> None:
        super().__init__(TranslatableText(reason, **values))


@dataclass(frozen=True)
class TraceHeader:
    """Says what ran where. `source` is "live" or "recorded". The first of `lanes` is speculative, any "plain" last."""

    run: str
    source: str
    prompt: str
    lanes: tuple[str, ...]
    schema: int = SCHEMA
    kind: str = ""  # of text, such as "code"
    models: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    created: str = ""

    def line(self) -> str:
        return dump({"event": "header", **self.__dict__, "lanes": list(self.lanes)})


@dataclass(frozen=True, repr=False)
class Trace:
    """A run: its header and its events. A notebook displays it as HTML."""

    header: TraceHeader
    events: tuple[Event, ...]

    @property
    def text(self) -> str:
        """The text that the first lane wrote after the prompt."""
        return self._texts()[self.header.lanes[0]]

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of `summary`: α, τ, the costs c and v, the measured and the accounted speed-up …"""
        return summary([Comparison.from_events(self.events)])

    @property
    def speedup(self) -> float | None:
        """The measured speed-up: seconds a token of plain decoding / of the speculative lane; None if unknown."""
        return Comparison.from_events(self.events).measured_speedup

    def to_dataframe(self) -> "DataFrame":
        """Return a row for each token that was drafted or that the target added, in the order of the events.

        Columns: lane, cycle, token (its id), piece, status (accepted, rejected, discarded; of the target's own token:
        resampled, bonus, "" without a draft), p, q, u (the draw that decided) and at (seconds on the lane's clock).
        """
        from pandas import DataFrame

        rows = list[tuple[Any, ...]]()
        for cycle in cycles(self.events):
            event = cycle.committed
            place, at = (event.lane, event.cycle), event.at
            rows += [(*place, x.token, x.piece, x.status, x.p, x.q, x.u, at) for x in cycle.positions]
            if cycle.target_token is not None:
                status, p = event.kind if cycle.positions else "", cycle.verified and cycle.verified.p
                rows.append((*place, cycle.target_token, event.pieces[-1], status, p, None, None, at))
        return DataFrame(rows, columns=["lane", "cycle", "token", "piece", "status", "p", "q", "u", "at"])

    def _texts(self) -> dict[str, str]:
        texts = dict.fromkeys(self.header.lanes, "")
        for event in self.events:
            if isinstance(event, Committed) and event.lane in texts:
                texts[event.lane] += event.text
        return texts

    def summary(self) -> dict[str, Any]:
        """Return the settings, texts and figures of the run, ready for JSON. An unknown figure is None.

        `figures` come from `stats.summary`. `machine_busy` says whether other programs probably distorted the speed-up.
        `same_text` says whether all lanes wrote the same text; it is None for a single lane.
        """
        lane = self.header.lanes[0]
        started = start_of(self.events, lane)
        texts = self._texts()
        names = ("drafter", "k", "rule", "lossless", "prompt_tokens", "server")
        settings = {name: getattr(started, name) for name in names} | asdict(started.params) if started else {}
        if settings:
            settings["lossless"] = is_lossless(self.events, lane)
        comparison = Comparison.from_events(self.events)
        busy_before = self.header.machine.get("busy") is True and comparison.is_measured_here
        if started and started.server:
            settings["counted"] = comparison.speculative.counted
        return {
            "run": self.header.run,
            "source": self.header.source,
            "prompt": self.header.prompt,
            "settings": settings,
            "texts": texts,
            "same_text": len(set(texts.values())) == 1 if len(texts) > 1 else None,
            "figures": summary([comparison]),
            "machine_busy": busy_before or comparison.machine_busy,
        }

    def __repr__(self) -> str:
        return f"Trace({self.header.prompt[:MAX_EXCERPT]!r}, lanes {self.header.lanes}, {len(self.events)} events)"

    def _repr_html_(self) -> str:
        """Render the first lane's tokens and errors, with the settings and figures of the run."""
        lane, summary = self.header.lanes[0], self.summary()
        tokens = [pair for cycle in cycles(self.events, lane) for pair in cycle.shown()]
        errors = [event.reason for event in self.events if isinstance(event, Failed) and event.lane == lane]
        figures = {name: value for name, value in summary["figures"].items() if isinstance(value, int | float)}
        tokens += [(reason, "") for reason in errors]
        return draw_html(self.header.prompt, tokens, summary["settings"] | figures)

    def dumps(self) -> str:
        return self.header.line() + "".join(map(line, self.events))

    def save(self, path: str | Path) -> None:
        """Write a file. Raises OSError if that fails."""
        write_whole(Path(path), self.dumps())

    def check_not_empty(self) -> None:
        """Raise TraceError for a trace without a cycle, of which there is nothing to play or to audit."""
        if not any(isinstance(event, Committed) for event in self.events):
            raise TraceError("it holds no cycle")

    @classmethod
    def loads(cls, text: str) -> "Trace":
        if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
            raise TraceError("the trace is larger than {limit} MB", limit=MAX_BYTES // 1_000_000)
        lines = text.removeprefix("\ufeff").rstrip().split("\n")  # editors can add a byte order mark and blank lines
        if not text.strip():
            raise TraceError("the trace is empty")
        header = parse_header(parse_line(lines[0], 1))
        events, shape = list[Event](), ShapeCheck()
        for number, content in enumerate(lines[1:], start=2):
            data = parse_line(content, number)
            try:
                events.append(from_dict(data))
                shape.check(events[-1])
            except ValueError as error:
                reason = error.args[0] if len(str(error)) <= MAX_EXCERPT else str(error)[:MAX_EXCERPT]
                raise TraceError("line {number}: {reason}", number=number, reason=reason) from error
        return cls(header, tuple(events))

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a file. Raises TraceError if it is not a trace, OSError if it cannot be read."""
        try:
            return cls.loads(Path(path).read_bytes().decode())
        except UnicodeDecodeError as error:
            raise TraceError("the file is not UTF-8 text") from error


def live_header(prompt: str, models: dict[str, Any], lanes: tuple[str, ...], kind: str = "") -> TraceHeader:
    """Make the header of a run that starts now, on this machine. `models` are the facts of `Family.describe`."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    run, facts = uuid.uuid4().hex[:12], machine.describe() | {"busy": machine.busy()}
    return TraceHeader(run, "live", prompt, lanes, kind=kind, models=models, machine=facts, created=now)


def recording(folder: Path, kind: str, drafter: str) -> Path:
    """Return the path of a drafter's recording on one kind of text."""
    return folder / drafter.replace(":", ".") / f"{kind}.jsonl"


def printable(text: str) -> str:
    """Replace control characters, which models and servers can write, by their code points."""
    return CONTROL_CHARACTERS.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def draw_html(prompt: str, tokens: Iterable[tuple[str, str]], figures: dict[str, Any]) -> str:
    """Render `tokens`, pairs (piece, status). Plain tokens have the status "". Figures that are None are left out."""
    text = [f"<span>{escape(prompt)}</span>"]
    for piece, status in tokens:
        mark, style, visible = MARKS.get(status, ""), STYLES.get(status, ""), printable(piece).replace("\n", "↵")
        text.append(f'<span title="{status}" style="color:#000;{style}">{escape(visible)}<small>{mark}</small></span>')
    cells = {name: f"{x:.4g}" if isinstance(x, float) else str(x) for name, x in figures.items() if x is not None}
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in cells.items()]
    return f'<div style="white-space:pre-wrap">{"".join(text)}</div><table>{"".join(rows)}</table>'


def line(event: Event) -> str:
    return dump(to_dict(event))


def escaped(text: str) -> str:
    """Escape each "<" in JSON, so that a browser cannot take a token for markup."""
    return text.replace("<", "\\u003c")


def dump(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


def parse_line(content: str, number: int) -> dict[str, Any]:
    """Parse a line. Raises TraceError if it is too long, no JSON object, or has NaN, infinity or lone surrogates."""
    if len(content) > MAX_LINE:
        raise TraceError("line {number} is longer than {limit} characters", number=number, limit=f"{MAX_LINE:,}")
    try:
        data = json.loads(content)
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise TraceError("line {number} is not JSON", number=number) from error
    if not isinstance(data, dict):
        raise TraceError("line {number} is not an object", number=number)
    return data


def parse_header(data: dict[str, Any]) -> TraceHeader:
    if data.get("event") != "header":
        raise TraceError("the first line is not a trace header")
    schema = data.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= SCHEMA:
        values = {"schema": str(schema)[:20], "newest": SCHEMA}
        raise TraceError("the trace has schema {schema}; this version reads up to {newest}", **values)
    optional = {"kind": "", "models": {}, "machine": {}, "created": ""}
    fields: dict[str, Any] = {name: data.get(name, optional.get(name)) for name in FIELDS}
    for name, value in fields.items():
        if not isinstance(value, FIELDS[name]):
            raise TraceError("the header lacks {name!r}, or it is of the wrong type", name=name)
    if not 1 <= len(data["lanes"]) <= MAX_LANES:
        raise TraceError("the header must name 1 to {limit} lanes", limit=MAX_LANES)
    fields["lanes"] = tuple(map(str, data["lanes"]))
    return TraceHeader(**fields)  # of today's schema, as its events will be
