"""A command line made from a dataclass: a field is an option, its metadata the help, its type what is read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, fields, MISSING
from pathlib import Path
from typing import Any, get_args, get_type_hints, TypeVar

Options = TypeVar("Options")


def option(default: Any, text: str, **more: Any) -> Any:
    """A field with its help. `more`: `choices`, or `positional=True`."""
    return field(default=default, metadata={"help": text, **more})


def run(command: Callable[[Options], int], options: type[Options], arguments: Sequence[str] | None, prog: str) -> int:
    """Read the options and run; the exit code. Bad options and ValueErrors are one sentence, and 2."""
    try:
        return command(options(**vars(parser(options, prog).parse_args(arguments))))
    except ValueError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{prog}: stopped", file=sys.stderr)
        return 130  # what a shell expects of Ctrl-C


def parser(options: type[Any], prog: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"python -m {prog}", description=options.__doc__)
    types = get_type_hints(options)
    for one in fields(options):
        kind, more = types[one.name], dict(one.metadata)
        several = kind == tuple[int, ...] or kind == tuple[str, ...]
        reader = next((each for each in (int, float, Path, str) if each in (kind, *get_args(kind))), str)
        if more.pop("positional", False):
            more |= {"nargs": "*", "action": Tuple, "default": one.default} if several else {}
            made.add_argument(one.name, type=reader, **more)
        elif kind is bool:
            made.add_argument(flag(one.name), action=argparse.BooleanOptionalAction, default=one.default, **more)
        else:
            more |= {"nargs": "+", "action": Tuple} if several else {}
            required = one.default is MISSING or (one.default is None and type(None) not in get_args(kind))
            made.add_argument(flag(one.name), type=reader, required=required, default=one.default, **more)
    return made


def flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


class Tuple(argparse.Action):
    """Several words after one option, as a tuple."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, tuple(values))
