"""What a stranger may name where the page listens beyond this machine: the owner's servers and pairs, by every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stub import Reply, Stub

from specdec.exposure import EXPOSURE, limits
from specdec.servers.connect import LISTED
from specdec.types import SamplingParams
from specdec.ui import api, menu, request, session, watch
from specdec.ui.components import engine
from specdec.ui.tabs import race
from specdec.ui.text import speaking, strings

EXPOSED = ("network", "class", "public")
ONE, OTHER = "http://127.0.0.1:8000", "http://127.0.0.1:8001"


@pytest.fixture(params=EXPOSED)
def exposed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPECDEC_PUBLIC", "SPACE_ID", "SPECDEC_PAIR", "SPECDEC_PAIRS", LISTED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(EXPOSURE, request.param)
    assert not limits().any_server and not limits().any_pair


@pytest.fixture
def server() -> Iterator[Stub]:
    with Stub(lambda _: Reply.of({"data": []})) as stub:
        yield stub


# ---- servers ----


def raced(address: str, plain: str = "") -> list[session.News]:
    return list(watch.run(watch.WatchRequest("Once", SamplingParams(), address, plain)))


def test_a_server_that_is_not_listed_is_asked_by_no_door(exposed: None, server: Stub, monkeypatch: Any) -> None:
    news = raced(server.address)
    assert news[-1].kind == "error" and "SPECDEC_SERVERS=http" in news[-1].text
    monkeypatch.setenv(LISTED, ONE)
    for news in (raced(server.address), raced(ONE, server.address)):
        assert news[-1].kind == "error" and "only the servers that its owner lists" in news[-1].text
    with Stub(lambda _: Reply.of({"data": []})) as listed:
        monkeypatch.setenv(LISTED, listed.address)
        assert "only the servers" in raced(listed.address, server.address)[-1].text
        assert not server.asked and not listed.asked
        assert "names no model" in raced(listed.address)[-1].text and listed.asked


def test_the_fields_offer_the_listed_ones_and_say_where_the_list_is(exposed: None, monkeypatch: Any) -> None:
    monkeypatch.setenv(LISTED, f"{ONE},{OTHER}")
    for language in ("en", "zh"):
        with speaking(language):
            field: Any = engine.address_field("address", *engine.server_choices(), "")
            assert LISTED in strings("page")["settings"]["engine"]["listed_info"]
        assert field.choices == [(ONE, ONE), (OTHER, OTHER)] and not field.allow_custom_value


# ---- pairs ----

PAIR = {
    "check": lambda family: request.check("Once", family=family),
    "a link": lambda family: refused(request.from_link({"family": family})),
    "the menu": lambda family: refused(({}, race.switch(family, "draft_model", "rejection")[0]["info"])),
    "run": lambda family: refused_answer(race.run("Once", family=family)),
    "compare": lambda family: refused_answer(api.answering(api.compare)("Once", family=family)),
    "explain": lambda family: refused_answer(api.answering(api.explain)(prompt="Once", family=family)),
}


def refused(told: tuple[dict[str, Any], str]) -> None:
    good, said = told
    if "family" not in good:
        raise request.InputError(said)


def refused_answer(answers: Iterator[Any]) -> None:
    (only,) = answers
    raise request.InputError((json.loads(only) if isinstance(only, str) else only)["error"])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text("{}")
    return str(tmp_path)


@pytest.mark.parametrize("door", PAIR)
def test_a_pair_that_is_not_listed_is_loaded_by_no_door(
    exposed: None, door: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_worker", None)  # nothing reaches the engine
    monkeypatch.setattr(session.hub, "fetch", lambda *_: pytest.fail("something was fetched"))
    for family in (folder, f"{folder} + {folder}", "owner/model"):
        with pytest.raises(request.InputError, match=r"one of: embedded|!"):
            PAIR[door](family)
    monkeypatch.setenv("SPECDEC_PAIRS", "owner/model")
    assert "owner/model" in menu.families() and not menu.is_offered(folder)
    assert request.check_family("owner/model") == "owner/model"


def test_ones_own_page_takes_any(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSURE, "own")
    monkeypatch.delenv("SPECDEC_PAIRS", raising=False)
    assert request.check("Once", "suffix", family=folder).family == folder and engine.server_choices()[1]
