import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.drafters.draft_model import DraftModelDrafter
from specdec.loop import generate
from specdec.proof.toys import TableModel
from specdec.task import Task
from specdec.traces import file as trace
from specdec.traces.file import Trace, TraceError, TraceHeader
from specdec.types import MAX_SEED, MIN_SEED, SamplingParams

TARGET = TableModel(8, seed=1)
PARAMS = SamplingParams(temperature=1.0, max_tokens=12, seed=1)


def example() -> Trace:
    drafter = DraftModelDrafter(TableModel(8, seed=2, base=TARGET))
    odd = ["<script>", "${x}", "\n", " a", "<0xF0>", "日本", '"', "\u2028"]
    task = Task(TARGET, (1,), PARAMS, drafter, 3, piece=lambda token: odd[token])
    return Trace(TraceHeader("r1", "live", "a prompt\nwith \u2028 lines", ("speculative",)), tuple(generate(task)))


EXAMPLE = example()
FINISHED = '{"event":"finished","lane":"a","reason":"end","tokens":1,"text":"","at":1,%s}'
FINISHED %= '"prefill":1,"draft":1,"verify":1,"other":1'
HEADER = '{"event":"header","schema":1,"run":"a","source":"live","prompt":"p",%s}\n'


def test_where_there_is_no_room_no_part_of_a_trace_stays(tmp_path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError):
            EXAMPLE.save(tmp_path / "trace.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not any(tmp_path.iterdir())


def test_a_trace_with_unknown_keys_still_opens() -> None:
    lines = EXAMPLE.dumps().split("\n")
    lines[0] = json.dumps({**json.loads(lines[0]), "later": 1})
    lines[2] = json.dumps({**json.loads(lines[2]), "later": 1})
    assert Trace.loads("\n".join(lines)).events == EXAMPLE.events


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("not json\n", "line 1 is not JSON"),
        ("[1]\n", "line 1 is not an object"),
        ('{"event":"started"}\n', "not a trace header"),
        ('{"event":"header","schema":99}\n', "schema 99"),
        ('{"event":"header","schema":true}\n', "schema True"),
        ('{"event":"header","schema":1,"run":"a","source":"live","prompt":"p"}\n', "lacks 'lanes'"),
        (HEADER % '"lanes":[]', "1 to 3 lanes"),
        (HEADER % '"lanes":["a"],"models":[]', "'models', or it is of the wrong type"),
        (HEADER % '"lanes":["a"],"models":{"x":NaN}', "line 1 is not JSON"),
        (HEADER % '"lanes":["a"],"models":{"x":1e999}', "line 1 is not JSON"),
        (HEADER % '"lanes":["a"],"kind":"\\ud800"', "line 1 is not JSON"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        Trace.loads(text)


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"exploded"}',
        '{"event":"finished","lane":"plain"}',
        FINISHED.replace('"a"', "7"),
        FINISHED.replace('"end"', '"bored"'),
        FINISHED.replace('"at":1', '"at":NaN'),
        FINISHED.replace("1,", f"{2**64},", 1),
        FINISHED.replace('"at":1', f'"at":{10**400}'),
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(TraceError, match="line 2"):
        Trace.loads(EXAMPLE.header.line() + line + "\n")


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_trace_opens_or_is_refused_and_nothing_else(data: st.DataObject) -> None:
    text = EXAMPLE.dumps()
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.sampled_from(["", "0", '"', "{", "null", "\n", "-"])) + text[at + 1 :]
    try:
        Trace.loads(damaged)
    except TraceError as error:
        assert str(error)


def test_a_mark_before_and_blank_lines_behind_do_no_harm() -> None:
    assert Trace.loads("\ufeff" + EXAMPLE.dumps().replace("\n", "\r\n") + "\n\n").events == EXAMPLE.events


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(trace, "MAX_BYTES", 1_000_000)
    (tmp_path / "large.jsonl").write_text("x" * 1_000_001)
    with pytest.raises(TraceError, match="larger than 1 MB"):
        Trace.load(tmp_path / "large.jsonl")
    with pytest.raises(TraceError, match="larger than 1 MB"):
        Trace.loads("é" * 500_001)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parents": [0, 0, 1]}, "do not form a tree"),
        ({"parents": [-1, 2, 0]}, "do not form a tree"),
        ({"parents": [-1, 0]}, "do not form a tree"),
        ({"parents": [-2, 0, 1]}, "do not form a tree"),
        ({"tokens": [1] * 300, "pieces": ["x"] * 300, "parents": [-1] * 300}, "more than 256 tokens"),
        ({"event": "failed", "where": "drafter", "reason": "", "fatal": False, "at": 0}, "not the drafted tokens"),
    ],
)
def test_what_would_hang_or_trip_a_reader_is_refused(change: dict[str, object], reason: str) -> None:
    lines = [json.loads(line) for line in EXAMPLE.dumps().split("\n")[:-1]]
    next(line for line in lines if line["event"] == "drafted").update(change)
    with pytest.raises(TraceError, match=reason):
        Trace.loads("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("seed", [2**53 + 1, MAX_SEED, MIN_SEED])
def test_whatever_seed_a_run_may_have_its_trace_can_be_read(seed: int) -> None:
    params = dataclasses.replace(PARAMS, seed=seed)
    run = Trace(EXAMPLE.header, tuple(generate(Task(TARGET, (1,), params, k=0))))
    assert Trace.loads(run.dumps()).events == run.events
