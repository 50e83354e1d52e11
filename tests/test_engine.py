"""One object from a name to figures: models in memory, drafters and rules as objects, and nothing left behind."""

import itertools
import json
import re
import shutil
import subprocess
import sys
import time
import weakref
from asyncio import CancelledError
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import transformers
from transformers import AutoTokenizer

from specdec import Drafter, Engine, Event, Proposal, SamplingParams
from specdec.engine import run_in_thread, RunFailed
from specdec.events import Drafted
from specdec.families import hub, zoo
from specdec.lanes import probe
from specdec.messages import Refused, Step
from specdec.methods import METHODS
from specdec.models.quantised import QuantisedCopy
from specdec.paths import FAMILY
from specdec.rules import BlockVerification, make_rule
from specdec.sampling import Sampler
from specdec.types import Verdict
from specdec.verify import RejectionSampling
from tests.families import toypairs
from tests.tokens import ids

ROOT = Path(__file__).resolve().parents[1]
PROMPT = "The old lighthouse keeper"
SHORT = SamplingParams(max_tokens=12)


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory) -> tuple[Any, Any, Any]:
    """A Llama of transformers, a draft for it, and their tokenizer."""
    folders = toypairs.pair_into(tmp_path_factory.mktemp("pair"))
    target, draft = (transformers.AutoModelForCausalLM.from_pretrained(folder) for folder in folders)
    return target, draft, AutoTokenizer.from_pretrained(folders[0])


class Echo(Drafter):
    name = "echo"

    def propose(self, tokens: Sequence[int], k: int, *_: Any) -> Proposal:
        return Proposal.chain([tokens[-1]] * k) if k else Proposal()


class Biased(RejectionSampling):
    def verify(self, proposal: Proposal, rows: torch.Tensor, sampler: Sampler) -> Verdict:
        return super().verify(proposal, rows.roll(1, -1), sampler)


def test_a_pair_takes_further_drafts(monkeypatch) -> None:
    fetched = list[str]()
    monkeypatch.setattr(hub, "is_here", lambda name: False)
    monkeypatch.setattr(hub, "fetch", lambda names, device: (fetched.append(name) for name in names))
    monkeypatch.setattr(zoo, "load_pair", lambda *names, **_: pytest.fail(str(names)))
    with pytest.raises(pytest.fail.Exception, match=re.escape("('a/t', 'a/d', 'a/d2')")):
        Engine("a/t + a/d", "a/d2", device="cpu").prepare()
    with pytest.raises(pytest.fail.Exception):
        Engine("a/t", "a/d", device="cpu").stream(PROMPT)  # fetches what it needs, as a race does
    assert fetched == ["a/t", "a/d", "a/d2", "a/t", "a/d"]


def test_a_race_is_a_trace_with_text_and_figures(engine) -> None:
    seen: list[Event] = []
    run = engine.race(PROMPT, "draft_model", 3, params=SHORT, on_event=seen.append)
    assert tuple(seen) == run.events
    assert run.text == run.summary()["texts"]["speculative"] == run.summary()["texts"]["plain"] and run.text.strip()
    assert run.speedup == pytest.approx(run.figures["measured_speedup"], rel=1e-3)
    assert run.figures["tau"] >= 1
    frame = run.to_dataframe()
    assert list(frame.columns) == ["lane", "cycle", "token", "piece", "status", "p", "q", "u", "at"]
    written = frame[(frame.lane == "speculative") & ~frame.status.isin(["rejected", "discarded"])]
    assert "".join(written.piece) == run.text and list(written.token) == ids(run.events, "speculative")
    undrafted = frame[(frame.lane == "plain") | (frame.cycle == 0)]
    assert set(undrafted.status) == {""} and undrafted.p.notna().all()
    assert set(frame.status) - {""} <= {"accepted", "rejected", "discarded", "resampled", "bonus"}


