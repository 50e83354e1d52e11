"""Define the commands beside `run` and those that judge. Each imports slow modules only when it is called."""

import functools
import os
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from .. import __version__, exposure
from ..messages import Refused
from ..methods import EMBEDDED
from ..paths import check_writable, read_prompts
from ..types import MAX_DRAFT_TOKENS
from .render import show_progress, show_step

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["bfloat16", "float32", "int8", "int7", "gguf"]
KEY = "SPECDEC_SERVER_KEY"  # the environment variable that has a server's key
Drafts = Annotated[list[str], Option(help="a draft model, EAGLE-3 head or Medusa heads for --target; may be repeated")]
Plain = Annotated[str, Option(help="the address of a second server: same model, no speculation")]
Target = Annotated[str, Option(help="embedded, smollm2, a folder, a GGUF file, or a name on the Hub")]


def app(
    host: Annotated[str | None, Option(help="where to listen [default: 127.0.0.1; with --class 0.0.0.0]")] = None,
    port: Annotated[int | None, Option(min=1, max=65535, help="[default: the first free one from 7860]")] = None,
    device: Annotated[Device, Option(help="where live runs compute; auto: an NVIDIA GPU, if any")] = "auto",
    target: Annotated[
        str | None, Option(help="what the page begins with: a pair's name, a folder, a GGUF file, or a name on the Hub")
    ] = None,
    draft: Drafts = [],  # noqa: B006
    public: Annotated[bool, Option("--public", help="for strangers: limits the size and number of runs")] = False,
    teach: Annotated[bool, Option("--class", help="a teacher's page, and one for the phones of a class")] = False,
) -> None:
    """Serve the page, which shows speculative decoding on a real model."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    host = host or ("0.0.0.0" if teach else os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1")
    try:
        exposure_name = "class" if teach else exposure.name_for(host)
    except (OSError, UnicodeError) as error:
        raise Refused(f"--host {host} is not an address of this machine") from error
    exposure.set_host("public" if public else exposure_name, first_pair(target, draft))
    from .. import children
    from ..figures import machine

    if not machine.gpu_memory():
        if device == "cuda":
            raise Refused("there is no NVIDIA GPU here; use --device cpu")
        children.start("specdec.models.build")  # ten seconds on a new machine, while the page is imported
    from ..ui import classroom, recorded
    from ..ui.build import build
    from ..ui.session import session
    from ..ui.theme import launch_settings

    session.device = device
    if os.environ.get("SPACES_ZERO_GPU"):  # set on Spaces with ZeroGPU
        from ..zero import ZeroProcess

        first = recorded.first_target()
        for notice in session.fetch(first):
            print(f"\r{notice.text}", end="")
        session.process = ZeroProcess(first)
    room = classroom.Room(classroom.reachable(host)) if teach else None
    page = build(teaching=teach)
    try:
        page.launch(server_name=host, server_port=port, prevent_thread_lock=True, **launch_settings(room, host))
    except OSError as error:
        raise Refused(f"the page cannot be served there: {error}") from error
    session.warm_up()
    if room:
        join = classroom.address(room.host, page.server_port)
        print(f"* Phones join at {join}")
        print(f"* The teacher's page, for you alone: {join}/teacher?teach={room.secret}")
    page.block_thread()


def first_pair(target: str | None, draft: list[str]) -> str:
    """Return the pair that the page begins with. Raises Refused if options or environment do not name a pair."""
    from ..families import presets

    if draft and not target:
        raise Refused("--draft belongs to a --target")
    chosen = presets.SEPARATOR.join((target, *draft)) if target else presets.host_pair()
    if presets.parse(chosen).kind == "family":
        raise Refused(
            f"{chosen} is no pair; name {presets.SMOLLM2}, or write 'TARGET + DRAFT' with names on the Hub "
            "(OWNER/MODEL), folders or GGUF files"
        )
    return chosen


def get(name: Annotated[str, Argument(help="smollm2, or a name on the Hub", show_default=False)] = "smollm2") -> None:
    """Fetch a model for use without a network, and print its path."""
    from ..families import hub

    if not hub.is_here(name):
        for step in hub.fetch([name], "auto"):
            show_step(step)
        show_progress("")
    print(hub.find(name))


def train(
    target: Annotated[str, Option(help="a folder, a GGUF file, or a name on the Hub", show_default=False)],
    out: Annotated[Path, Option(help="a new folder; a repeated command continues in it", show_default=False)],
    method: Annotated[str, Option(help="what to train: draft_model, eagle3")] = "draft_model",
    minutes: Annotated[
        float, Option(min=0.1, max=10_000.0, help="time for the whole command: writing examples and training")
    ] = 60.0,
    prompts: Annotated[
        Path | None, Option(help="a file with one prompt a line [default: the target writes its own]")
    ] = None,
    examples: Annotated[
        list[Path], Option(help="a file of texts to train on, instead of writing examples; can be repeated")
    ] = [],  # noqa: B006
    device: Annotated[Device, Option(help="where target and draft compute; auto: an NVIDIA GPU, if any")] = "auto",
    width: Annotated[int, Option(min=64, max=4_096, help="of a draft model")] = 256,
    layers: Annotated[int, Option(min=1, max=64, help="of a draft model")] = 4,
) -> None:
    """Train a drafter on texts that the target writes, or on --examples. The result is a folder for --draft."""
    tell = functools.partial(print, flush=True)
    try:
        from ..training.train import train as run

        run(target, out, minutes, method, prompts, tell, device=device, texts=examples, width=width, layers=layers)
    except KeyboardInterrupt:
        why = "no step was made; its texts stay" if any((out / "examples").glob("[!.]*.npz")) else "no text was written"
        best = f"the best draft so far is in {out}, for --target {target} --draft {out}; the same command goes on"
        tell(best if (out / "config.json").exists() else f"there is no draft in {out}, because {why}")
        raise


def bench(
    target: Target = EMBEDDED,
    draft: Drafts = [],  # noqa: B006
    device: Annotated[Device, Option(help="where to measure: cpu, cuda, or auto: an NVIDIA GPU, if any")] = "auto",
    tokens: Annotated[int, Option(min=2, help="new tokens per run")] = 96,
    repeats: Annotated[int, Option(min=1, help="measured rounds, after one to warm up")] = 5,
    k: Annotated[
        list[int],
        Option("-k", min=1, max=MAX_DRAFT_TOKENS, help="draft lengths to try [default: 2 4 6]; one with --prompts"),
    ] = [],  # noqa: B006
    json: Annotated[Path | None, Option(help="also write the JSON to a file")] = None,
    dtype: Annotated[Precision | None, Option(help="precision of the target; it changes its probabilities")] = None,
    drafter: Annotated[list[str], Option(help="measure only this drafter; can be repeated")] = [],  # noqa: B006
    prompts: Annotated[
        Path | None, Option(help="your own: one a line, or JSON lines with prompt or messages; a row for each")
    ] = None,
    temperature: Annotated[
        float | None, Option(min=0.0, max=100.0, help="of runs on --prompts [default: 0]; without, 0 and 0.8")
    ] = None,
    save: Annotated[Path | None, Option(help="a new run (.jsonl) of the slowest of --prompts, for the page")] = None,
) -> None:
    """Measure drafters; print a table of figures and, as the last line, JSON. Of --prompts, a row for each prompt."""
    if prompts and len(k) > 1:
        raise Refused("with --prompts, name one -k, or none for the depth that should be fastest")
    if not prompts and (temperature is not None or save):
        raise Refused("--temperature and --save belong to --prompts; leave them out")
    for file in filter(None, (json, save)):
        check_writable(file)
    texts = read_prompts(prompts) if prompts else []
    from ..bench import own, suites

    engine = suites.make_engine(target, draft, dtype, device)
    if texts:
        plan = own.Plan(texts, drafter, k[0] if k else 0, temperature or 0.0, tokens, repeats)
        own.report_prompts(engine, plan, json, save)
    else:
        suites.report_drafters(engine, drafter, k or [2, 4, 6], tokens, repeats, json)


def export(
    out: Annotated[Path, Option(help="the folder to write into", show_default=False)],
    target: Target = EMBEDDED,
    draft: Drafts = [],  # noqa: B006
) -> None:
    """Write a target and its drafters as folders that vLLM, SGLang and transformers read."""
    from ..families.export import export

    print(*export(target, out, draft), sep="\n")


def site(
    out: Annotated[Path, Option(help="the folder: new, empty, or with an earlier site", show_default=False)],
    base: Annotated[str, Option(help="the future address of the site, for previews of links")] = "",
    smollm2: Annotated[bool, Option(help="include SmolLM2, 100 MB that a visitor can choose to fetch")] = False,
) -> None:
    """Write the page as files for any host, with recorded runs and figures. New runs are computed in the browser."""
    import shlex

    from ..families.export import browser_files
    from ..ui.site import write

    size = write(out, __version__, browser_files, base, (EMBEDDED, *(["smollm2"] if smollm2 else [])))
    print(f"{out}: {size / 1e6:.1f} MB")
    print(f"To look at it: python -m http.server --directory {shlex.quote(str(out))}, then http://localhost:8000")


COMMANDS = (app, get, train, bench, export, site)
