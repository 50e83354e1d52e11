"""For all tests: nothing asks the network; and where CI runs, a browser test that was skipped is a failure."""

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests start many processes, and each would compile all modules
sys.dont_write_bytecode = False
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Each of xdist's processes has a core. Threads of one process wait for each other, so more would slow down all.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
# Ports of its own for each process: where two take the same one at once, Gradio goes through the others slowly.
os.environ["GRADIO_SERVER_PORT"] = str(10_000 + os.getpid() % 200 * 100)
gc.disable()  # until the tests: imports leave nothing to collect
os.environ["RUST_BACKTRACE"] = "0"  # a panic that a test makes would read the debug information of all of Python


LONG_FILES = ("tests/page/browser", "tests/test_", "tests/training", "tests/lanes", "tests/proof")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort long files to the front, so that at the end no process waits for another."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG_FILES))


def pytest_xdist_auto_num_workers() -> int:
    from specdec.figures import machine

    return machine.cores()  # each process imports for a quarter of a minute, so more of them would be slower


@pytest.fixture(autouse=True, scope="session")
def quick_process() -> None:
    os.getloadavg = lambda: (0.0, 0.0, 0.0)  # no figure is struck out because other tests run
    gc.enable()
    gc.freeze()  # what was imported stays: no collection needs to look through it
    gc.set_threshold(100_000, 20, 50)  # enumeration makes millions of small things, and few circles


@pytest.fixture(scope="session")
def shallow(tmp_path_factory) -> str:
    from tests.shallow import write

    return str(write(tmp_path_factory.mktemp("families") / "shallow"))


@pytest.fixture(scope="module")
def engine(shallow: str) -> Iterator[Any]:
    from specdec import Engine

    with Engine(shallow, dtype="float32", device="cpu") as engine:
        yield engine


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report.nodeid for report in terminalreporter.stats.get("skipped", []) if "browser" in report.nodeid]
    if skipped and os.environ.get("CI"):
        terminalreporter.write_line(f"browser tests were skipped: {', '.join(skipped)}", red=True)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED
