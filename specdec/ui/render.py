"""HTML from the templates in `assets/page`: whatever is filled in is escaped, unless it is markup of our own."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .text import PAGE

_templates = Environment(
    loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def render(name: str, **values: Any) -> str:
    return _templates.get_template(name).render(**values)
