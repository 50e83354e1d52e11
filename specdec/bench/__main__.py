"""`python -m specdec.bench`: another name of `specdec bench`."""

import sys

from ..cli import main

if __name__ == "__main__":
    raise SystemExit(main(["bench", *sys.argv[1:]]))
