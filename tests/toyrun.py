"""A small run, written by hand, for tests of the page: every token state, and pieces that no page likes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from specdec.events import (
    Candidate,
    Committed,
    Counted,
    Distribution,
    Drafted,
    Event,
    Failed,
    Finished,
    Position,
    Started,
    UNNAMED,
    Verified,
)
from specdec.methods import Choice
from specdec.traces.file import escaped, line, live_header, Trace, TraceHeader
from specdec.types import Kind, SamplingParams, Status

NASTY = ("<script>alert(1)</script>", "${alert(1)}", "{{value}}", "\u202eevil", "        ", "\n", "<0xF0>", "`")
PREFILL, DRAFT, PASS = 0.010, 0.001, 0.004
PARAMS = SamplingParams(temperature=0.8, max_tokens=24, seed=7)


def header(source: str = "recorded") -> TraceHeader:
    return TraceHeader(f"toy-{source}", source, "The old keeper <b>&", ("speculative", "plain"), kind="story")


def distribution(*pieces: str) -> Distribution:
    share = 1 / (len(pieces) + 1)
    return Distribution(tuple(Candidate(i, piece, share) for i, piece in enumerate(pieces)), share, 1.0)


def speculative(cycles: int = 6, k: int = 3, params: SamplingParams = PARAMS) -> Iterator[Event]:
    """Cycles accept 3, 2, 1, 0, 3, … of three drafts; the fifth drafts nothing."""
    lane, t, total = "speculative", PREFILL, 1
    yield Started(lane, "draft_model", k, params, 5)
    yield Committed(lane, 0, (1,), (" and",), 0, "bonus", " and", total, t)
    for cycle in range(1, cycles + 1):
        pieces = () if cycle == 5 else tuple(NASTY[(cycle + i) % len(NASTY)] for i in range(k))
        accepted = 0 if cycle == 5 else (k + 1 - cycle) % (k + 1)
        drafted = t + DRAFT * len(pieces)
        if pieces:
            ends = tuple(t + DRAFT * (i + 1) for i in range(k))
            yield Drafted(lane, cycle, tuple(range(k)), pieces, tuple(range(-1, k - 1)), t, drafted, ends)
        positions = tuple(position(i, piece, accepted) for i, piece in enumerate(pieces))
        yield Verified(lane, cycle, positions, drafted, drafted + PASS, distribution(" own"), 0.4)
        t, total = drafted + PASS, total + accepted + 1
        own, kind = f" own{cycle}", "bonus" if accepted == len(pieces) else "resampled"
        yield committed(lane, cycle, (*pieces[:accepted], own), accepted, kind, total, t)
    yield Finished(lane, "length", total, "", t, PREFILL, DRAFT * k * cycles, PASS * cycles, 0.0)


# Two guesses for the next token, three behind the first and one behind the second; then one more behind the very first.
PARENTS = (-1, -1, 0, 0, 0, 1, 2)
TREES: tuple[tuple[tuple[Status, ...], tuple[int, ...]], ...] = (
    (("rejected", "accepted", "discarded", "discarded", "discarded", "accepted", "discarded"), (1, 5)),
    (("accepted", "discarded", "rejected", "rejected", "rejected", "discarded", "discarded"), (0,)),
    (("rejected", "rejected", *["discarded"] * 5), ()),
)


def tree(rule: str = "rejection sampling", lossless: bool = True) -> Iterator[Event]:
    """Cycles over one tree: a path through a second sibling to a leaf, a path of one, nothing kept."""
    lane, t, total = "speculative", PREFILL, 1
    yield Started(lane, "medusa:tree", 3, PARAMS, 5, rule, lossless)
    yield Committed(lane, 0, (1,), (" and",), 0, "bonus", " and", total, t)
    for cycle, (statuses, path) in enumerate(TREES, start=1):
        pieces = tuple(f" t{node}" for node in range(len(PARENTS)))
        drafted = t + DRAFT
        yield Drafted(lane, cycle, tuple(range(7)), pieces, PARENTS, t, drafted, (drafted,) * 7)
        rows = zip(pieces, statuses, strict=True)
        judged = tuple(node_at(i, piece, status) for i, (piece, status) in enumerate(rows))
        yield Verified(lane, cycle, judged, drafted, drafted + PASS, distribution(" own"), 0.4)
        t, total = drafted + PASS, total + len(path) + 1
        kind = "bonus" if path and path[-1] not in PARENTS else "resampled"
        yield committed(lane, cycle, (*(pieces[i] for i in path), f" own{cycle}"), len(path), kind, total, t)
    yield Finished(lane, "length", total, "", t, PREFILL, DRAFT * 3, PASS * 3, 0.0, eager=None if lossless else "a toy")


def tree_trace(rule: str = "rejection sampling", lossless: bool = True) -> Trace:
    return Trace(header(), (*tree(rule, lossless), *plain(7)))


def plain(tokens: int = 15, params: SamplingParams = PARAMS) -> Iterator[Event]:
    lane, t = "plain", PREFILL
    yield Started(lane, "none", 0, params, 5)
    yield Committed(lane, 0, (1,), (" and",), 0, "bonus", " and", 1, t)
    for cycle in range(1, tokens):
        yield Verified(lane, cycle, (), t, t + PASS)
        t += PASS
        yield committed(lane, cycle, (f" p{cycle}",), 0, "bonus", cycle + 1, t)
    yield Finished(lane, "length", tokens, "", t, PREFILL, 0.0, PASS * tokens, 0.0)


def peer(cycles: int = 4) -> Iterator[Event]:
    """Drafts before it has read the prompt; every pass costs twice ours; the last cycle accepts nothing."""
    lane, t, total = "transformers", 0.0, 0
    yield Started(lane, "draft_model", 2, PARAMS, 5)
    for cycle in range(cycles):
        pieces, accepted = (f" d{cycle}", " <b>"), 0 if cycle == cycles - 1 else 2 - cycle % 2
        yield Drafted(lane, cycle, (0, 1), pieces, (-1, 0), t, t + DRAFT)
        judged = tuple(replace(position(i, piece, accepted), u=None) for i, piece in enumerate(pieces))
        yield Verified(lane, cycle, judged, t + DRAFT, t + DRAFT + 2 * PASS, distribution(" own"), 0.4)
        t, total = t + DRAFT + 2 * PASS, total + accepted + 1
        kind = "bonus" if accepted == 2 else "resampled"
        yield committed(lane, cycle, (*pieces[:accepted], f" t{cycle}"), accepted, kind, total, t)
    yield Finished(lane, "length", total, "", t, DRAFT + 2 * PASS, DRAFT * 3, 2 * PASS * 3, 0.0)


def peer_trace() -> Trace:
    lanes = ("speculative", "transformers", "plain")
    return Trace(replace(header(), lanes=lanes), (*events(), *peer()))


def server(counted: Counted | None = "exact", cycles: int = 4, lane: str = "speculative") -> Iterator[Event]:
    """As a server tells it: cycles accept 2, 0, 1, 2, … of two. Rejected tokens have no name; no q, no coin.

    Of sums alone only the accepted drafts are known. The plain lane drafts nothing.
    """
    t, total, text, sums = PREFILL, 1, " and", [0, 0]
    fates: tuple[Status, ...] = ("rejected", "discarded")
    yield Started(lane, "", 2, PARAMS, 5, server="vLLM 0.32.0")
    yield Verified(lane, 0, (), 0.0, t, distribution(" and"), 0.5)
    yield Committed(lane, 0, (1,), (text,), 0, "bonus", text, total, t)
    for cycle in range(1, cycles + 1):
        accepted = (2, 0, 1)[(cycle - 1) % 3] if lane == "speculative" else 0
        drafts = [
            Position(i, 10 + i, f" a{i}", "accepted", 0.5, None, None, target=distribution(" and"))
            for i in range(accepted)
        ]
        if lane == "speculative" and counted in ("exact", "merged"):
            drafts += [Position(i, UNNAMED, "", fates[i - accepted], None, None, None) for i in range(accepted, 2)]
        if drafts:
            tokens, pieces = zip(*((x.token, x.piece) for x in drafts), strict=True)
            yield Drafted(lane, cycle, tokens, pieces, tuple(range(-1, len(drafts) - 1)), t, t)
        yield Verified(lane, cycle, tuple(drafts), t, t + PASS, distribution(" and"), 0.4)
        t, total, sums = t + PASS, total + accepted + 1, [sums[0] + 2, sums[1] + accepted]
        tokens = (*range(10, 10 + accepted), 100 + cycle)
        pieces = (*(f" a{i}" for i in range(accepted)), f" own{cycle}")
        kind: Kind = "resampled" if len(drafts) > accepted else "bonus"
        text += "".join(pieces)
        yield Committed(lane, cycle, tokens, pieces, accepted, kind, "".join(pieces), total, t)
    told = sums if counted == "totals" else (None, None)
    yield Finished(lane, "end", total, text, t, PREFILL, 0.0, PASS * cycles, 0.0, None, counted, *told)


def server_trace(counted: Counted | None = "exact", beside: bool = False, source: str = "recorded") -> Trace:
    """`beside`: with a plain server's lane."""
    told = {"kind": "vLLM", "version": "0.32.0", "model": "target", "context": 512, "speculates": True, "k": 2}
    lanes = ("speculative", "plain") if beside else ("speculative",)
    models = {"server": told} | ({"plain_server": told | {"speculates": False, "k": None}} if beside else {})
    head = replace(header(source), run=f"served-{source}", lanes=lanes, models=models)
    return Trace(head, (*server(counted), *(server(None, 8, "plain") if beside else ())))


