"""`specdec serve`: what it starts, it ends. A small script stands for vLLM; the real one is asked in tests/export."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specdec import cli
from specdec.servers import vllm_pair as serve

# Answers /health as vLLM does, with a child in its group as vLLM has. FAKE says how it goes wrong; it writes its
# command line and both process ids into FAKE_NOTES.
FAKE = """#!{python}
import json, os, signal, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
how = os.environ.get("FAKE", "")
speculative = "--speculative-config" in sys.argv
if how == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the child inherits it: deaf from its first moment
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
name = "speculative" if speculative else "plain"
notes = {{"arguments": sys.argv[1:], "processes": [os.getpid(), child.pid]}}
path = os.path.join(os.environ["FAKE_NOTES"], name)
with open(path + ".half", "w") as file:
    json.dump(notes, file)
os.rename(path + ".half", path)
print("loading \\x1b[31mweights", flush=True)
if how == "dies" and not speculative:
    sys.exit("RuntimeError: no memory left")
if how == "dies later" and not speculative:
    threading.Timer(1, os._exit, [3]).start()
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *words):
        pass
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the false vLLM notes how it was called."""
    script = tmp_path / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text(FAKE.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setenv("SPECDEC_VLLM", str(script))
    monkeypatch.setenv("FAKE_NOTES", str(tmp_path))
    return tmp_path


def free_ports() -> int:
    """The first of two free ports that follow each other, outside the range from which systems give ports out."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def noted(folder: Path, name: str) -> dict[str, list[str]]:
    found = json.loads((folder / name).read_text())
    assert isinstance(found, dict)
    return found


def alive(process: object) -> bool:
    """Whether it runs; what has ended and waits for its parent to look does not."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# Whoever runs the tests may ignore signals (a shell does for what it has in the background), and children inherit that.
HEARING = """import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.argv.insert(1, "serve")
runpy.run_module("specdec", run_name="__main__")
"""


def started(folder: Path, *options: str, how: str = "") -> tuple[subprocess.Popen[str], int]:
    """`specdec serve` as a process of its own."""
    port = free_ports()
    run = subprocess.Popen(
        [sys.executable, "-c", HEARING, "--port", str(port), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"FAKE": how},
        cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    return run, port


def until_ready(run: subprocess.Popen[str]) -> str:
    """What it printed, up to the last line of its invitation."""
    assert run.stdout is not None
    lines = []
    for line in run.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    return "".join(lines)


def all_processes(folder: Path) -> list[str]:
    return [process for name in ("speculative", "plain") for process in noted(folder, name)["processes"]]


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")


@needs_proc
@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGTERM, signal.SIGHUP))]
)
def test_both_are_announced_and_ended(fake: Path, number: signal.Signals) -> None:
    run, port = started(fake, "--target", "some/model", "--draft", "a/draft", "-k", "3", "--", "--seed", "7")
    printed = until_ready(run)
    speculative, plain = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"
    assert f"--server {speculative} --plain {plain}" in printed
    assert f"SPECDEC_SERVERS={speculative},{plain} python app.py" in printed
    ours = noted(fake, "speculative")["arguments"]
    assert ours[:2] == ["serve", "some/model"] and ours[-4:] == ["--seed", "7", *serve.SHARED]
    assert '"model": "a/draft"' in ours[ours.index("--speculative-config") + 1]
    assert '"num_speculative_tokens": 3' in ours[ours.index("--speculative-config") + 1]
    theirs = noted(fake, "plain")["arguments"]
    assert "--speculative-config" not in theirs and theirs[-4:] == ours[-4:]
    run.send_signal(number)
    assert run.wait(60) == 0
    assert not any(map(alive, all_processes(fake)))


@needs_proc
def test_who_does_not_end_when_asked_is_killed_at_the_second_ctrl_c(fake: Path) -> None:
    run, _ = started(fake, "--target", "some/model", "--method", "ngram", how="deaf")
    until_ready(run)
    run.send_signal(signal.SIGINT)
    assert run.stderr is not None
    assert any("ending both" in line for line in run.stderr)
    time.sleep(0.5)  # it has begun to wait for them
    assert run.poll() is None and all(map(alive, all_processes(fake)))
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 0
    assert not any(map(alive, all_processes(fake)))


@needs_proc
@pytest.mark.parametrize("how", [pytest.param("dies", marks=pytest.mark.long), "dies later"])
def test_when_one_dies_its_last_words_are_told_and_the_other_ends(fake: Path, how: str) -> None:
    run, _ = started(fake, "--target", "some/model", "--method", "ngram", how=how)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "specdec: the plain server ended, with exit code" in told
    assert told.rstrip().endswith("RuntimeError: no memory left" if how == "dies" else "loading [31mweights")
    assert not any(map(alive, all_processes(fake)))


def test_the_embedded_family_is_exported_and_served(fake: Path) -> None:
    run, _ = started(fake)
    until_ready(run)
    arguments = noted(fake, "speculative")["arguments"]
    target = Path(arguments[1])
    try:
        assert (target / "config.json").is_file()
        assert str(target.with_name("draft_model")) in arguments[arguments.index("--speculative-config") + 1]
        assert arguments[-len(serve.SMALL) :] == serve.SMALL
    finally:
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    assert not target.exists()


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--draft", "a/draft"], "--draft belongs to a --target"),
        (["--target", "some/model"], "say what drafts for --target"),
        (["--target", "some/model", "--method", "ngram", "--", "--port=9"], "--port belongs before"),
    ],
)
def test_what_makes_no_sense_is_refused(
    fake: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert cli.main(["serve", "--port", str(free_ports()), *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"specdec: {sentence}") and told.count("\n") == 1


def test_a_port_that_is_taken_is_named(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port + 1))
        other.listen()
        assert cli.main(["serve", "--port", str(port)]) == 2
    assert f"port {port + 1} is taken" in capsys.readouterr().err


def test_without_vllm_there_is_a_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SPECDEC_VLLM", raising=False)
    monkeypatch.setenv("PATH", "")
    assert cli.main(["serve"]) == 2
    told = capsys.readouterr().err
    assert "pip install vllm" in told and told.count("\n") == 1
    monkeypatch.setenv("SPECDEC_VLLM", "no-such-command")
    assert cli.main(["serve"]) == 2
    assert "SPECDEC_VLLM names no-such-command" in capsys.readouterr().err
