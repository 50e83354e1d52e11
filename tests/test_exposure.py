"""Who can reach the page: by where it listens, a row of one table."""

import re
from pathlib import Path

import pytest

from specdec import cli, exposure

HOSTS = {"own": "127.0.0.1 127.9.9.9 localhost ::1 [::1]", "network": "0.0.0.0 :: 192.0.2.7"}


@pytest.mark.parametrize(("host", "row"), [(host, row) for row, hosts in HOSTS.items() for host in hosts.split()])
def test_where_the_page_listens_says_who_can_reach_it(host: str, row: str) -> None:
    assert exposure.name_for(host) == row


@pytest.mark.parametrize(
    ("words", "said", "row"),
    [
        ([], {}, "own"),
        ([], {"GRADIO_SERVER_NAME": "0.0.0.0"}, "network"),
        (["--host", "127.0.0.1"], {"GRADIO_SERVER_NAME": "0.0.0.0"}, "own"),
        (["--host", "0.0.0.0"], {}, "network"),
        (["--class"], {}, "class"),
        (["--host", "0.0.0.0", "--public"], {}, "public"),
        (["--class"], {"SPACE_ID": "somebody/specdec"}, "public"),
        ([], {"SPECDEC_PUBLIC": "0"}, "own"),
        ([], {"SPECDEC_PUBLIC": "1"}, "public"),
    ],
)
def test_the_command_line_says_it_before_the_page_is_built(
    monkeypatch, words: list[str], said: dict[str, str], row: str
) -> None:
    for name in ("SPECDEC_PUBLIC", "SPECDEC_PAIR", "SPECDEC_PAIRS", "SPACE_ID", "GRADIO_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(exposure, "host", exposure.Host.from_environment())
    monkeypatch.setenv("SPECDEC_DEBUG", "1")
    monkeypatch.setattr("specdec.ui.build.build", lambda **_: pytest.fail(exposure.host.exposure))
    with pytest.raises(pytest.fail.Exception, match=f"^{row}$"):
        cli.main(["app", *words])
    assert exposure.host.exposure in exposure.TABLE


DOCUMENTED = {
    "prompt, characters": "prompt",
    "new tokens": "tokens",
    "K": "k",
    "seconds of a run": "seconds",
    "people in the queue": "waiting",
    "runs a minute, from an address": "runs_of_address",
    "models": "any_pair",
    "bytes of a request": "body",
    "names it answers to": "any_host",
}


def test_the_documented_table_is_this_one() -> None:
    docs = (Path(__file__).parents[1] / "docs" / "hosting.md").read_text(encoding="utf-8")
    table = {
        cells[0]: cells[1:] for cells in re.findall(r"^  \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", docs, re.M)
    }
    assert table.keys() == DOCUMENTED.keys()
    assert {*DOCUMENTED.values(), "in_browser"} == exposure.OWN.__dataclass_fields__.keys()
    for label, field in DOCUMENTED.items():
        for told, row in zip(table[label], exposure.TABLE.values(), strict=True):
            value = getattr(row, field)
            assert told == f"{int(value):,}" if not isinstance(value, bool) else (told == "any") is value, (label, told)
