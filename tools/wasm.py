"""Compile `native.cpp` for browsers: `python -m tools.wasm` (Debian: clang, lld, wasi-libc, libc++-14-dev-wasm32,
libclang-rt-14-dev-wasm32). `--check` compares with the binary in the repository and writes nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from specdec.models.native import SOURCE

BINARY = Path(__file__).resolve().parents[1] / "assets/page/engine/layers.wasm"
COMPILE = (
    "clang++-14 --target=wasm32-wasi -msimd128 -std=c++17 -O3 -ffp-contract=off -fno-exceptions -fno-rtti -w "
    "-mexec-model=reactor -Wl,-z,stack-size=1048576,--strip-all"
).split()
EXPORTED = ("specdec_layers", "specdec_normalise", "specdec_product", "malloc")


def compiled() -> bytes:
    """The module; the same bytes from the same source and compiler."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / BINARY.name
        exports = [f"-Wl,--export={name}" for name in EXPORTED]
        subprocess.run([*COMPILE, *exports, str(SOURCE), "-o", str(binary)], check=True, timeout=300)
        return binary.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.wasm", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true")
    made = compiled()
    if not parser.parse_args().check:
        BINARY.write_bytes(made)
    elif made != BINARY.read_bytes():
        sys.exit(f"{BINARY.name} is not what native.cpp compiles to: python -m tools.wasm")
    print(f"{BINARY.name}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
