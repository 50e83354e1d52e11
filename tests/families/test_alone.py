"""A target of a visitor's own without a draft: what it can do by itself."""

import json

from specdec.events import Drafted
from specdec.families import zoo
from specdec.lanes.default import choose
from specdec.lanes.race import race_lanes
from specdec.settings import RunRequest
from specdec.types import SamplingParams
from tests.families import toypairs
from tests.tokens import ids


def test_a_target_alone_adapts_and_keeps_its_text(tmp_path) -> None:
    alone = zoo.load_pair(toypairs.model_into(tmp_path / "target", 2))
    params = SamplingParams(max_tokens=24, ignore_end=True)
    choice = choose(alone, "adaptive")
    events = list(race_lanes(alone, RunRequest("one two three one two", "adaptive", choice.k, params)))
    assert ids(events) == ids(events, "plain") and len(ids(events)) == params.max_tokens
    assert any(isinstance(event, Drafted) and event.tokens for event in events)


def test_who_drafts_is_a_copy_until_something_was_trained(tmp_path) -> None:
    target, draft = (toypairs.model_into(tmp_path / str(layers), layers, template=None) for layers in (2, 1))
    families = {"quantised": zoo.load_pair(target), "suffix": zoo.load_pair(target, dtype=zoo.dtype_of("int8"))}
    config = json.loads((target / "config.json").read_text()) | {"exit_layers": [1]}
    (target / "config.json").write_text(json.dumps(config))
    families |= {"draft_model": zoo.load_pair(target, draft), "early_exit": zoo.load_pair(target)}
    for name, family in families.items():
        assert family.default_drafter == family.wrapped("adaptive") == name and family.wrapped("none") == ""
