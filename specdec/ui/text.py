"""Read the page's texts from `assets/text/<language>`, or in English if a file is not translated.

Each request has its own language. `speaking` sets it for a `with` block, `bind_language` for a handler.
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
_languages = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in TEXT.glob("*/language.json")}
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
    """Return the strings of a part of the page. They are cached: do not change them."""
    return _cached(_path(f"{name}.json"))


def of_drafters(field: str) -> dict[str, Any]:
    """Map drafters to their `field` in `drafters.json`. "other" stands for unknown ones."""
    return {name: words[field] for name, words in strings("drafters").items() if field in words}


def translated(sentence: str) -> str:
    return translate(language(), sentence)


def translate(language: str, sentence: str) -> str:
    """Translate a sentence of the engine by its template in `engine.json`; no other text."""
    if not isinstance(sentence, TranslatableText) or language == ENGLISH:
        return sentence
    template = _cached(TEXT / language / "engine.json").get(sentence.template, sentence.template)
    return template.format(**{name: translate(language, value) for name, value in sentence.values.items()})


def sentences(*parts: str) -> str:
    """Join sentences by spaces, but not after Chinese punctuation, which includes one."""
    return re.sub("(?<=[。：？！]) ", "", " ".join(filter(None, parts)))


def paragraph(name: str) -> str:
    return _path(f"{name}.md").read_text(encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file; {} if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


_cached = functools.cache(read_json)


def _path(name: str) -> Path:
    path = TEXT / language() / name
    return path if path.exists() else TEXT / ENGLISH / name


def as_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def asset(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def filled(template: str, **parts: Any) -> str:
    """Fill in a Jinja template below `assets/page`. In HTML, what is not `safe` is escaped."""
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
    """Read the example prompts by kind. One of the page's language, if any, comes first."""
    chat = questions()
    own = {kind: lists for kind, lists in chat.items() if kind == language()}
    return {kind: lists["page"] for kind, lists in (own | _cached(ASSETS / "prompts.json") | chat).items()}


def questions() -> dict[str, dict[str, list[str]]]:
    """Read the questions for chat models, by kind (SPEED-Bench's, or the language) and use."""
    file, own = _cached(ASSETS / "questions.json"), _languages[language()]["prompt"]
    return {language(): {"page": [own]}} | file if own else file


def example_name(kind: str) -> str:
    return LANGUAGES.get(kind) or strings("page")["settings"]["examples"][kind]


def kind_of(prompt: str) -> str:
    """Return the kind of an example prompt; "" for any other prompt."""
    return next((kind for kind, examples in prompts().items() if prompt in examples), "")