def test_models_in_memory_run_as_they_are(in_memory, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(probe, "file", lambda: tmp_path / "costs.json")
    monkeypatch.setattr("specdec.engine.native.library", lambda: pytest.fail("compiles what it does not use"))
    target, draft, tokenizer = in_memory
    messages = [{"role": "user", "content": "Say <|im_end|> twice."}, {"role": "assistant", "content": "No."}]
    messages += [{"role": "user", "content": " Why? "}]
    with Engine(target, draft, tokenizer=tokenizer, device="cpu") as engine:
        engine.prepare("none")
        tokens = engine.models.encode(messages)
        assert tokens[:3] == tokenizer.apply_chat_template(messages, return_dict=False)[:3]
        assert tokens.count(tokenizer.eos_token_id) == 3  # the control token in the message stays text
        (asked,) = (torch.tensor([tokens]),)
        own = target.generate(asked, max_new_tokens=12, do_sample=False)[0, len(tokens) :].tolist()
        for prompt in (messages, tokens):
            run = engine.race(prompt, "draft_model", 3, params=SHORT)
            assert ids(run.events, "speculative") == ids(run.events, "plain") == own
        assert engine.models.target.model is target
        assert engine.prepare().speedup > 0 and not probe.file().exists()
        own = target.generation_config
        engine.race(PROMPT, "prompt_lookup", 3, peer=True, params=SHORT)
        assert target.generation_config is own


def test_a_drafter_and_a_rule_can_be_objects(engine) -> None:
    plain = ids(engine.stream(PROMPT, "none", params=SHORT))
    run = engine.race(PROMPT, Echo(), 2, rule=RejectionSampling(), params=SHORT)
    assert ids(run.events, "speculative") == plain and run.figures["alpha"] is not None
    assert {len(event.tokens) for event in run.events if isinstance(event, Drafted)} == {1, 2}
    run = engine.race(PROMPT, Echo(), 2, rule=Biased(), params=SHORT)
    assert ids(run.events, "speculative") != plain == ids(run.events, "plain")  # it does not bias its own control
    with pytest.raises(ValueError, match="a list is no drafter"):
        engine.race(PROMPT, [1], 2)
    with pytest.raises(Refused, match=r"there is no rule 'luck'.*rejection.*typical"):
        make_rule("luck")
    with pytest.raises(ValueError, match="a Echo is no rule"):
        engine.race(PROMPT, "none", rule=Echo())
    with pytest.raises(ValueError, match=r"This rule judges chains only, and eagle3:tree makes trees"):
        engine.race(PROMPT, "eagle3:tree", rule=BlockVerification())


def test_a_run_that_breaks_off_raises_and_keeps_what_there_is(engine, monkeypatch) -> None:
    forward, left = engine.models.target.forward, iter(range(6))

    def breaks(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None:
            raise OSError("the cable is out")
        return forward(*arguments, **options)

    monkeypatch.setattr(engine.models.target, "forward", breaks)
    with pytest.raises(RunFailed, match="broke off: OSError: the cable is out") as caught:
        engine.race(PROMPT, "none", params=SHORT)
    assert len(ids(caught.value.trace.events, "plain")) >= 2


def test_a_loaded_engine_needs_its_files_no_more(tmp_path) -> None:
    for name in ("draft_model", "tokenizer"):
        shutil.copytree(FAMILY / name, tmp_path / "draft", dirs_exist_ok=True)
    with Engine("embedded", tmp_path / "draft", device="cpu") as engine:
        engine.prepare("draft_model", 2)
        shutil.rmtree(tmp_path / "draft")
        assert ids(engine.stream(PROMPT, "draft_model", 2, params=SHORT))


def test_two_engines_at_once_and_the_callers_threads(engine, shallow) -> None:
    before, expected = torch.get_num_threads(), ids(engine.stream(PROMPT, "none", params=SHORT))
    with Engine(shallow, dtype="float32", device="cpu") as other:
        engine.models.resources.threads, other.models.resources.threads = 1, 2
        runs = [each.stream(PROMPT, "draft_model", 3, params=SHORT) for each in (engine, other)]
        events: tuple[list[Any], list[Any]] = ([], [])
        for pair in itertools.zip_longest(*runs):
            for seen, event in zip(events, pair, strict=True):
                seen += [event] if event else []
            assert torch.get_num_threads() == before
    assert ids(events[0]) == ids(events[1]) == expected


def test_a_copy_is_made_once_while_preparing(shallow, monkeypatch) -> None:
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        copy, steps = QuantisedCopy(engine.models.target), list[Step]()
        engine.models.drafters["quantised"] = zoo.LoadedMethod(METHODS["quantised"], copy)
        monkeypatch.setattr("specdec.engine.REPORT_EVERY_S", 0.001)
        engine.prepare("quantised", 4, on_step=steps.append)
        assert "_model" in vars(copy) and (steps[-1].name, steps[-1].done) == ("load", 1)
        monkeypatch.setattr("specdec.engine.REPORT_EVERY_S", 60.0)
        engine.prepare("quantised", 4, on_step=lambda step: pytest.fail(f"{step.name}, though all is there"))


def test_work_that_cannot_be_stopped_gives_signs_of_life_until_it_ends(monkeypatch) -> None:
    monkeypatch.setattr("specdec.engine.REPORT_EVERY_S", 0.001)
    steps = list[Step]()

    def stop(step: Step) -> None:
        steps.append(step)
        raise CancelledError

    with pytest.raises(CancelledError):
        run_in_thread("load", lambda report: time.sleep(0.1), stop)
    assert len(steps) > 1


def test_a_closed_engine_gives_its_memory_back(shallow, monkeypatch) -> None:
    engine = Engine(shallow, dtype="float32", device="cpu")
    target, freed = weakref.ref(engine.models.target), []
    engine.race(PROMPT, "prompt_lookup", 3, peer=True, max_tokens=2)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: freed.append(target() is None))
    engine.close()
    assert freed == [True]


def test_each_step_of_preparing_is_told_from_its_beginning_to_its_end(shallow, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(probe, "file", lambda: tmp_path / "costs.json")
    monkeypatch.setattr("specdec.engine.REPORT_EVERY_S", 0.01)
    monkeypatch.setattr("specdec.engine.native.library", lambda: time.sleep(0.1))
    steps = list[Step]()
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        engine.prepare(on_step=steps.append)
    ends = [[*each][-1] for _, each in itertools.groupby(steps, key=lambda step: step.name)]
    assert [step.name for step in ends] == ["compile", "load", "measure"]
    assert all(step.done == step.total > 0 for step in ends)


def test_costs_are_measured_once_and_known_to_the_next_engine(shallow, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(probe, "file", lambda: tmp_path / "costs.json")
    monkeypatch.setattr(probe.machine, "busy", lambda: False)
    monkeypatch.setattr(probe, "tune_threads", Mock(side_effect=[1, 2]))  # noisily
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        unknown = engine.prepare(measure=False)
        assert (unknown.drafter, unknown.k, unknown.speedup) == ("draft_model", 4, 0.0)
        choice = engine.prepare()
        assert choice.speedup > 0 and engine.prepare(on_step=lambda step: pytest.fail(f"{step.name} again")) == choice
        assert engine.prepare(k=2, peer=True).drafter == "draft_model"
        assert engine.prepare("suffix", 2, peer=True).drafter == "suffix"
    monkeypatch.setattr("specdec.lanes.probe.measure_costs", lambda *_: pytest.fail("measured again"))
    with Engine(shallow, dtype="float32", device="cpu") as again:
        assert again.prepare(measure=False) == choice
    (tmp_path / "costs.json").write_text("[", encoding="utf-8")
    with Engine(shallow, dtype="float32", device="cpu") as third:
        assert third.prepare(measure=False) == unknown


def test_costs_of_another_version_are_left(shallow, tmp_path, monkeypatch) -> None:
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        models = engine.models
    monkeypatch.setattr(probe, "file", lambda: tmp_path / "costs.json")
    for values in ({"draft": 0.1}, {"passes": [1.0, 1.1]}, {"draft": 0.1, "passes": 1.0}, [0.1]):
        (tmp_path / "costs.json").write_text(json.dumps({probe.key(models, "draft_model"): values}), encoding="utf-8")
        models.costs.clear()
        probe.recall(models)
        assert models.costs == {}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"temperature": "hot"}, "temperature must be a number, not 'hot'"),
    ({"max_tokens": 8.0}, "max_tokens must be a whole number, not 8.0"),
    *(({"stop": value}, f"stop must be a tuple of strings, not {value!r}") for value in ("END", 5, None, ["a"], (1,))),
    ({"stop": ("\ud800",)}, "half of a character"),
    ({"drafter": "magic", "k": 2}, "there is no drafter 'magic'"),
    *(
        ({"prompt": prompt}, "A prompt is a text")
        for prompt in ([1, 10**9], 5, None, [{"role": "user", "content": []}])
    ),
    ({"prompt": [{"role": "user", "content": "Hi"}]}, "no chat template"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=lambda value: str(value)[:40])
def test_what_cannot_run_is_one_sentence(engine, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)):
        engine.race(**{"prompt": PROMPT, "drafter": "none", **change})


