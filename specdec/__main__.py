"""`python -m specdec "Once upon a time"`: one race in the terminal, as coloured text and figures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from . import __version__
from .events import Committed, Event, Failed, Started, Verified
from .figures.stats import Comparison, LaneStats
from .types import SamplingParams

# Background colours of the page's palette, always with a mark: colour is never the only sign.
STYLES = {
    "accepted": ("48;5;151;38;5;16", "✓"),
    "rejected": ("48;5;216;38;5;16;9", "✗"),
    "discarded": ("48;5;252;38;5;16;2", "·"),
    "resampled": ("48;5;153;38;5;16;4", "↻"),
    "bonus": ("48;5;222;38;5;16", "+1"),
}


def parser() -> argparse.ArgumentParser:
    defaults = {field.name: field.default for field in fields(SamplingParams)}
    parse = argparse.ArgumentParser("python -m specdec", description=__doc__)
    parse.add_argument("prompt", help="the text to continue")
    parse.add_argument("--drafter", help="its name; default draft_model, or what --draft brings")
    parse.add_argument(
        "--rule", default="rejection", help="rejection, shared_noise, block or typical (lossy); default rejection"
    )
    parse.add_argument("-k", type=int, default=4, help="tokens drafted per cycle (default 4)")
    parse.add_argument("--temperature", type=float, default=0.8, help="0 is greedy (default 0.8)")
    parse.add_argument("--top-k", type=int, default=defaults["top_k"], help="0 is off")
    parse.add_argument("--top-p", type=float, default=defaults["top_p"], help="1 is off")
    parse.add_argument("--max-tokens", type=int, default=defaults["max_tokens"])
    parse.add_argument("--seed", type=int, default=defaults["seed"])
    parse.add_argument("--stop", action="append", default=[], help="a string that ends the text; may be repeated")
    parse.add_argument(
        "--family", default="embedded",
        help="'embedded', 'tuned' (its target tuned on code), or a folder with target/, tokenizer/, draft_model/",
    )  # fmt: skip
    parse.add_argument("--target", metavar="MODEL", help="instead of a family: a folder, or a name on the Hub")
    parse.add_argument(
        "--draft", action="append", default=[], metavar="MODEL",
        help="a draft model, EAGLE-3 head or Medusa heads for --target; may be repeated",
    )  # fmt: skip
    parse.add_argument("--exit-layer", type=int, default=0, help="offer early_exit of --target at this layer")
    parse.add_argument("--dtype", choices=("bfloat16", "float32"), help="default: what is fastest here")
    parse.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="default cpu; cuda is an NVIDIA GPU")
    parse.add_argument("--peer", choices=("transformers",), help="one more lane: its own assisted generation")
    parse.add_argument("--json", action="store_true", help="print the trace, one JSON object a line")
    parse.add_argument("--save", type=Path, metavar="FILE", help="also keep the run as a recorded trace (.jsonl)")
    parse.add_argument("--kind", default="", help="with --save: what the prompt is (story, code, facts, …)")
    parse.add_argument("--version", action="version", version=__version__)
    return parse


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    import torch  # after the arguments are known to be good

    from .families import zoo
    from .lanes.race import race
    from .traces import file as trace

    try:
        params = SamplingParams(
            options.temperature, options.top_k, options.top_p, options.max_tokens, options.seed, tuple(options.stop)
        )
        dtype = getattr(torch, options.dtype) if options.dtype else None
        if options.target:
            family = zoo.load_pair(
                options.target,
                *options.draft,
                exit_layer=options.exit_layer,
                dtype=dtype,
                pickles=True,
                device=options.device,
            )
        elif options.draft or options.exit_layer:
            raise ValueError("--draft and --exit-layer belong to a --target")
        else:
            family = zoo.load(options.family, dtype, options.device)
        trained = (name for name in family.drafters if name not in ("none", "prompt_lookup"))
        drafter = options.drafter or next(trained, "prompt_lookup")
        events = race(family, options.prompt, drafter, options.k, params, rule=options.rule, peer=bool(options.peer))
    except ValueError as error:
        print(f"specdec: {error}", file=sys.stderr)
        return 2
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    kept: list[Event] = []
    header = trace.live_header(options.prompt, family.describe(), options.kind, bool(options.peer))
    if options.json:
        sys.stdout.write(header.line())
    else:
        sys.stdout.write(options.prompt)
    for event in events:
        kept.append(event)
        if options.json:
            sys.stdout.write(trace.line(event))
        elif getattr(event, "lane", "") == "speculative":
            sys.stdout.write(render(event, kept, colour))
        sys.stdout.flush()
    if not options.json:
        print("\n\n" + report(kept))
    if options.save:
        try:
            trace.Trace(replace(header, source="recorded"), tuple(kept)).save(options.save)
        except OSError as error:
            print(f"specdec: the run could not be saved: {error}", file=sys.stderr)
            return 1
    return 0


def render(event: Event, before: Sequence[Event], colour: bool) -> str:
    """A cycle's tokens once it is committed: drafts in their order, then the target's own."""
    if isinstance(event, Failed):
        return f"\n[{event.where}: {event.reason}]\n"
    if not isinstance(event, Committed):
        return ""
    verified = next(e for e in reversed(before) if isinstance(e, Verified) and e.lane == event.lane)
    shown, left = "", event.accepted
    for position in verified.positions:
        left -= position.status == "accepted"
        if left < 0 or (left == 0 and len(event.tokens) == event.accepted and position.status != "accepted"):
            break  # behind the end of the text
        shown += styled(position.piece, position.status, colour)
    if len(event.tokens) > event.accepted:
        drafted = bool(verified.positions)
        shown += styled(event.pieces[-1], event.kind, colour) if drafted else event.pieces[-1]
    return shown


def styled(piece: str, status: str, colour: bool) -> str:
    codes, mark = STYLES[status]
    # Discarded and rejected tokens are not part of the text: their line breaks must not break lines.
    text = piece if status in ("accepted", "resampled", "bonus") else piece.replace("\n", "↵")
    return f"\033[{codes}m{text}{mark}\033[0m" if colour else f"{text}{mark}"


def report(events: Sequence[Event]) -> str:
    """The figures, one a line, with their units."""
    comparison = Comparison.of(events)
    spec, plain = comparison.speculative, comparison.plain
    rows = [
        ("speculative", spec.tokens_per_second, "tokens/s", 0),
        ("plain decoding", plain.tokens_per_second, "tokens/s", 0),
        ("measured speed-up", comparison.measured_speedup, "×", 2),
        ("acceptance rate α", spec.alpha, f"{spec.accepted} of {spec.judged} judged", 2),
        ("draft acceptance rate", spec.draft_acceptance_rate, f"{spec.accepted} of {spec.drafted} drafted", 2),
        ("block efficiency τ", spec.tau, "tokens per cycle", 2),
        ("cost of one draft token c", comparison.draft_cost, "plain steps", 2),
        ("cost of one verification v", comparison.verify_cost, "plain steps", 2),
        ("accounted speed-up", comparison.accounted_speedup, "×", 2),
        ("time per token", None if spec.seconds_per_token is None else spec.seconds_per_token * 1e3, "ms", 2),
        ("time to first token", spec.prefill_seconds * 1e3, f"ms (plain {plain.prefill_seconds * 1e3:.1f})", 1),
    ]
    if peer := next((e.lane for e in events if e.lane not in ("speculative", "plain")), None):
        rate = LaneStats.of(events, peer).tokens_per_second
        failure = next((f"failed: {e.reason}" for e in events if isinstance(e, Failed) and e.lane == peer), "tokens/s")
        against = rate / plain.tokens_per_second if rate and plain.tokens_per_second else None
        rows[2:2] = [(f"{peer}, assisted", rate, failure, 0), ("  against plain decoding", against, "×", 2)]
    lines = [
        f"{name:<28}{'–' if value is None else f'{value:.{digits}f}'} {unit}" for name, value, unit, digits in rows
    ]
    started = next((e for e in events if isinstance(e, Started) and e.lane == "speculative"), None)
    if started is not None:
        kept = "lossless" if started.lossless else "LOSSY: the text no longer follows the target's law"
        lines.insert(0, f"{'verification':<28}{started.rule}, {kept}")
    legend = "  ".join(f"{mark} {name}" for name, (_, mark) in STYLES.items())
    return "\n".join([*lines, "", legend])


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
