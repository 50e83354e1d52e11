"""`python -m specdec`, and the installed command `specdec`."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """The command's exit code; Ctrl-C is quiet while modules are imported, too."""
    try:
        from .cli import main as command

        return command(arguments)
    except KeyboardInterrupt:
        print("specdec: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
