"""If the page listens beyond this machine, strangers may name only the owner's pairs, in any way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specdec import exposure
from specdec.exposure import Host, limits
from specdec.families import hub
from specdec.messages import Refused
from specdec.ui import api, menu, request
from specdec.ui.components import form
from specdec.ui.session import session

PAIR = {
    "check": lambda target: request.check("Once", target=target),
    "a link": lambda target: refused(request.from_link({"target": target})),
    "the menu": lambda family: refused(({}, form.switch(family, "draft_model", "rejection")[0]["info"])),
    "run": lambda target: refused(({}, json.loads(*api.run("Once", target=target))["error"])),
}


def refused(told: tuple[dict[str, Any], str]) -> None:
    good, said = told
    if "target" not in good:
        raise Refused(said)


@pytest.mark.parametrize("row", ["network", "class", "public"])
@pytest.mark.parametrize("door", PAIR)
def test_a_pair_that_is_not_listed_is_loaded_by_no_door(row: str, door: str, tmp_path, monkeypatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    folder = str(tmp_path)
    monkeypatch.setattr(exposure, "host", Host(row))
    assert not limits().any_pair
    monkeypatch.setattr(session, "process", None)  # nothing reaches the engine
    monkeypatch.setattr(hub, "fetch", lambda *_: pytest.fail("something was fetched"))
    for family in (folder, f"{folder} + {folder}", "owner/model"):
        with pytest.raises(Refused, match=r"one of: embedded|!"):
            PAIR[door](family)
    monkeypatch.setattr(exposure, "host", Host(row, pairs=("owner/model",)))
    assert "owner/model" in menu.targets() and not menu.is_offered(folder)
    assert request.check_target("owner/model") == "owner/model"
