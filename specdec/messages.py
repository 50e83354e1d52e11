"""What users are told: sentences that can be translated, the error that carries one, and what a run waits for."""

from dataclasses import dataclass
from typing import Any, Literal

# `ask` is for a shared GPU. Amounts are bytes to `fetch`, short runs to `measure`, and tokens of a prompt to `read`.
StepName = Literal["fetch", "compile", "load", "measure", "ask", "read"]


class TranslatableText(str):
    """An English sentence for users. It keeps its template and values, so that the page can translate it."""

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> "TranslatableText":
        text = super().__new__(cls, template.format(**values))
        text.template, text.values = template, values
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


class Refused(ValueError):
    """Raised for what somebody asked and cannot have. The message is one sentence, for them; no other error's is."""

    @property
    def sentence(self) -> str:
        return self.args[0]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Step:
    """How far the engine is with something that a run waits for.

    `total` is 0 if it is not known beforehand. `seconds` have passed since the step began. `text` is the model that is
    fetched, the lane that reads, or why there is no GPU.
    """

    name: StepName
    done: float = 0
    total: float = 0
    seconds: float = 0.0
    text: str = ""
