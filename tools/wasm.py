"""`python -m tools.wasm`: compile `native.cpp` for browsers.

Debian's packages: clang-16, lld-16, wasi-libc, libc++-16-dev-wasm32, libclang-rt-16-dev-wasm32. `--check` compares the
result with the binaries in the repository, and writes nothing.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from specdec.models.build import SOURCE

PLACE = Path(__file__).resolve().parents[1] / "assets/page/engine"
RELAXED = ("-mrelaxed-simd",)
THREADS = (  # browsers allow threads only to pages that are isolated from other origins
    "-matomics", "-mbulk-memory", "-Wl,--shared-memory,--import-memory,--max-memory=1073741824,--no-check-features",
    *(f"-Wl,--export={name}" for name in ("specdec_help", "__stack_pointer", "__wasm_init_tls", "__tls_size")),
)  # fmt: skip
BINARIES = {
    "layers.wasm": (), "relaxed.wasm": RELAXED, "layers_threads.wasm": THREADS,
    "relaxed_threads.wasm": (*RELAXED, *THREADS),
}  # fmt: skip
COMPILE = (
    "clang++-16 --target=wasm32-wasi -isystem /usr/lib/llvm-16/include/wasm32-wasi/c++/v1 -msimd128 -std=c++17 -O3 "
    "-ffp-contract=off -fno-exceptions -fno-rtti -w -mexec-model=reactor -Wl,-z,stack-size=1048576,--strip-all"
).split()
EXPORTED = ("specdec_layers", "specdec_normalise", "specdec_product", "malloc")


def compile_module(name: str) -> bytes:
    """Compile a module. The same source and compiler give the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / name
        options = [*BINARIES[name], *(f"-Wl,--export={function}" for function in EXPORTED)]
        subprocess.run([*COMPILE, *options, str(SOURCE), "-o", str(binary)], check=True, timeout=300)
        return binary.read_bytes()


def main() -> None:
    check = "--check" in sys.argv
    for name in BINARIES:
        compiled, place = compile_module(name), PLACE / name
        if not check:
            place.write_bytes(compiled)
        elif compiled != place.read_bytes():
            sys.exit(f"{name} differs from what native.cpp compiles to; run python -m tools.wasm")
        print(f"{name}: {len(compiled):,} bytes")


if __name__ == "__main__":
    main()
