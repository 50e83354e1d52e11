"""`python -m specdec.export vllm --out DIR`: a family as another engine reads it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    from ..cli import main as command

    return command(["export", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    raise SystemExit(main())
