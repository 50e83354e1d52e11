"""Suites of ours: which there are, and what stands beside transformers in them."""

import json
import subprocess
import sys
from importlib import import_module

import pytest
import torch

from specdec.bench import suites
from specdec.families.zoo import load
from tools.bench import __main__ as tool
from tools.bench import methods, peers
from tools.bench.options import SUITES


@pytest.mark.long
def test_the_report_of_a_family_stands_beside_transformers(capsys, monkeypatch, shallow) -> None:
    monkeypatch.setattr(methods, "PROMPTS", {"story": suites.PROMPTS["story"][:1]})
    monkeypatch.setattr(peers, "ASSISTED_K", (None, 2))
    asked = ["--suite", "embedded", "--target", shallow, "--tokens", "8", "--repeats", "1", "-k", "2"]
    assert tool.main(asked) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["peers"]["prompts_with_identical_text"] == "1 of 1"
    assert report["rows"]


def test_every_peer_writes_the_same_text() -> None:
    peer, prompt = peers.Peer(load("embedded", torch.float32)), suites.PROMPTS["story"][0]
    expected = peer.generate(prompt, 12)
    assert peer.assisted(2, prompt, 12) == peer.assisted(None, prompt, 12) == expected


SELDOM = {"gradio", "gradio_client", "playwright", "plotly", "starlette", "segno"}  # on a machine that is rented


@pytest.mark.long
def test_no_suite_needs_the_pages_packages_to_start() -> None:
    code = f"import sys, specdec.bench.suites, specdec.cli; print({SELDOM} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_suite_of_ours_has_a_report() -> None:
    assert all(callable(import_module(f"tools.bench.{module}").report) for module in SUITES.values())


def test_headlines_leave_looping_rows_out() -> None:
    def row(domain: str, speedup: float, repetition: float) -> dict[str, object]:
        place = {"drafter": "draft_model", "domain": domain, "temperature": 0.0}
        return place | {"measured_speedup": speedup, "repetition": repetition}

    rows = [row("story", 2.0, 0.0), row("code", 3.0, 0.05), row("facts", 9.0, 0.4)]
    assert methods.headline(rows, 0.0) == {"speedup": 2.5, "domains": {"story": 2.0, "code": 3.0}, "looping": ["facts"]}
    assert methods.headline(rows[2:], 0.0)["speedup"] is None
