"""Define the commands that judge: a server's texts, a head's drafts, a verifier or rule, a trace."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TYPE_CHECKING

from typer import Argument, Option

from ..messages import Refused
from ..methods import DEFAULT_RULE, RULE_FACTS, rule_facts
from ..paths import check_writable, read_prompts, write_whole
from ..traces.audit import audit, faultless, LaneAudit, one_line
from ..traces.file import printable, Trace, TraceError
from .commands import KEY, Plain
from .render import show_progress, show_step

if TYPE_CHECKING:
    from ..engine import Engine
    from ..families.doctor import Attempt, Diagnosis

HOUR_S = 3_600.0  # time limit of all requests to a server, for up to certificate.DRAWS draws
ROW = "{:9}{:>10}{:>9}{:>10}  {:62}{:>15}{:>7}"
MARKS = {0: "✓", 1: "✗", 2: "–"}
SHOWN_READINGS = 8  # rows of the doctor's table
SHOWN_FAULTS = 10  # of a lane of a trace
LOSSLESS = {True: "lossless", False: "LOSSY, judged by its own rule", None: "it is unknown whether it is lossless"}


def certify(
    server: Annotated[str, Option(help="the server's address", show_default=False)],
    plain: Plain = "",
    target: Annotated[str, Option(help="the weights of the server's model: a folder or a name on the Hub")] = "",
    draws: Annotated[int, Option(min=100, help="how many texts are drawn after each context")] = 3_000,
    temperature: Annotated[float, Option(min=0.0, max=100.0, help="of sampled texts; 0: only greedy texts")] = 0.8,
    out: Annotated[Path | None, Option("--json", help="a file for the certificate")] = None,
) -> int:
    """Test from a server's texts whether its speculative decoding is lossless.

    The exit code is 0 if the texts show no error, 1 if they do or the server never speculated, and 2 if this could not
    be tested. The server's key is read from SPECDEC_SERVER_KEY.
    """
    from ..servers import certificate
    from ..servers.connect import connect_pair

    if out:
        check_writable(out)
    total_s = HOUR_S * max(1.0, draws / certificate.DRAWS)
    judged, plain_server = connect_pair(server, plain, os.environ.get(KEY, ""), total_s)
    if not plain and not target:
        raise Refused(
            "Name a plain server of the same model (--plain ADDRESS), or its weights "
            f"(--target {judged.facts.model}), to compare the server with."
        )
    weights = certificate.load_weights(target) if target else None
    for result in certificate.certify(judged, plain_server, weights, temperature, draws):
        if result["doing"]:
            print(f"{result['seconds']:6.0f} s  {result['doing']}", file=sys.stderr, flush=True)
    if out:
        write_whole(out, json.dumps(result, ensure_ascii=False) + "\n")
    print("\n".join(certificate_lines(result)))
    return int(result["status"])


def certificate_lines(result: dict[str, Any]) -> list[str]:
    facts = result["server"]
    texts = f"{result['draws']} texts of {result['length']} tokens a context at T = {result['temperature']:g}, "
    subject = f"{facts['kind']} {facts['version']}, {facts['model']}: {texts if result['draws'] else 'greedy text, '}"
    return [
        f"{subject}compared with {result['against']}",
        "",
        ROW.format("context", "greedy", "drafted", "accepted", "G statistic (degrees of freedom)", "bias shown", "s"),
        *(ROW.format(*cells(context)) for context in result["contexts"]),
        "",
        f"{MARKS[result['status']]} {result['verdict']}, after {result['seconds']:.0f} s",
        *result["sentences"],
    ]


def cells(context: dict[str, Any]) -> list[str]:
    """Make the cells of one context's row. An exclamation mark stands before a failed test."""
    from ..servers.certificate import speculated

    greedy, counts = context.get("greedy"), speculated([context])
    tests = [
        f"{'!' if red else ''}{'∞' if g is None else f'{g:.0f}'}({degrees})"
        for (g, degrees, _), red in zip(context.get("tests", ()), context.get("red", ()), strict=True)
    ]
    bias, seconds = context.get("bias"), context.get("seconds")
    return [
        context["name"],
        f"{greedy['equal']} of {greedy['of']}" if greedy else "–",
        *(map(str, counts) if counts else ("–", "–")),
        " ".join(tests) or "–",
        f"{bias:.0%}" if bias is not None else "–",
        f"{seconds:.0f}" if seconds is not None else "–",
    ]


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
    own = read_prompts(prompts) if prompts else []
    if save is not None:
        check_writable(save)
    if fix and not Path(draft).is_dir():
        raise Refused("--fix writes into the head's folder: download the head, and name its folder")
    from ..engine import Engine
    from ..families import doctor, hub

    folder, engine = hub.find(draft), Engine(target, device="cpu")
    engine.prepare("none", on_step=show_step)
    family, texts = engine.models, list[doctor.Text]()
    chosen = own[: doctor.TEXTS] or doctor.prompts_of(family)
    head = doctor.Examination(family, folder, texts, chosen)
    for text in doctor.own_texts(family, chosen):
        texts.append(text)
        show_progress(f"the target writes: {len(texts)} of {len(chosen)} texts")
    result = head.diagnose(lambda done, of: show_progress(f"conventions: {done} of {of}"))
    show_progress("")
    print("\n".join(diagnosis(result)))
    if result.status == 1 and fix:
        written = doctor.fix(folder, result.best.conventions)
        print(f"{folder / 'config.json'} is {'written' if written else 'as it was: it alone cannot mend the head'}.")
    if save is not None:
        loaded = head.load(() if result.stated.by_place else result.best.conventions)
        family.drafters[loaded.method.name] = loaded
        record(engine, loaded.method.name, chosen[0], save)
    return result.status


