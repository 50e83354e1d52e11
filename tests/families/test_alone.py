"""A target of a visitor's own without a draft: what it can do by itself."""

import json

from specdec.families import zoo
from tests.families import toypairs


def test_who_drafts_is_a_copy_until_something_was_trained(tmp_path) -> None:
    target, draft = (toypairs.model_into(tmp_path / str(layers), layers, template=None) for layers in (2, 1))
    families = {"quantised": zoo.load_pair(target), "suffix": zoo.load_pair(target, dtype=zoo.dtype_of("int8"))}
    config = json.loads((target / "config.json").read_text()) | {"exit_layers": [1]}
    (target / "config.json").write_text(json.dumps(config))
    families |= {"draft_model": zoo.load_pair(target, draft), "early_exit": zoo.load_pair(target)}
    for name, family in families.items():
        assert family.default_drafter == family.wrapped("adaptive") == name and family.wrapped("none") == ""
