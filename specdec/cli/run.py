"""Run `specdec run PROMPT`: one race in the terminal, with coloured text and figures."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, TYPE_CHECKING

from typer import Argument, Context, Option

from ..events import Event, PLAIN, SPECULATIVE
from ..lanes.interleave import broken_off
from ..messages import Refused
from ..methods import Choice, METHODS
from ..paths import check_writable
from ..settings import declare, Flag, read_stop, REQUIRED, RunRequest, Setting, SETTINGS
from ..traces.file import live_header, printable, Trace, TraceHeader
from .commands import Device, Drafts, KEY, Plain, Precision
from .render import describe_run, has_colour, render, show_progress, show_step

if TYPE_CHECKING:
    from ..engine import Engine

OURS = "target", "draft", "dtype", "device", "drafter", "k", "peer", "rule"  # what a server has itself


def make_flag(setting: Setting) -> Parameter:
    """Make the argument for the prompt, or the flag for any other setting."""
    flag = setting.flag or Flag(setting.type_, setting.default)
    about = flag.help or setting.help
    if setting.name == "drafter":
        about += f"; of the embedded target: {', '.join(m.name for m in METHODS.values() if m.embedded)}"
    short_names = ["-" + setting.name] if len(setting.name) == 1 else []
    info: Any = Option(*short_names, help=about)
    if setting.default is REQUIRED:
        info = Argument(help=setting.help, show_default=False)
    return Parameter(setting.name, Parameter.KEYWORD_ONLY, default=flag.default, annotation=Annotated[flag.type_, info])


def run(
    *,
    context: Context,
    draft: Drafts = [],  # noqa: B006
    dtype: Annotated[
        Precision | None,
        Option(help="the target's number type (changes its distribution); int8 rounds matrices [default: by size]"),
    ] = None,
    device: Annotated[Device, Option(help="where models run; auto: an NVIDIA GPU, if any")] = "auto",
    server: Annotated[
        str | None, Option(help="instead of our engine: the address of a vLLM or llama.cpp server to watch")
    ] = None,
    plain: Plain = "",
    save: Annotated[Path | None, Option(help="also keep the run as a recorded trace (.jsonl)")] = None,
    **settings: Any,
) -> int:
    """Race speculative against plain decoding of a prompt in the terminal, and show coloured text and figures."""
    settings |= {"stop": tuple(map(read_stop, settings["stop"])), "peer": bool(settings["peer"])}
    request = RunRequest.from_settings(settings)
    if not request.target.strip():
        raise Refused("--target is empty; name a folder, a GGUF file or a model on the Hub, or leave it out")
    if server is None and plain:
        raise Refused("--plain belongs to a --server")
    if save is not None:
        check_writable(save)
    if server is not None:
        sources = [getattr(context.get_parameter_source(name), "name", "") for name in OURS]
        if "COMMANDLINE" in sources:
            raise Refused(
                "with --server, the server has its own models, precision, device, drafter, depth and rule; "
                "leave those options out"
            )
        events = watch_server(request, server, plain, save)
    else:
        from ..engine import Engine  # imported late, so that wrong arguments fail at once

        events = race_here(request, Engine(request.target, list(draft) or None, dtype=dtype, device=device), save)
    return int(broken_off(events) is not None)


declare(run, map(make_flag, SETTINGS.values()))


def race_here(request: RunRequest, engine: "Engine", save: Path | None) -> Sequence[Event]:
    """Print the text as it is decoded, then the figures. Raises Refused if the settings do not fit the models."""
    started = engine.start(request, show_step)
    show_progress("")
    note = default_sentence(started.choice) if request.leaves_open(started.choice) else ""
    models, events = engine.models, list[Event]()
    try:
        sys.stdout.write(request.prompt + "\n\n" * (models.chat is not None))  # the answer to a chat stands apart
        for event in started.events:
            events.append(event)
            if event.lane == SPECULATIVE:
                sys.stdout.write(render(event, events, has_colour()))
            sys.stdout.flush()
        print("\n\n" + describe_run(events, request.target, models.precision, note=note))
    finally:
        started.events.close()
        save_trace(save, started.header, events)  # after Ctrl-C, what ran until then
    return events


def default_sentence(choice: Choice) -> str:
    """Say which drafter and K were chosen by default, and why."""
    line = f"{choice.drafter}, K {choice.k}"
    if not choice.speedup:
        return line
    if choice.speedup <= 1.0:
        return f"{line}: no draft is expected to pay on this machine"
    return f"{line}, expected to be {choice.speedup:.1f} times as fast as plain decoding, by costs measured here"


def watch_server(request: RunRequest, address: str, plain_address: str, save: Path | None) -> Sequence[Event]:
    """Print a server's text as it arrives, then its cycles. Raises ServerError for errors before text is requested."""
    from ..servers import lane
    from ..servers.connect import connect_pair

    server, plain = connect_pair(address, plain_address, os.environ.get(KEY, ""))
    lanes = (SPECULATIVE, PLAIN) if plain else (SPECULATIVE,)
    header = live_header(request.prompt, lane.about(server, plain), lanes)
    header = replace(header, machine={})  # the machine of the server is unknown
    sys.stdout.write(request.prompt)

    def show(text: str) -> None:
        sys.stdout.write(printable(text))
        sys.stdout.flush()

    events = lane.race(server, plain, request.prompt, request.params, on_text=show)
    lane_events = [event for event in events if event.lane == SPECULATIVE]
    text = "".join(render(event, lane_events[: i + 1], has_colour()) for i, event in enumerate(lane_events))
    print(f"\n\n{text}\n\n{describe_run(events, server=server.facts)}")
    save_trace(save, header, events)
    return events


def save_trace(path: Path | None, header: TraceHeader, events: Sequence[Event]) -> None:
    """Write the run to `path`, if there is one and anything ran."""
    if path is not None and events:
        Trace(replace(header, source="recorded"), tuple(events)).save(path)
