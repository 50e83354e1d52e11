"""`python -m specdec`: the command `specdec`."""

import os
import sys

if __name__ == "__main__":
    # Python puts the folder that it is started in first, and what it needs itself it has imported from there already
    # (`python -P` and the installed command do not). Nothing of ours shall be.
    with_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path[0] != with_package and os.path.exists(os.curdir) and sys.path[0] == os.getcwd():
        del sys.path[0]

    from .cli import main

    raise SystemExit(main())
