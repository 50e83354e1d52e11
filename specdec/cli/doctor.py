"""Run `specdec doctor`: find out why a target rejects the drafts of a head."""

import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..paths import check_writable, read_prompts

SHOWN = 8  # rows of the table


def doctor(
    target: Annotated[str, Option(help="embedded, smollm2, a folder, or a name on the Hub", show_default=False)],
    draft: Annotated[str, Option(help="the head: a folder, or a name on the Hub", show_default=False)],
    prompts: Annotated[Path | None, Option(help="a file with one prompt a line [default: the page's prompts]")] = None,
    fix: Annotated[bool, Option("--fix", help="write the wrong keys anew into the head's config.json")] = False,
    save: Annotated[Path | None, Option(help="keep a run with the head as a trace (.jsonl), for the page")] = None,
) -> int:
    """Find out why a target rejects a head's drafts: measure them, then read the head by other conventions.

    The exit code is 0 if nothing is found, 1 if a convention is wrong, which is named, and 2 if no convention does
    better although the head drafts badly (it is weak, untrained, or belongs to another target), or the doctor failed.
    """
    from ..families import hub

    lines = read_prompts(prompts) if prompts else []
    if save is not None:
        check_writable(save)
    from ..families import doctor, zoo

    folder = hub.find(draft)
    family = zoo.load_pair(target)
    chosen, texts = lines[: doctor.TEXTS] or doctor.prompts_of(family), list[doctor.Text]()
    head = doctor.Examination(family, folder, texts, chosen)
    for text in doctor.own_texts(family, chosen):
        texts.append(text)
        show("the target writes", len(texts), len(chosen))
    result = head.diagnose(lambda done, of: show("conventions", done, of))
    print("\r" + " " * 78, end="\r", file=sys.stderr, flush=True)
    print("\n".join(report(result)))
    if result.status == 1 and fix:
        complete = doctor.fix(folder, result.best.conventions)
        print(f"{folder / 'config.json'} is written." if complete else "config.json alone cannot mend it.")
    if save is not None:
        loaded = head.load(() if result.stated.by_place else result.best.conventions)
        family.drafters[loaded.method.name] = loaded
        record(family, loaded.method.name, chosen[0], save)
    return result.status


def show(doing: str, done: int, of: int) -> None:
    """Replace the line that tells the progress."""
    bar = "#" * round(30 * done / of)
    print(f"\r{doing:18} [{bar:30}] {done} of {of}  ", end="", file=sys.stderr, flush=True)


def report(result: Any) -> list[str]:
    """Return a table of what was tried, the best first, and the verdict."""
    stated, best = result.stated, result.best
    rows = (stated, *result.attempts[:SHOWN])
    table = [f"{one.score:6.2f}  {places(one) or 'not loaded':24}  {one.says}" for one in rows]
    says = f"As config.json says: {places(stated) or stated.error}."
    verdict = (
        f"Nothing found: the overlap is {places(stated)} by place, over {stated.overlaps.numel()} positions.",
        f"A convention is wrong. {says} With {best.says}: {places(best)}. "
        f"To mend it, {'; '.join(way.remedy for way in best.conventions)}.",
        f"It cannot be judged. {says} No convention does clearly better; chance is {stated.chance:.2f}. "
        "Train the head more, or take one that was trained for this target.",
    )[result.status]
    return ["tokens  overlap by place          read with", *table, "", verdict]


def places(attempt: Any) -> str:
    return " ".join(f"{beta:.2f}" for beta in attempt.by_place)


def record(family: Any, name: str, prompt: str, path: Path) -> None:
    """Write a race with the head to a file that the page opens, unless it breaks off."""
    from ..lanes.interleave import broken_off
    from ..lanes.race import race_lanes
    from ..traces import file as trace

    events = tuple(race_lanes(family, prompt, name, k=4))
    if failed := broken_off(events):
        print(f"The run with the head broke off, so it is not kept: {failed.reason}")
        return
    trace.Trace(trace.live_header(prompt, family.describe()), events).save(path)
    print(f"A run with the head is in {path}; open it on the page, where Step through shows its first rejection.")
