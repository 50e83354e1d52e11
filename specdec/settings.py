"""The table of a run's settings. It defines the page's fields, links, the API, the command's flags and their help.

`RunRequest` and its `SamplingParams` check the settings of every run. `ui/request.py` also asks what a stranger may do.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Literal

from . import methods
from .exposure import limits
from .messages import Refused, TranslatableText
from .methods import DEFAULT_DRAFTER, DEFAULT_RULE, EMBEDDED, find_method, inner_drafter, RULE_FACTS, rule_facts
from .types import check_k, has_lone_surrogate, SamplingParams

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
    """One setting. The API, links and traces use its name. The command's flag has the same name, with dashes."""

    name: str
    type_: type
    default: Any
    help: str  # in English
    low: float = 0  # the lowest number that visitors may send
    fixed_high: float = 0  # `high`, if `bound` is empty
    step: float = 0  # of its slider on the page; 0: it has none
    bound: str = ""  # the field of `Exposure` that gives `high`
    sampling: bool = True  # True: a field of SamplingParams; False: another argument of the run
    main: bool = False  # the page shows it above *Advanced*, and every link contains it
    label: str = ""  # the label's key in page.json, if it differs from the name
    flag: Flag | None = None

    @property
    def high(self) -> float:
        """The highest number, or length of the prompt, that visitors may send. It can depend on the exposure."""
        return getattr(limits(), self.bound) if self.bound else self.fixed_high

    @property
    def help_with_bounds(self) -> str:
        if self.type_ is str:
            return f"{self.help}, at most {self.high:,} characters" if self.high else self.help
        return f"{self.help}; {self.low:g} to {self.high:,.10g}" if self.high else self.help

    @property
    def parameter(self) -> Parameter:
        return Parameter(self.name, Parameter.POSITIONAL_OR_KEYWORD, default=self.default, annotation=self.type_)


# The API takes its arguments in this order. A new setting must come last, so that old calls stay valid.
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("prompt", str, REQUIRED, "the text to continue", bound="prompt", sampling=False, main=True),
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
        Setting("temperature", float, USUAL.temperature, "0 is greedy", 0, 2, 0.1, main=True),
        Setting("top_p", float, USUAL.top_p, "1 is off", 0.05, 1, 0.05),
        Setting("top_k", int, USUAL.top_k, "0 is off", 0, 1_000),
        Setting("max_tokens", int, USUAL.max_tokens, "new tokens", 1, step=1, bound="tokens"),
        Setting("seed", int, USUAL.seed, "the seed of all random draws", 0, 2**31 - 1, main=True),
        Setting(
            "stop", str, "", "strings that end the text, one per line", label="stop_strings",
            flag=Flag(list[str], [], r"a string that ends the text (\n: a line break); may be repeated"),
        ),
        Setting(
            "rule", str, DEFAULT_RULE, f"the verification rule: {', '.join(RULE_FACTS)}; typical is lossy",
            sampling=False,
        ),
        Setting(
            "target", str, EMBEDDED, "the target", sampling=False,
            flag=Flag(str, EMBEDDED, "embedded, smollm2, a folder, a GGUF file, or a name on the Hub"),
        ),
        Setting(
            "peer", bool, False, "add a lane: transformers' own assisted generation", sampling=False,
            flag=Flag(Literal["transformers"] | None, None, "add a lane: transformers' own assisted generation"),
        ),
    )
}  # fmt: skip


def declare(function: Any, parameters: Iterable[Parameter]) -> None:
    """Declare `parameters`, in place of a function's `*` and `**`, to libraries that read its signature.

    So the table alone lists the settings: Typer makes the command's flags of them, and Gradio the API's endpoint.
    """
    own = inspect.signature(function, eval_str=True)
    keywords = [each for each in own.parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    every = [*parameters, *keywords]
    function.__signature__ = own.replace(parameters=every)
    function.__annotations__ = {each.name: each.annotation for each in every} | {"return": own.return_annotation}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The settings of a run, checked as far as no model is needed for it. Raises Refused for what cannot run."""

    prompt: Any  # a text, the messages of a chat, or token ids
    drafter: Any  # a name or an object
    k: int
    params: SamplingParams
    rule: Any = DEFAULT_RULE  # a name or an object
    target: str = EMBEDDED  # the name of what must be loaded, which can be a pair's
    peer: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.prompt, str):
            check_text(self.prompt)
        check_k(self.k)
        rule = rule_facts(self.rule) if isinstance(self.rule, str) else self.rule
        if not isinstance(self.drafter, str):
            return
        if inner_drafter(inner_drafter(self.drafter)):
            raise Refused(f"{self.drafter}: adaptive cannot wrap adaptive")
        method, judges_trees = find_method(self.drafter), getattr(rule, "trees", True)  # `make_task` wants a rule
        if method is None and self.drafter != DEFAULT_DRAFTER:
            raise Refused(f"there is no drafter {self.drafter!r}; choose from {', '.join(methods.METHODS)}")
        if method and method.tree and not judges_trees:
            reason = TranslatableText(
                "This rule judges chains only, and {drafter} makes trees. Choose another rule or another drafter.",
                drafter=self.drafter,
            )
            raise Refused(reason)

    def leaves_open(self, choice: methods.Choice) -> bool:
        """Return whether `choice` filled in the drafter, or the K of one that drafts."""
        return self.drafter == DEFAULT_DRAFTER or (self.k == 0 and choice.k > 0)

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> "RunRequest":
        sampling = {name: value for name, value in values.items() if SETTINGS[name].sampling}
        others = {name: value for name, value in values.items() if name not in sampling}
        return cls(**others, params=SamplingParams(**sampling))


def read_stop(line: str) -> str:
    r"""Return a stop string as it was typed on one line: `\n` stands for a line break, and `\\` for a backslash."""
    return re.sub(r"\\([\\n])", lambda match: "\n" if match[1] == "n" else "\\", line)


def stop_lines(stops: Iterable[str]) -> str:
    """Return the lines from which `read_stop` reads these stop strings."""
    return "\n".join(stop.replace("\\", "\\\\").replace("\n", "\\n") for stop in stops)


def check_text(prompt: str) -> None:
    """Raise Refused for a prompt that is empty, or that no tokenizer reads."""
    if not prompt.strip():
        raise Refused(TranslatableText("The prompt is empty. Type a few words to start from."))
    if has_lone_surrogate(prompt):
        half = TranslatableText("The prompt holds half of a character (a lone surrogate). Delete it and type it again.")
        raise Refused(half)
