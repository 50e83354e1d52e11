"""`python -m specdec`, and the installed command `specdec`."""

import os
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
    # Python puts the folder that it is started in first, and what it needs itself it has imported from there already
    # (`python -P` and the installed command do not). Nothing of ours shall be: till here, the package imports no more.
    with_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path[0] != with_package and os.path.exists(os.curdir) and sys.path[0] == os.getcwd():
        del sys.path[0]
    raise SystemExit(main())