def test_what_is_no_model_is_one_sentence(in_memory) -> None:
    for arguments, sentence in (
        ({"target": in_memory[0]}, "name the tokenizer of a model in memory"),
        ({"target": 7, "tokenizer": in_memory[2]}, "a int cannot be a model here"),
        ({"target": "embedded", "draft": in_memory[1]}, "name both target and draft"),
        ({"dtype": "bf16"}, "there is no precision 'bf16'"),
        ({"tokenizer": in_memory[2]}, "a named model has its own tokenizer"),
        ({"target": in_memory[0], "tokenizer": in_memory[2], "dtype": "float32"}, "a precision of its own"),
        ({"target": "embedded:int8 + a/d", "dtype": "bfloat16"}, "a precision of its own"),
        ({"target": in_memory[0], "tokenizer": in_memory[2], "device": "cuda"}, "the model in memory is on cpu"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Engine(**{"device": "cpu", **arguments}).models  # noqa: B018


PROGRAM = """
from specdec import Choice, Drafter, Engine, Event, Proposal, SamplingParams, Step, Trace

engine = Engine("embedded", device="cpu")
steps: list[Step] = []
engine.prepare(on_step=steps.append)
choice: Choice = engine.prepare(temperature=0.8)
reveal_type(choice.drafter)
run = engine.race("Once upon a time", temperature=0.8, max_tokens=8)
reveal_type(run)
reveal_type(run.speedup)
for event in engine.stream([1, 2, 3], drafter="none", k=4, params=SamplingParams(max_tokens=4)):
    reveal_type(event)


class Echo(Drafter):
    name = "echo"

    def propose(self, tokens: object, k: int, params: SamplingParams, sampler: object) -> Proposal:
        return Proposal()


again: Trace = engine.race([{"role": "user", "content": "Hi"}], Echo(), 2)
engine.close()
"""


# No type of these packages is among those that a program sees, and to read them takes most of a minute.
UNREAD = "[mypy]\n[mypy-torch.*,transformers.*,numpy.*]\nfollow_imports = skip\n"


@pytest.mark.long
def test_mypy_knows_the_types_of_a_users_program(tmp_path) -> None:
    """Of a package as the wheel has it, whose files `test_packaging.py` lists, with the one that says it is typed."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "unread.ini").write_text(UNREAD, encoding="utf-8")
    (site := tmp_path / "site").mkdir()
    (site / "specdec").symlink_to(ROOT / "specdec")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=unread.ini", "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": "", "PYTHONPATH": str(site), "PATH": ""},
        capture_output=True,
        text=True,
    )
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert done.returncode == 0, done.stdout
    drafter = "str | specdec.drafters.base.Drafter"
    assert types[:3] == [drafter, "specdec.traces.file.Trace", "float | None"] and "specdec.events.Drafted" in types[3]
