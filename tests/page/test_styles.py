"""What the style sheets may not ask of a page that draws thirty times a second, and how loud they may be."""

from __future__ import annotations

import re

import pytest

from specdec.ui.text import PAGE

ANY_ELEMENT = re.compile(r":has\(.*\)[^,{]*[\s>+~]\*")


@pytest.mark.parametrize("sheet", sorted(PAGE.rglob("*.css")), ids=lambda sheet: sheet.name)
def test_no_has_rule_dresses_any_element(sheet) -> None:
    """`:has(…) > *` makes Chromium look at every element after each change of any: 17 ms a drawing, .4 without."""
    selectors = re.sub(r"/\*.*?\*/|\{[^{}]*\}", ";", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [one.strip() for one in selectors.split(";") if ANY_ELEMENT.search(one)] == []


def test_few_declarations_are_important() -> None:
    """Gradio's prefix outweighs its own rules; what is left answers what stands in an element or is important."""
    assert sum(sheet.read_text(encoding="utf-8").count("!important") for sheet in PAGE.rglob("*.css")) <= 20
