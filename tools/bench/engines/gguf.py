"""GGUF files for the engines that read those, written by llama.cpp's own converter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VARIABLE = "CONVERT_HF_TO_GGUF"
# The converter recognises a tokenizer by a hash of its ids, which lacks ours: it splits texts as SmolLM's does.
RUN = (
    "import convert_hf_to_gguf as c, conversion.base as b; "
    "b.TextModel.get_vocab_base_pre = lambda *_: 'smollm'; c.main()"
)


def convert(folder: Path, file: Path, numbers: str = "f32") -> Path:
    """Write the checkpoint in `folder` as `file`, unless it is there. ValueError where no converter is named."""
    converter = Path(os.environ.get(VARIABLE, ""))
    if not converter.is_file():
        raise ValueError(f"this engine reads GGUF files: name llama.cpp's convert_hf_to_gguf.py in {VARIABLE}")
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", RUN, str(folder), "--outfile", str(file), "--outtype", numbers]
        subprocess.run(command, cwd=converter.parent, check=True, capture_output=True)
    return file
