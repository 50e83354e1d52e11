"""One table of a run's settings: whoever takes some takes these, under these names, in this order."""

import inspect
from dataclasses import fields
from typing import Any

import pytest

from specdec.cli.run import run as command
from specdec.messages import Refused
from specdec.settings import RunRequest, Setting, SETTINGS
from specdec.types import SamplingParams
from specdec.ui import api
from specdec.ui.components.traces import for_links
from specdec.ui.request import as_typed, check, CHECKS, from_link
from specdec.ui.text import LANGUAGES, speaking, strings

# Programs call by place, too: what was there stays there.
RUN = "prompt drafter k temperature top_p top_k max_tokens seed stop rule target peer".split()
NUMBERS = [one for one in SETTINGS.values() if one.type_ in (int, float)]


def names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_whoever_takes_settings_takes_those_of_the_table() -> None:
    assert names(api.run) == [*SETTINGS]
    assert names(command)[: len(SETTINGS)] == [*SETTINGS]
    assert all(inspect.signature(command).parameters[one.name].default == one.default for one in NUMBERS)
    assert [one["name"] for one in for_links()] == [*SETTINGS]


def test_old_calls_keep_their_places_and_defaults() -> None:
    assert names(api.run)[: len(RUN)] == RUN
    given = {name: one.default for name, one in inspect.signature(api.run).parameters.items()}
    assert (given["k"], given["temperature"], given["max_tokens"], given["seed"]) == (0, 0.0, 64, 0)


def test_a_setting_is_of_the_sampling_or_of_the_race() -> None:
    drawing = {one.name for one in fields(SamplingParams)} - {"ignore_end"}  # for measurements alone
    assert {name for name, one in SETTINGS.items() if one.sampling} == drawing
    racing = {one.name for one in fields(RunRequest)} - {"params"}
    assert {name for name, one in SETTINGS.items() if not one.sampling} == racing
    asked = check("Once", "medusa", 3, 0.5, seed=4)
    assert asked.params == SamplingParams(0.5, seed=4) and (asked.drafter, asked.k) == ("medusa", 3)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_it_has_words_in_every_language_and_a_check(setting: Setting) -> None:
    for language in LANGUAGES:
        with speaking(language):
            words = strings("page")
            assert (setting.label or setting.name) in words["settings"]
            assert setting.type_ not in (int, float) or setting.name in words["names"]
    assert setting.type_ is not str or setting.name in CHECKS
    assert setting.help_with_bounds in api.documentation()


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda one: one.name)
def test_its_bounds_are_those_of_calls_and_links(setting: Setting) -> None:
    sent = {"prompt": "Once", "drafter": "draft_model"}
    for value in (setting.high, setting.low):
        assert check(**sent | {setting.name: setting.type_(value)})
        assert from_link({setting.name: f"{value}"})[0] == {setting.name: as_typed(setting, f"{value}")}
    for value in (setting.high + 1, setting.low - 1, "3", None, True):
        with pytest.raises(Refused):
            check(**sent | {setting.name: value})
