"""Every setting of a run, once: the page's fields, links, the API, the command and the help of all are made from this.

A setting is checked where it comes in (`ui/request.py` for the page, links and calls; `SamplingParams` and
`check_request` for all), and then travels by name to `lanes.race.race`: nothing on the way lists settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import Parameter
from typing import Any, Literal

from .exposure import limits
from .methods import DEFAULT_DRAFTER, EMBEDDED, RULES
from .types import SamplingParams, TranslatableText

USUAL = SamplingParams()
REQUIRED = Parameter.empty


@dataclass(frozen=True)
class Flag:
    """What differs for the command from a call: the type, the default, and the help."""

    type_: Any
    default: Any
    help: str = ""


@dataclass(frozen=True)
class Setting:
    """One setting. Its name is the one of the API, of links, of traces and, with dashes, of the flag.

    Bounds are for strangers: of a number, or `high` for the characters of a text. The engine's own are wider. Where
    `bound` names a field of `Exposure`, this host's value of it is the highest. With a `step` it is a slider on the
    page.
    """

    name: str
    type_: type
    default: Any
    help: str  # in English: of a call, of the flag
    low: float = 0
    most: float = 0  # of every host; `high` is the one to ask
    step: float = 0
    bound: str = ""
    above: bool = False  # `low` itself is not allowed
    sampling: bool = True  # a field of SamplingParams; else an argument of `race`, or the family
    main: bool = False  # the page shows it above *Advanced*, and every link holds it
    label: str = ""  # its key in page.json, where that is not its name
    flag: Flag | None = None

    @property
    def high(self) -> float:
        """The highest value that a stranger may send now: the command line sets the exposure after this is imported."""
        highest: float = getattr(limits(), self.bound) if self.bound else self.most
        return highest

    @property
    def about(self) -> str:
        """The help, with the bounds."""
        if self.type_ is str:
            return f"{self.help}, at most {self.high:,} characters" if self.high else self.help
        low = f"above {self.low:g}" if self.above else f"{self.low:g}"
        return f"{self.help}; {low} to {self.high:,.10g}" if self.high else self.help

    @property
    def parameter(self) -> Parameter:
        return Parameter(self.name, Parameter.POSITIONAL_OR_KEYWORD, default=self.default, annotation=self.type_)


# In the order of a call's arguments: a new one comes last.
SETTINGS = {
    one.name: one
    for one in (
        Setting(
            "prompt", str, REQUIRED, "the text to continue", bound="prompt", sampling=False, main=True,
        ),
        Setting(
            "drafter", str, DEFAULT_DRAFTER,
            "default: what is expected to pay on this machine, by costs that are measured once; or draft_model, "
            "prompt_lookup, medusa, eagle3 …; a wrong name is answered with the list",
            sampling=False, main=True,
            flag=Flag(str, DEFAULT_DRAFTER, "its name; default: what is expected to pay on this machine"),
        ),
        Setting(
            "k", int, 0, "tokens drafted per cycle, 0: as many as are expected to pay", step=1, bound="k",
            sampling=False, main=True,
        ),
        Setting(
            "temperature", float, USUAL.temperature, "0 is greedy", 0, 2, 0.1, main=True, flag=Flag(float, 0.8),
        ),
        Setting("top_p", float, USUAL.top_p, "1 is off", 0, 1, 0.05, above=True),
        Setting("top_k", int, USUAL.top_k, "0 is off", 0, 1_000),
        Setting("max_tokens", int, USUAL.max_tokens, "new tokens", 1, step=1, bound="tokens"),
        Setting("seed", int, USUAL.seed, "of every random draw", 0, 2**31 - 1, main=True),
        Setting(
            "stop", str, "", "strings that end the text, one per line", label="stop_strings",
            flag=Flag(list[str], [], "a string that ends the text; may be repeated"),
        ),
        Setting("rule", str, RULES[0], f"{', '.join(RULES)}; typical is lossy", sampling=False),
        Setting(
            "family", str, EMBEDDED, "the target", sampling=False, label="target",
            flag=Flag(str, EMBEDDED, "'embedded', or a folder with target/ and tokenizer/"),
        ),
        Setting(
            "peer", bool, False, "one more lane: transformers' own assisted generation", sampling=False,
            flag=Flag(Literal["transformers"] | None, None, "one more lane: its own assisted generation"),
        ),
    )
}  # fmt: skip
NO_GRAMMAR = TranslatableText("SpecDec no longer decodes under a grammar; leave it out, or let your server do it.")
SAME_TOKENIZER = TranslatableText(
    "SpecDec no longer drafts with another tokenizer than the target's; choose a draft model of the target's family."
)
TUNED = TranslatableText("The target tuned on edits has gone, with its draft; choose the embedded one.")
CONTROLS = TranslatableText("The draft models large and scratch have gone; choose draft_model or draft_model:story.")
PRESETS = TranslatableText("Pairs have no names of their own any more; write TARGET + DRAFT, as the Hub calls the two.")
NAMES = "smollm2-1.7b qwen3-1.7b qwen3-8b qwen3-8b-eagle3 llama-3.1-8b llama-layerskip-1b mistral-7b-medusa".split()
BENCH_SERVER = "the bench measures no servers any more: `specdec run PROMPT --server ADDRESS --plain ADDRESS` does"
# What went, by the first words, the option (a link's setting, too) or the drafter that named it; what takes its place.
GONE = {
    "run --json": "`run --json` is gone: `specdec run … --save FILE` writes the trace",
    "run --kind": "`run --kind` is gone: `python -m tools.record` records the page's runs, each with its kind",
    "run --key-env": "--key-env is gone: the key is read from SPECDEC_SERVER_KEY",
    "doctor": "`specdec doctor` is gone: `specdec bench --suite pair --target … --draft …` measures a pair's α, τ, "
    "costs and best K, and the Guide's “Why do I gain nothing?” says what to change",
    "prove --paths": "`prove --paths` is gone: every toy of up to 100 random paths is walked",
    "trace FILE OTHER": "`specdec trace` compares no runs now: a diff of the two .jsonl files shows where they part",
    "run --exit-layer": '--exit-layer is gone: name the layer in the target\'s config.json, as "exit_layers": [4]',
    "app --pair": "`app --pair` is gone: name the pair, or TARGET + DRAFT, in --target",
    "site --language": "`site --language` is gone: a site holds every language",
    "certify --draft": "`certify --draft` is gone: the power is told for a draft that resembles the target",
    "bench --suite server": BENCH_SERVER,
    "bench --server": BENCH_SERVER,
    "serve": "`specdec serve` is gone; two lines of shell start such a pair of vLLM servers, see docs/servers.md",
    "--grammar": NO_GRAMMAR,
    "--json-schema": NO_GRAMMAR,
    "--universal": SAME_TOKENIZER,
    "--drafter universal": SAME_TOKENIZER,
    "--drafter auto": TranslatableText(
        "The drafter auto has gone; default takes what is expected to pay on this machine."
    ),
    "--drafter draft_model:tuned": TUNED,
    "--drafter draft_model:large": CONTROLS,
    "--drafter draft_model:scratch": CONTROLS,
    "--family tuned": TUNED,
    **{f"--family {name}": PRESETS for name in NAMES},
    "export vllm": "`export` names no engine any more: `specdec export --out FOLDER` writes what vLLM reads",
    "export llama_cpp": "`export` writes no GGUF files any more; llama.cpp's own converter does, see docs/serving.md",
}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The checked settings of a run."""

    prompt: str
    drafter: str
    k: int
    params: SamplingParams
    rule: str = RULES[0]
    family: str = EMBEDDED
    peer: bool = False

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> RunRequest:
        return cls(**{name: v for name, v in values.items() if not SETTINGS[name].sampling}, params=sampling(values))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `race`, by name, except the family, which is loaded before."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "family"}


def sampling(values: Mapping[str, Any]) -> SamplingParams:
    """Pick the settings that say how tokens are drawn and when to stop."""
    return SamplingParams(**{name: value for name, value in values.items() if SETTINGS[name].sampling})
