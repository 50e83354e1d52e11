"""`python -m tests.trust.guided`: texts for the reader of traces that coverage leads to (atheris, libFuzzer)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

RUNS = 60_000


def main() -> None:
    with atheris.instrument_imports(include=["specdec"]):
        from specdec.traces.audit import audit
        from specdec.traces.file import Trace, TraceError
    sys.path[:0] = [str(Path(__file__).parents[1])]
    import toyrun

    def read(data: bytes) -> None:
        try:
            trace = Trace.loads(data.decode("utf-8", "surrogateescape"))
        except TraceError:
            return
        audit(trace.header.lanes, trace.events)

    with tempfile.TemporaryDirectory() as corpus:
        for name, run in (("chain", toyrun.trace()), ("tree", toyrun.tree_trace()), ("server", toyrun.server_trace())):
            Path(corpus, name).write_text(run.dumps(), encoding="utf-8")
        atheris.Setup([sys.argv[0], f"-runs={RUNS}", "-max_len=12000", "-seed=1", "-timeout=60", corpus], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
