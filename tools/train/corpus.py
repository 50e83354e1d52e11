"""Load the training text by domain: stories from a folder, code from Python's standard library, generated facts.

Every domain is a list of documents. A document is held out for evaluation depending on a checksum of its text, so that
adding other files does not change the choice.
"""

import re
import sysconfig
import zlib
from dataclasses import dataclass
from pathlib import Path

from . import facts

HOLD_OUT_ONE_IN = 50
BLOCKLIST = Path(__file__).with_name("blocklist.txt")
# Not typical Python (tests, tables, generated data), or not the library's own code (site-packages, ensurepip).
SKIPPED_FOLDERS = {"site-packages", "test", "tests", "idle_test", "encodings", "pydoc_data", "ensurepip"}


@dataclass(frozen=True)
class Split:
    train: list[str]
    held_out: list[str]


def blocked_words() -> re.Pattern[str]:
    """Return a pattern for all words that a model for classrooms must not learn."""
    lines = BLOCKLIST.read_text().splitlines()
    words = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


def load(folder: Path, seed: int = 0) -> dict[str, Split]:
    """Read every domain. `folder` contains the stories, one .txt file for each book."""
    return {
        "story": split(stories(folder)),
        "code": split(standard_library()),
        "facts": split(facts.documents(6000, seed)),
    }


def stories(folder: Path, size: int = 6000) -> list[str]:
    """Cut books at paragraph breaks into documents of about `size` characters; drop paragraphs with blocked words."""
    files = sorted(path for path in folder.glob("*.txt"))
    if not files:
        raise SystemExit(f"{folder} holds no .txt file; point --corpus at a folder of plain texts")
    blocked, documents = blocked_words(), []
    for path in files:
        paragraphs: list[str] = []
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8", errors="replace")):
            paragraph = paragraph.strip()
            if not paragraph or blocked.search(paragraph):
                continue
            paragraphs.append(paragraph)
            if sum(map(len, paragraphs)) > size:
                documents.append("\n\n".join(paragraphs) + "\n")
                paragraphs = []
        if paragraphs:
            documents.append("\n\n".join(paragraphs) + "\n")
    return documents


def standard_library() -> list[str]:
    """Return .py files of this interpreter's standard library, without very short ones and those with blocked words."""
    root, blocked = Path(sysconfig.get_path("stdlib")), blocked_words()
    documents = []
    for path in sorted(root.rglob("*.py")):
        if SKIPPED_FOLDERS.isdisjoint(path.relative_to(root).parts):
            text = path.read_text(encoding="utf-8", errors="replace")
            if len(text) > 200 and not blocked.search(text):
                documents.append(text)
    return documents


def split(documents: list[str]) -> Split:
    result = Split([], [])
    for text in documents:
        held_out = zlib.crc32(text.encode()) % HOLD_OUT_ONE_IN == 0
        (result.held_out if held_out else result.train).append(text)
    # Neither side may be empty.
    for full, empty in ((result.train, result.held_out), (result.held_out, result.train)):
        if not empty:
            empty.append(full.pop() if len(full) > 1 else full[0])
    return result
