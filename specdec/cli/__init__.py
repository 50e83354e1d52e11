"""The command `specdec`.

If the first word is none of these, it is a prompt for `run`. An error is printed as one sentence. The exit code is 2 if
the command was wrong, and 1 if it failed. For `certify`, `doctor`, `prove` and `trace`, 1 means that they found an
error in what they judge, and 2 that they could not judge. With SPECDEC_DEBUG=1 in the environment, the traceback is
printed first.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches

import typer
from typer.exceptions import TyperException
from typer.main import get_group

from .. import __version__
from ..messages import Refused
from . import commands, judges
from .render import tell
from .run import run

NEAR = 0.65  # similarity of a word to a command's name that makes it a typing error
OUTPUT_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF}  # of a write to a file that has no name here
JUDGES = [command.__name__ for command in judges.COMMANDS]  # exit code 1 is a verdict, so no failure may end with it
STOPPED = 130  # the usual exit code after Ctrl-C

app = typer.Typer(help=__doc__, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
for command in (run, *judges.COMMANDS, *commands.COMMANDS):
    app.command()(command)


@app.callback(invoke_without_command=True)
def version(wanted: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True)) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    is_judge = words[0] in JUDGES
    try:
        code = get_group(app).main(with_default_command(words), "specdec", standalone_mode=False)
        sys.stdout.flush()
        if code == STOPPED:  # Typer returns this code after Ctrl-C, and prints nothing
            tell("stopped")
        return code or 0
    except TyperException as error:
        tell(error.format_message())
        return 2
    except ModuleNotFoundError as error:  # a package of an optional extra, `app` or `bench`, is missing
        tell(f'that needs {error.name}, which is not installed: pip install "specdec-watch[app]" installs all of it')
        return 2
    except Refused as error:
        tell(str(error))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        tell("stopped")
        return STOPPED
    except (BrokenPipeError, SystemExit) as end:  # after a broken pipe, Typer raises SystemExit(1)
        cause = end.__context__ if isinstance(end, SystemExit) else end
        if not isinstance(cause, BrokenPipeError):
            raise
        discard_output()  # the reader, `head` for example, has ended
        return 2 if is_judge else 0
    except OSError as error:
        what = error.filename
        if what is None and error.errno in OUTPUT_ERRORS:
            discard_output()
            what = "the output cannot be written"
        tell(f"{what or type(error).__name__}: {error.strerror or error}")
        return 2 if is_judge else 1
    except Exception:
        if not is_judge:
            raise
        traceback.print_exc()
        return 2


def with_default_command(words: Sequence[str]) -> list[str]:
    """Add `run` before a prompt. Raises Refused for a word that is nearly the name of a command."""
    names = get_group(app).commands
    if words[0] in (*names, "--help", "--version"):
        return list(words)
    if near := get_close_matches(words[0], names, 1, NEAR):
        raise Refused(f"there is no command {words[0]!r}; write {near[0]}, or for that prompt: run {words[0]}")
    return ["run", *words]


def discard_output() -> None:
    """Discard the buffered output, so that Python prints no error about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
