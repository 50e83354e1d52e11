"""`specdec run "Once upon a time"`: one race in the terminal, as coloured text and figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from ..events import Event, Failed
from ..grammar import check
from ..methods import check_asked, EMBEDDED, EXIT, known, METHODS, RULES
from ..traces.file import Header
from ..types import check_schema, MAX_GRAMMAR, SamplingParams, TranslatableText
from .commands import KEY, Precision
from .render import as_lines, as_text

DEFAULTS = SamplingParams()


def run(
    prompt: Annotated[str, Argument(help="the text to continue", show_default=False)],
    drafter: Annotated[str, Option(help="its name [default: draft_model, or what --draft brings]")] = "",
    rule: Annotated[str, Option(help=f"{', '.join(RULES)}; typical is lossy")] = RULES[0],
    k: Annotated[int, Option("-k", help="tokens drafted per cycle")] = 4,
    temperature: Annotated[float, Option(help="0 is greedy")] = 0.8,
    top_k: Annotated[int, Option(help="0 is off")] = DEFAULTS.top_k,
    top_p: Annotated[float, Option(help="1 is off")] = DEFAULTS.top_p,
    max_tokens: Annotated[int, Option()] = DEFAULTS.max_tokens,
    seed: Annotated[int, Option()] = DEFAULTS.seed,
    stop: Annotated[list[str], Option(help="a string that ends the text; may be repeated")] = [],  # noqa: B006
    grammar: Annotated[
        str | None, Option(help="a regular expression that the whole new text has to match, or a JSON schema")
    ] = None,
    json_schema: Annotated[
        Path | None, Option(help="instead: a file with a JSON schema that the new text has to be a value of")
    ] = None,
    family: Annotated[
        str,
        Option(help="'embedded', 'tuned' (its target tuned on edits), or a folder with target/ and tokenizer/"),
    ] = EMBEDDED,
    target: Annotated[str | None, Option(help="instead of a family: a folder, a GGUF file, a name on the Hub")] = None,
    draft: Annotated[
        list[str], Option(help="a draft model, EAGLE-3 head or Medusa heads for --target; may be repeated")
    ] = [],  # noqa: B006
    universal: Annotated[bool, Option("--universal", help="draft models may have a tokenizer of their own")] = False,
    exit_layer: Annotated[int, Option(help="offer early_exit of --target at this layer (Llama, Qwen, …)")] = 0,
    dtype: Annotated[
        Precision | None,
        Option(help="of the target, another distribution in each; int8: its matrices [default: by its size]"),
    ] = None,
    device: Annotated[Literal["auto", "cpu", "cuda"], Option(help="cuda: an NVIDIA GPU; auto: if it is there")] = "cpu",
    peer: Annotated[Literal["transformers"] | None, Option(help="one more lane: its own assisted generation")] = None,
    server: Annotated[
        str | None, Option(help="instead of our engine: the address of a vLLM, SGLang or llama.cpp server to watch")
    ] = None,
    plain: Annotated[str | None, Option(help="with --server: one that serves the same without speculation")] = None,
    key_env: Annotated[
        str, Option(help="with --server: the environment's variable that holds its key, if it wants one")
    ] = KEY,
    as_json: Annotated[bool, Option("--json", help="print the trace, one JSON object a line")] = False,
    save: Annotated[Path | None, Option(help="also keep the run as a recorded trace (.jsonl)")] = None,
    kind: Annotated[str, Option(help="with --save: what the prompt is (story, code, facts, …)")] = "",
) -> int:
    """One race in the terminal: speculative and plain decoding of a prompt, as coloured text and figures."""
    if target is not None and not target.strip():
        raise ValueError("--target is empty; name a folder, a GGUF file or a model on the Hub, or leave it out")
    if target is None and (draft or exit_layer):
        raise ValueError("--draft and --exit-layer belong to a --target")
    if universal and not draft:
        raise ValueError("--universal is for a --draft with another tokenizer than the --target")
    if save is not None:
        check_place(save)
    if json_schema is not None:
        if grammar is not None:
            raise ValueError("--grammar and --json-schema say the same thing twice; leave one of the two out")
        check_schema(grammar := text_of(json_schema))
    params = SamplingParams(temperature, top_k, top_p, max_tokens, seed, tuple(stop), grammar=grammar)
    check_asked(prompt, drafter, k, rule)
    if drafter and known(drafter) is None:
        raise ValueError(f"there is no drafter {drafter!r}; choose from {', '.join(METHODS)}")
    if grammar is not None:
        check(grammar)
    if server is None and (plain is not None or key_env != KEY):
        raise ValueError("--plain and --key-env belong to a --server")
    if server is not None:
        if target is not None or drafter or peer or rule != RULES[0]:
            raise ValueError("with --server, the server has its own models, drafter and rule; leave those options out")
        if grammar is not None:
            raise ValueError("a grammar is for our own engine; a --server is watched without one")
        from .watch import watched

        header, told = watched(prompt, server, plain, key_env, params, kind, as_json)
        return kept_as(save, header, told)
    from ..families import zoo  # after the arguments are known to be good
    from ..lanes.race import race
    from ..traces import file as trace

    number = zoo.dtype_of(dtype)
    if target is not None:
        models = zoo.load_pair(
            target, *draft, exit_layer=exit_layer, universal=universal, dtype=number, pickles=True, device=device
        )
    else:
        models = zoo.load(family, number, device)
    trained = [name for name, fitted in models.drafters.items() if fitted.part is not None]
    trained.sort(key=lambda name: models.drafters[name].method.part == EXIT)  # what --draft brings is what was meant
    chosen = drafter or next(iter(trained), "prompt_lookup")
    events = race(models, prompt, chosen, k, params, rule=rule, peer=bool(peer))
    header = trace.live_header(prompt, models.describe(), kind, bool(peer))
    kept = as_lines(header, events) if as_json else as_text(prompt, events, models.precision)
    return kept_as(save, header, kept)


def kept_as(save: Path | None, header: Header, events: Sequence[Event]) -> int:
    """Keeps the run in that file, if there is one; the command's exit code."""
    from ..traces import file as trace

    if save is not None:
        try:
            trace.Trace(replace(header, source="recorded"), tuple(events)).save(save)
        except OSError as error:
            print(f"specdec: the run could not be saved: {error}", file=sys.stderr)
            return 1
    return int(any(isinstance(event, Failed) and event.fatal for event in events))


def check_place(path: Path) -> None:
    """ValueError where no file can be written: before a run, not after it."""
    if path.is_dir():
        raise ValueError(f"the run cannot be saved: {path} is a folder")
    if not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"the run cannot be saved: nothing can be written to {path}")


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(4 * MAX_GRAMMAR + 1)  # a character has up to 4 bytes
        if len(data) > 4 * MAX_GRAMMAR:
            raise ValueError(TranslatableText("The grammar has more than {limit} characters.", limit=MAX_GRAMMAR))
        return data.decode()
    except OSError as error:
        raise ValueError(f"the schema cannot be read: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the schema cannot be read: {path} is no UTF-8 text") from None