def position(i: int, piece: str, accepted: int) -> Position:
    status: Status = "accepted" if i < accepted else "rejected" if i == accepted else "discarded"
    p, q = (0.6, 0.5) if i < accepted else (0.1, 0.5)
    distributions = {"target": distribution(piece, " x"), "draft": distribution(piece, " y")}
    return Position(i, i, piece, status, p, q, 0.3 if i <= accepted else None, 0.7, **distributions)


def node_at(i: int, piece: str, status: Status) -> Position:
    coin, both = None if status == "discarded" else 0.3, distribution(piece)
    return Position(i, i, piece, status, 0.2, 1.0, coin, 0.2, both, both)


def committed(lane: str, cycle: int, pieces: tuple[str, ...], kept: int, kind: str, total: int, at: float) -> Committed:
    which: Kind = "bonus" if kind == "bonus" else "resampled"
    return Committed(lane, cycle, tuple(range(len(pieces))), pieces, kept, which, "".join(pieces), total, at)


def events(cycles: int = 6, tokens: int = 15) -> list[Event]:
    both = [*speculative(cycles), *plain(tokens)]
    return sorted(both, key=lambda event: getattr(event, "at", getattr(event, "end", 0.0)))


def trace(source: str = "recorded") -> Trace:
    return Trace(header(source), tuple(events()))


