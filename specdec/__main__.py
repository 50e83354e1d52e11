"""Run the command: `python -m specdec`, or the installed `specdec`."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code. Ctrl-C prints no traceback, even while modules are imported."""
    try:
        from .cli import main as command

        return command(arguments)
    except KeyboardInterrupt:
        print("specdec: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
