"""Pairs by name, what a host allows, and who drafts for a target without a draft."""

import pytest

from specdec import exposure
from specdec.families import presets, zoo
from specdec.families.presets import ModelNames, parse
from specdec.lanes.race import race_lanes
from specdec.messages import Refused
from specdec.methods import ROUNDED
from specdec.paths import FAMILY
from specdec.settings import RunRequest
from specdec.types import SamplingParams
from tests.families import hubserver, toypairs
from tests.shallow import rewrite
from tests.tokens import ids


def test_a_pair_is_written(tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    here = str(tmp_path)
    assert parse("a/b + c/d") == ModelNames("pair", "a/b", ("c/d",))
    assert parse(f"{here} + c/d.e-1") == ModelNames("pair", here, ("c/d.e-1",))
    assert parse("a/b + c/d + e/f") == parse("a/b + c/d", ["e/f"]) == ModelNames("pair", "a/b", ("c/d", "e/f"))
    assert parse(f"embedded + {here}") == parse("embedded", [here]) == ModelNames("pair", "embedded", (here,))
    assert parse("a/b").models == ("a/b",) and parse("a/b + c/d").models == ("a/b", "c/d")
    none = ["", "a", "a/b/c", "../b", "/nowhere", "a/b +", " + a/b", "a/b + ../../c", "-/x", str(FAMILY)]
    for name in (*none, "a/b + ~c/d", "a/b + embedded", " embedded"):
        assert parse(name) == ModelNames("family", name) and not parse(name).models
        assert parse(name, ["../c"]) == ModelNames("pair", name, ("../c",))  # loading refuses it


def test_the_embedded_target_has_names_that_fix_its_precision() -> None:
    for name, precision in {"embedded": None, **ROUNDED}.items():
        assert parse(name) == ModelNames("embedded", name) and not parse(name).models
        assert parse(name).precision == parse(f"{name} + a/b").precision == precision


def test_a_host_says_what_may_be_asked_for(monkeypatch) -> None:
    said: dict[str, str]
    for said, pair, allowed in (
        ({}, "embedded", None),
        ({"SPACE_ID": "somebody/specdec"}, "embedded", ()),
        ({"SPACE_ID": "somebody/specdec", "SPECDEC_PAIR": "e/f"}, "e/f", ("e/f",)),
        ({"SPECDEC_PAIR": "e/f", "SPECDEC_PAIRS": "a/b + c/d, smollm2,"}, "e/f", ("e/f", "a/b + c/d", "smollm2")),
    ):
        with monkeypatch.context() as patch:
            for name in ("SPECDEC_PAIR", "SPECDEC_PAIRS", "SPACE_ID"):
                patch.delenv(name, raising=False)
            for name, value in said.items():
                patch.setenv(name, value)
            patch.setattr(exposure, "host", exposure.Host.from_environment())
            assert (presets.host_pair(), presets.allowed_pairs()) == (pair, allowed)


def test_a_pair_runs_from_the_cache(tmp_path, monkeypatch) -> None:
    hubserver.use_cache(monkeypatch, tmp_path / "cache")
    target, draft = toypairs.pair_into(tmp_path)
    hubserver.put(tmp_path / "cache", "some/target", target)
    hubserver.put(tmp_path / "cache", "some/draft", draft)
    family = zoo.load("some/target + some/draft")
    assert family.describe()["chat"] == ["<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"]
    assert {"draft_model", "prompt_lookup", "none"} <= family.drafters.keys()
    events = list(race_lanes(family, RunRequest("Once upon", "draft_model", 4, SamplingParams(max_tokens=12))))
    spoken, plain = ids(events), ids(events, "plain")
    assert spoken == plain and len(plain) == 12


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch) -> None:
    target, draft = toypairs.pair_into(tmp_path)
    monkeypatch.setattr(zoo.machine, "free_memory", lambda: 1000)
    with pytest.raises(Refused, match=r"target-2l needs about 0\.0 GB of memory here, and 0\.0 GB are free"):
        zoo.load_pair(target, draft)


def test_who_drafts_is_a_copy_until_something_was_trained(tmp_path) -> None:
    target, draft = (toypairs.model_into(tmp_path / str(layers), layers, template=None) for layers in (2, 1))
    families = {"quantised": zoo.load_pair(target), "suffix": zoo.load_pair(target, dtype=zoo.dtype_of("int8"))}
    rewrite(target, {"exit_layers": [1]})
    families |= {"draft_model": zoo.load_pair(target, draft), "early_exit": zoo.load_pair(target)}
    for name, family in families.items():
        assert family.default_drafter == family.wrapped("adaptive") == name and family.wrapped("none") == ""
    with pytest.raises(Refused, match="there is no drafter 'draft_model'"):
        families["suffix"].new_drafter("adaptive:draft_model", 64)