class Engine:
    """In place of the engine's process: `race`, the toy run by default, whatever is asked for. Measures nothing."""

    def __init__(self, race: Callable[..., Iterator[Any]] | None = None, models: dict[str, Any] | None = None) -> None:
        self.race = race or (lambda request: iter(events()))
        self.models = models or {}
        self.targets: list[str] = []  # that ran, in turn

    def start(self) -> None:
        """Called as the page is served."""

    def call(self, name: str, *arguments: Any) -> Iterator[Any]:
        if name != "run":
            return
        request, _, kind, translate = arguments
        self.targets.append(request.target)
        drafter = "draft_model" if request.drafter == "default" else request.drafter
        choice = Choice(drafter, request.k or 4, 1.5)
        yield choice
        lanes = ("speculative", *["transformers"] * request.peer, "plain")
        head = live_header(request.prompt, self.models, lanes, kind).line()
        request = replace(request, drafter=choice.drafter, k=choice.k)
        for event in self.race(request):
            if isinstance(event, Failed):
                event = replace(event, reason=translate(event.reason))
            yield None if event is None else escaped(head + line(event))
            head = head if event is None else ""


def written(answers: Iterable[Any]) -> list[str]:
    """The lines of a session's answers, without heartbeats."""
    return [answer.text for answer in answers if answer.name == "lines" and answer.text]
