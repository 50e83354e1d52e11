"""Read the page's texts from `assets/text/<language>`: strings in JSON, paragraphs in Markdown.

Each request has its own language. `speaking` sets it for a `with` block, and `bind_language` for a handler that Gradio
calls later. If a file is not translated, the English file is used.
"""

import contextlib
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape, StrictUndefined

from ..messages import TranslatableText
from ..paths import ASSETS

PAGE = ASSETS / "page"
TEXT = ASSETS / "text"
ENGLISH = "en"  # the language of the terminal and of the API
_languages = {file.parent.name: json.loads(file.read_text(encoding="utf-8")) for file in TEXT.glob("*/language.json")}
_order = sorted(_languages, key=lambda language: (language != ENGLISH, language))  # English first
LANGUAGES = {language: _languages[language]["name"] for language in _order}  # language -> its own name
TAGS = {language: _languages[language]["tag"] for language in _order}  # language -> its tag in HTML

_language: ContextVar[str] = ContextVar("language", default=ENGLISH)


def language() -> str:
    return _language.get()


@contextlib.contextmanager
def speaking(language: str) -> Iterator[None]:
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def bind_language(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Bind a function or generator to the current language, whatever thread will run it."""
    bound = language()

    @functools.wraps(handler)
    def in_one_call(*args: Any, **named: Any) -> Any:
        with speaking(bound):
            return handler(*args, **named)

    @functools.wraps(handler)
    def in_steps(*args: Any, **named: Any) -> Iterator[Any]:
        with contextlib.closing(handler(*args, **named)) as steps:
            while True:
                with speaking(bound):  # each step may run in another thread
                    try:
                        item = next(steps)
                    except StopIteration:
                        return
                yield item

    return in_steps if inspect.isgeneratorfunction(handler) else in_one_call


def strings(name: str) -> dict[str, Any]:
    """Return the strings of one part of the page. They are cached, so callers must not change them."""
    return _strings(name, language())


def of_drafters(field: str) -> dict[str, Any]:
    """Map drafters in `drafters.json` to their `field`, if they have it. "other" stands for unknown drafters."""
    return {name: words[field] for name, words in strings("drafters").items() if field in words}


def translated(sentence: str) -> str:
    return translate(language(), sentence)


def translate(language: str, sentence: str) -> str:
    """Translate a sentence of the engine by its template in `engine.json`. Other text is returned unchanged."""
    if not isinstance(sentence, TranslatableText) or language == ENGLISH:
        return sentence
    template = _engine(language).get(sentence.template, sentence.template)
    return template.format(**{name: translate(language, value) for name, value in sentence.values.items()})


def sentences(*parts: str) -> str:
    """Join sentences by spaces, but not after Chinese punctuation, whose glyph already includes the space."""
    return re.sub("(?<=[。：？！]) ", "", " ".join(filter(None, parts)))


def paragraph(name: str) -> str:
    return _file(f"{name}.md", language()).read_text(encoding="utf-8")


@functools.cache
def _strings(name: str, language: str) -> dict[str, Any]:
    return json.loads(_file(f"{name}.json", language).read_text(encoding="utf-8"))


@functools.cache
def _engine(language: str) -> dict[str, str]:
    """Read the translations of the engine's sentences by their English templates; {} if there are none."""
    file = TEXT / language / "engine.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _file(name: str, language: str) -> Path:
    path = TEXT / language / name
    return path if path.exists() else TEXT / ENGLISH / name


def asset(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def filled(template: str, **parts: Any) -> str:
    """Fill in a Jinja template below `assets/page`. In HTML, every value that is not marked `safe` is escaped."""
    return _templates.get_template(template).render(parts)


_templates = Environment(
    loader=FileSystemLoader(PAGE),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["asset"] = asset


def prompts() -> dict[str, list[str]]:
    """Read the example prompts by kind. They are English, the language of the recorded runs' models, but for one.

    The kind of that one is the page's language, and it comes first.
    """
    chat = questions()
    texts = {kind: lists for kind, lists in chat.items() if kind == language()} | read_prompts("prompts") | chat
    return {kind: lists["page"] for kind, lists in texts.items()}


def questions() -> dict[str, dict[str, list[str]]]:
    """Read the questions for chat models, by SPEED-Bench category and then by their use: "page" or "bench".

    A language whose pages begin with a prompt of its own has it as a kind, with the language's name.
    """
    file, own = read_prompts("questions"), _languages[language()]["prompt"]
    return {language(): {"page": [own]}} | file if own else file


@functools.cache
def read_prompts(name: str) -> dict[str, dict[str, list[str]]]:
    return json.loads((ASSETS / f"{name}.json").read_text(encoding="utf-8"))


def example_name(kind: str) -> str:
    return LANGUAGES.get(kind) or strings("page")["settings"]["examples"][kind]


def kind_of(prompt: str) -> str:
    """Return the kind of an example prompt; "" for any other prompt."""
    return next((kind for kind, examples in prompts().items() if prompt in examples), "")
