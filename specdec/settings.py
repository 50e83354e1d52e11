"""The table of a run's settings. It defines the page's fields, links, the API, the command's flags and their help.

`ui/request.py` checks settings from the page, links and the API. `SamplingParams` and `methods.check_request` check the
settings of every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import Parameter
from typing import Any, Literal

from .exposure import limits
from .methods import DEFAULT_DRAFTER, EMBEDDED, RULES
from .types import SamplingParams, TranslatableText

USUAL = SamplingParams()  # the default settings
REQUIRED = Parameter.empty  # the `default` of a setting that has none


@dataclass(frozen=True)
class Flag:
    """Replaces a setting's type and default on the command line, and also its help if `help` is not empty."""

    type_: Any
    default: Any
    help: str = ""


@dataclass(frozen=True)
class Setting:
    """One setting. The API, links and traces use its name. The command's flag has the same name, with dashes.

    `low` and `high` limit what visitors can send: the value of a number, or the length of the prompt.
    A setting with a `step` is a slider on the page.
    """

    name: str
    type_: type
    default: Any
    help: str  # in English
    low: float = 0
    fixed_high: float = 0  # `high`, if `bound` is empty
    step: float = 0
    bound: str = ""  # the field of `Exposure` that gives `high`
    above: bool = False  # the value must be above `low`, not equal
    sampling: bool = True  # True: a field of SamplingParams; False: another argument of the run
    main: bool = False  # the page shows it above *Advanced*, and every link contains it
    label: str = ""  # the label's key in page.json, if it differs from the name
    flag: Flag | None = None

    @property
    def high(self) -> float:
        """The highest value that visitors may send. It depends on the exposure, which the command line sets."""
        highest: float = getattr(limits(), self.bound) if self.bound else self.fixed_high
        return highest

    @property
    def help_with_bounds(self) -> str:
        if self.type_ is str:
            return f"{self.help}, at most {self.high:,} characters" if self.high else self.help
        low = f"above {self.low:g}" if self.above else f"{self.low:g}"
        return f"{self.help}; {low} to {self.high:,.10g}" if self.high else self.help

    @property
    def parameter(self) -> Parameter:
        return Parameter(self.name, Parameter.POSITIONAL_OR_KEYWORD, default=self.default, annotation=self.type_)


# The API takes its arguments in this order. A new setting must come last, so that old calls stay valid.
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "prompt", str, REQUIRED, "the text to continue", bound="prompt", sampling=False, main=True,
        ),
        Setting(
            "drafter", str, DEFAULT_DRAFTER,
            "default: the one that should be fastest on this machine, by costs that are measured once; or draft_model, "
            "prompt_lookup, medusa, eagle3 …; for a wrong name the error lists all",
            sampling=False, main=True,
            flag=Flag(str, DEFAULT_DRAFTER, "its name; default: the one that should be fastest on this machine"),
        ),
        Setting(
            "k", int, 0, "tokens drafted per cycle; 0: the number that should be fastest", step=1, bound="k",
            sampling=False, main=True,
        ),
        Setting(
            "temperature", float, USUAL.temperature, "0 is greedy", 0, 2, 0.1, main=True, flag=Flag(float, 0.8),
        ),
        Setting("top_p", float, USUAL.top_p, "1 is off", 0, 1, 0.05, above=True),
        Setting("top_k", int, USUAL.top_k, "0 is off", 0, 1_000),
        Setting("max_tokens", int, USUAL.max_tokens, "new tokens", 1, step=1, bound="tokens"),
        Setting("seed", int, USUAL.seed, "the seed of all random draws", 0, 2**31 - 1, main=True),
        Setting(
            "stop", str, "", "strings that end the text, one per line", label="stop_strings",
            flag=Flag(list[str], [], "a string that ends the text; may be repeated"),
        ),
        Setting("rule", str, RULES[0], f"the verification rule: {', '.join(RULES)}; typical is lossy", sampling=False),
        Setting(
            "family", str, EMBEDDED, "the target", sampling=False, label="target",
            flag=Flag(str, EMBEDDED, "'embedded', or a folder with target/ and tokenizer/"),
        ),
        Setting(
            "peer", bool, False, "add a lane: transformers' own assisted generation", sampling=False,
            flag=Flag(Literal["transformers"] | None, None, "add a lane: transformers' own assisted generation"),
        ),
    )
}  # fmt: skip
NO_GRAMMAR = TranslatableText("SpecDec no longer decodes under a grammar; leave it out, or let your server do it.")
SAME_TOKENIZER = TranslatableText(
    "SpecDec no longer drafts with another tokenizer than the target's; choose a draft model of the target's family."
)
NO_TUNED_TARGET = TranslatableText("The target tuned on edits has gone, with its draft; choose the embedded one.")
GONE_DRAFTS = TranslatableText("The draft models large and scratch have gone; choose draft_model or draft_model:story.")
PRESETS = TranslatableText("Pairs have no names of their own any more; write TARGET + DRAFT, as the Hub calls the two.")
PAIRS = "smollm2-1.7b qwen3-1.7b qwen3-8b qwen3-8b-eagle3 llama-3.1-8b llama-layerskip-1b mistral-7b-medusa".split()
BENCH_SERVER = "the bench no longer measures servers; use `specdec run PROMPT --server ADDRESS --plain ADDRESS`"
# Error messages for commands, flags, drafters and families of earlier versions.
GONE = {
    "run --json": "`run --json` is gone: `specdec run … --save FILE` writes the trace",
    "run --kind": "`run --kind` is gone: `python -m tools.record` records the page's runs, each with its kind",
    "run --key-env": "--key-env is gone: the key is read from SPECDEC_SERVER_KEY",
    "prove --paths": "`prove --paths` is gone: `prove` always enumerates every toy model that has at most 100 paths",
    "trace FILE OTHER": "`specdec trace` no longer compares runs: `diff` shows where the two .jsonl files differ",
    "run --exit-layer": '--exit-layer is gone: name the layer in the target\'s config.json, as "exit_layers": [4]',
    "app --pair": "`app --pair` is gone: name the pair, or TARGET + DRAFT, in --target",
    "site --language": "`site --language` is gone: a site holds every language",
    "certify --draft": "`certify --draft` is gone: the power is computed for a draft that resembles the target",
    "bench --suite server": BENCH_SERVER,
    "bench --server": BENCH_SERVER,
    "serve": "`specdec serve` is gone: docs/servers.md has two lines that start vLLM with and without a draft",
    "--grammar": NO_GRAMMAR,
    "--json-schema": NO_GRAMMAR,
    "--universal": SAME_TOKENIZER,
    "--drafter universal": SAME_TOKENIZER,
    "--drafter auto": TranslatableText(
        "The drafter auto has gone; default takes what is expected to pay on this machine."
    ),
    "--drafter draft_model:tuned": NO_TUNED_TARGET,
    "--drafter draft_model:large": GONE_DRAFTS,
    "--drafter draft_model:scratch": GONE_DRAFTS,
    "--family tuned": NO_TUNED_TARGET,
    **{f"--family {name}": PRESETS for name in PAIRS},
    "export vllm": "`export` no longer takes an engine's name: `specdec export --out FOLDER` writes what vLLM reads",
    "export llama_cpp": "`export` no longer writes GGUF files; use llama.cpp's own converter, see docs/serving.md",
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
        """The arguments of `race` by name. The family is loaded separately."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "family"}


def sampling(values: Mapping[str, Any]) -> SamplingParams:
    """Make `SamplingParams` of those settings that are its fields. Ignore the others."""
    return SamplingParams(**{name: value for name, value in values.items() if SETTINGS[name].sampling})
