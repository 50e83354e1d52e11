"""What the app stands on: known holes, what fits together, licences; and that nothing leaves the machine."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from importlib import metadata
from pathlib import Path

from .figures import at_least, Figure, none, skipped
from .load import app

ROOT = Path(__file__).resolve().parents[2]
# Those under which one may use, change and pass on; of the weak copylefts, those that ask it of their own files only.
FREE = re.compile(
    r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla Public|Unlicense|Zlib|HPND|CC0|Public Domain|0BSD|"
    r"NVIDIA Proprietary|LicenseRef-NVIDIA",
    re.I,
)
GUARD = """
import os, socket, sys
HERE = (None, "localhost", "127.0.0.1", "0.0.0.0", "::1", b"127.0.0.1")
def guard(event, args):
    if event == "socket.connect":
        address = args[1]
        away = isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1", "localhost", "0.0.0.0"))
    else:
        away = event == "socket.getaddrinfo" and args[0] not in HERE
    if away and os.environ.get("TOLD"):
        with open(os.environ["TOLD"], "a") as told:
            told.write(repr(args[:2]) + "\\n")
sys.addaudithook(guard)
"""
UP = """import fcntl, socket, struct
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x49))
"""


def count(long: bool) -> list[Figure]:
    return [fits(), *licences(), *holes(long), *alone(long)]


def fits() -> Figure:
    """Of the packages that the app needs; what else is installed here is not asked about."""
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    ours = {name.lower().replace("_", "-") for name in needed()}
    said = [line for line in done.stdout.splitlines() if line.split(" ")[0].lower().replace("_", "-") in ours]
    return none("packages that do not fit together (pip check)", len(said))


def needed() -> set[str]:
    """What requirements.txt brings, and what that needs in turn."""
    names, left = set[str](), [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.strip()]
    while left:
        wanted = left.pop()
        name = re.split(r"[\s\[<>=!~;(]", wanted.strip())[0]
        if not name or name.lower() in names or "extra ==" in wanted:
            continue
        try:
            left += metadata.requires(name) or []
            names.add(name.lower())
        except metadata.PackageNotFoundError:
            continue
    return names


def licences() -> list[Figure]:
    names = needed()
    strange = []
    for name in names:
        facts = metadata.metadata(name)
        told = [facts.get("License-Expression") or "", (facts.get("License") or "")[:200]]
        told += [one for one in facts.get_all("Classifier") or [] if one.startswith("License")]
        if not FREE.search(" ".join(told)):
            strange.append(name)
    return [
        at_least("packages whose licence was read", len(names), 40),
        Figure("licences that are not free", ", ".join(strange) or "0", "0", not strange),
    ]


def holes(long: bool) -> list[Figure]:
    """Known vulnerabilities of what the app needs, as the Python Packaging Advisory Database has them."""
    name, target = "known vulnerabilities (pip-audit)", "0"
    if not importlib.util.find_spec("pip_audit"):
        return [skipped(name, target, "pip-audit is not installed")]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        told = sorted(f"{one}=={metadata.version(one).partition('+')[0]}" for one in needed())
        file.write_text("\n".join(told))
        command = [
            sys.executable,
            "-m",
            "pip_audit",
            "--no-deps",
            "--disable-pip",
            "-r",
            str(file),
            "-f",
            "json",
            "--progress-spinner",
            "off",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            found = [one for one in json.loads(done.stdout)["dependencies"] if one.get("vulns")]
        except (ValueError, KeyError, subprocess.TimeoutExpired):
            return [skipped(name, target, "the database cannot be reached from here")]
    said = ", ".join(f"{one['name']} {one['version']}: {one['vulns'][0]['id']}" for one in found)
    return [Figure(name, said or "0", target, not found)]


def alone(long: bool) -> list[Figure]:
    """The app where there is no way out: it serves its page and runs, and asks for nothing elsewhere."""
    name, target = "requests off the machine", "0"
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        return [skipped(name, target, "a network namespace needs rights that this user lacks")]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(GUARD)
        told = Path(folder, "told")
        command = ["unshare", "-rn", sys.executable, "-c", UP + "from tests.trust.supply import inside\ninside()"]
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "TOLD": str(told)}
        environment = {
            key: value for key, value in environment.items() if key not in ("HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES")
        }
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        asked = told.read_text().splitlines() if told.exists() else []
    worked = done.stdout.strip().endswith("a whole run")
    said = [Figure(one[:150], "", "", False) for one in dict.fromkeys(asked)][:5]
    return [
        Figure("a run without a network", "yes" if worked else done.stderr[-300:], "yes", worked),
        none(name, len(asked)),
        *said,
    ]


def inside() -> None:
    """In the namespace: the page, its scripts, a run."""
    with app() as (url, _):
        page = urllib.request.urlopen(url, timeout=600).read().decode()
        assert "specdec" in page
        for script in re.findall(r'(?:src|href)="(\./assets/[^"]+)"', page)[:20]:
            urllib.request.urlopen(url + script[2:], timeout=600).read()
        asked = urllib.request.Request(
            f"{url}gradio_api/call/v2/compare",
            json.dumps({"prompt": "Once", "max_tokens": 4}).encode(),
            {"Content-Type": "application/json"},
        )
        event = json.loads(urllib.request.urlopen(asked, timeout=600).read())["event_id"]
        told = urllib.request.urlopen(f"{url}gradio_api/call/compare/{event}", timeout=600).read().decode()
    print("a whole run" if '"same_text": true' in told else told[-300:])
