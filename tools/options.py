"""Make a command line from a dataclass. Each field becomes an option with its type, default and help."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, fields, MISSING
from pathlib import Path
from typing import Any, get_args, get_type_hints, TypeVar

Options = TypeVar("Options")


def option(default: Any, text: str, **more: Any) -> Any:
    """Make a dataclass field with a help text. `more` can be `choices` or `positional=True`."""
    return field(default=default, metadata={"help": text, **more})


def run(command: Callable[[Options], int], options: type[Options], arguments: Sequence[str] | None, prog: str) -> int:
    """Parse the options, run the command, and return its exit code. After a ValueError, print it and return 2."""
    try:
        given = vars(parser(options, prog).parse_args(arguments)).items()
        return command(options(**{name: tuple(value) if isinstance(value, list) else value for name, value in given}))
    except ValueError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{prog}: stopped", file=sys.stderr)
        return 130  # the usual exit code after Ctrl-C


def parser(options: type[Any], prog: str) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog=f"python -m {prog}", description=options.__doc__)
    types = get_type_hints(options)
    for field_ in fields(options):
        name, default, kind, more = field_.name, field_.default, types[field_.name], dict(field_.metadata)
        is_tuple = kind == tuple[int, ...] or kind == tuple[str, ...]
        convert = next((each for each in (int, float, Path, str) if each in (kind, *get_args(kind))), str)
        if more.pop("positional", False):
            more |= {"nargs": "*", "default": default} if is_tuple else {}
            result.add_argument(name, type=convert, **more)
        elif kind is bool:
            result.add_argument(flag(name), action=argparse.BooleanOptionalAction, default=default, **more)
        else:
            more |= {"nargs": "+"} if is_tuple else {}
            required = default is MISSING or (default is None and type(None) not in get_args(kind))
            result.add_argument(flag(name), type=convert, required=required, default=default, **more)
    return result


def flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