def diagnosis(result: "Diagnosis") -> list[str]:
    """Return a table of what was tried, the best first, and the verdict."""
    stated, best = result.stated, result.best
    rows = (stated, *result.attempts[:SHOWN_READINGS])
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


def places(attempt: "Attempt") -> str:
    return " ".join(f"{beta:.2f}" for beta in attempt.by_place)


def record(engine: "Engine", drafter: str, prompt: Any, path: Path) -> None:
    """Write a race with the head to a file that the page opens, unless it breaks off."""
    from ..engine import RunFailed

    try:
        engine.race(prompt, drafter, 4).save(path)
    except RunFailed as failed:
        print(f"The run with the head is not kept: {failed}")
    else:
        print(f"A run with the head is in {path}; open it on the page, where Step through shows its first rejection.")


def prove(
    verifier: Annotated[Path | None, Argument(help="a file that defines verify(tokens, p, q, sampler)")] = None,
    rule: Annotated[str, Option(help=f"which shipped rule to prove: {', '.join(RULE_FACTS)}")] = DEFAULT_RULE,
) -> int:
    """Prove that the shipped loop, or your own verifier, is lossless: enumerate every random path on toy models.

    The exit code is 0 if it is lossless, 1 if it is not, and 2 if this could not be proved either way.
    """
    rule_facts(rule)  # raises Refused at once for one that does not exist
    from ..proof import prove as proofs

    return proofs.prove_verifier(verifier) if verifier else proofs.prove(rule)


def trace(file: Annotated[Path, Argument(help="a saved run (.jsonl)", show_default=False)]) -> int:
    """Audit a trace: recompute its decisions, and compare them with the recorded ones.

    The exit code is 0 if all hold, 1 if one does not, and 2 if the file cannot be audited.
    """
    try:
        recorded = Trace.load(file)
        recorded.check_not_empty()
    except TraceError as error:
        raise Refused(f"{file}: {error}") from error
    lanes = audit(recorded.header.lanes, recorded.events)
    unchecked = ", as far as the data go" if any(lane.unchecked for lane in lanes) else ""
    verdict = f"the audit holds{unchecked}" if faultless(lanes) else "THE AUDIT FAILS"
    print(f"{printable(' '.join(str(file).split()))}: {verdict}")
    print(audit_lines(lanes))
    return 0 if faultless(lanes) else 1


def audit_lines(lanes: Sequence[LaneAudit]) -> str:
    """Write the audit, a few lines for each lane."""
    lines = []
    for lane in lanes:
        work = f"{lane.decisions} decisions and {lane.draws} draws checked"
        outcome = f"{len(lane.faults)} do not hold" if lane.faults else "all hold"
        rule = f"{one_line(lane.rule)}, {LOSSLESS[lane.lossless]}" if lane.rule else "no rule recorded"
        rule = f"{one_line(lane.server)}, watched from outside" if lane.server else rule
        lines.append(f"  {one_line(lane.lane):<14}{lane.tokens} tokens: {work}, {outcome} ({rule})")
        lines += [f"    {fault}" for fault in lane.faults[:SHOWN_FAULTS]]
        if len(lane.faults) > SHOWN_FAULTS:
            lines.append(f"    and {len(lane.faults) - SHOWN_FAULTS} more")
        lines += [f"    not checked: {count} {what}" for what, count in lane.unchecked.items()]
    return "\n".join(lines)


COMMANDS = (certify, doctor, prove, trace)
