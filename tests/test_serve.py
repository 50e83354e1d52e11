"""The bounds for strangers, asked from outside of an app that was started in each of its ways."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[1]
SET_BY_HOSTS = ("SPECDEC_PUBLIC", "SPECDEC_PAIR", "SPECDEC_PAIRS", "SPACE_ID", "GRADIO_SERVER_NAME")
WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "--public": (["--host", "0.0.0.0", "--public"], {}),
    "SPECDEC_PUBLIC": ([], {"SPECDEC_PUBLIC": "1"}),
    "a Space": ([], {"SPACE_ID": "somebody/specdec"}),
}
TOO_MUCH = {
    "k": ({"k": 9}, "from 0 to 8"),
    "max_tokens": ({"max_tokens": 129}, "from 1 to 128"),
    "prompt": ({"prompt": "x" * 2_004}, "2,000"),
    "a folder": ({"target": str(ROOT)}, "one of: embedded"),
}


@contextlib.contextmanager
def started(options: list[str], environment: dict[str, str]) -> Iterator[httpx.Client]:
    own = {name: value for name, value in os.environ.items() if name not in SET_BY_HOSTS}
    command = [sys.executable, "-u", "app.py", *options]
    with subprocess.Popen(
        command, cwd=ROOT, env=own | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as app:
        try:
            printed = ""
            for line in app.stdout:
                printed += line
                if found := re.search(r"http://\S+:(\d+)", line):
                    break
            else:
                pytest.fail(f"the app ended: {printed}")
            with httpx.Client(base_url=f"http://127.0.0.1:{found[1]}/", timeout=60) as client:
                yield client
        finally:
            app.terminate()


def asked(client: httpx.Client, sent: dict[str, Any]) -> dict[str, Any]:
    event = client.post("gradio_api/call/v2/run", json=sent).json()["event_id"]
    told = client.get(f"gradio_api/call/run/{event}").text
    return json.loads(json.loads(re.findall(r"^data: (.*)$", told, re.M)[-1])[0])


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_the_public_bounds_hold_however_the_app_is_started(way: str) -> None:
    with started(*WAYS[way]) as client:
        for field, (sent, said) in TOO_MUCH.items():
            refused = asked(client, {"prompt": "Once", "max_tokens": 4, **sent})
            assert said in refused.get("error", ""), (field, refused)
