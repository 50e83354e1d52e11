"""`python -m specdec`: the command `specdec`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
