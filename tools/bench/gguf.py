"""Exported models as GGUF files, written by llama.cpp's own converter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

VARIABLE = "SPECDEC_LLAMA_CPP"
Numbers = Literal["f32", "f16", "bf16", "q8_0"]
# The converter knows a tokenizer by a hash of its ids, and ours is not among them: it cuts texts as SmolLM's does.
CONVERT = (
    "import convert_hf_to_gguf as c, conversion.base as b; "
    "b.TextModel.get_vocab_base_pre = lambda *_: 'smollm'; c.main()"
)


def convert(folder: Path, file: Path, numbers: Numbers = "f32") -> Path:
    """Write the model of an exported folder as `file`. ValueError where no clone of llama.cpp is named."""
    clone = Path(os.environ.get(VARIABLE, ""))
    if not (clone / "convert_hf_to_gguf.py").is_file():
        raise ValueError(f"name a clone of llama.cpp in {VARIABLE}: its converter writes GGUF files")
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", CONVERT, str(folder), "--outfile", str(file), "--outtype", numbers]
    subprocess.run(command, cwd=clone, check=True, capture_output=True)
    return file
