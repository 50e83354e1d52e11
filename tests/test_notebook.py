"""The workshop runs from top to bottom, its solutions included; it is stored without what it printed."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

from nbclient import NotebookClient  # noqa: E402

PATH = Path(__file__).resolve().parents[1] / "notebooks" / "workshop.ipynb"
EXERCISE = "# your code"
# Small models and short texts; behind the cell that imports the names.
SMALL = """class Engine(Engine):
    def __init__(self, target): super().__init__({!r}, dtype="float32", device="cpu")
    def race(self, prompt, drafter, k, *, params=None, **options):
        options["max_tokens"] = 6
        return super().race(prompt, drafter, k, params=params, **options)"""


def notebook() -> Any:
    return nbformat.read(PATH, 4)


def solved(book: Any) -> Any:
    """With each exercise's solution, which is hidden in the text below it, in its place."""
    cells = book.cells
    for place, below in pairwise(cells):
        if place.source == EXERCISE:
            (place.source,) = re.findall(r"<details>.*?```python\n(.*?)```.*?</details>", below.source, re.S)
    return book


@pytest.mark.long
def test_it_runs_from_top_to_bottom(shallow) -> None:
    book = solved(notebook())
    book.cells.insert(2, nbformat.v4.new_code_cell(SMALL.format(shallow)))
    NotebookClient(book, timeout=240, resources={"metadata": {"path": PATH.parent}}).execute()
    shown = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    drawn = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert any("The old lighthouse keeper" in one for one in drawn)
    assert any("the same text as plain decoding: True" in output.get("text", "") for output in shown)


def test_it_is_stored_light_and_without_outputs() -> None:
    book = notebook()
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code) and PATH.stat().st_size < 40_000
    assert sum(cell.source == EXERCISE for cell in code) == 3
