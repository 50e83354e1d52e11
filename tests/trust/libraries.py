"""Compiled layers that others planted, or that are damaged: none is run, none ends the engine, and it still works."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from .figures import all_of, at_least, Figure, none, skipped

ROOT = Path(__file__).resolve().parents[2]
OTHER = 65534  # a user who is not this one
# Says whether the layers are compiled, and whether a product with them is that of torch.
ENGINE = """
import torch
from specdec.models import native
from specdec.models.matrix import kept, linear
torch.manual_seed(0)
x, matrix = torch.randn(3, 64), torch.randn(96, 64)
right = torch.allclose(linear(x, kept(matrix, torch.float32, "cpu")), x @ matrix.T, atol=1e-4)
print("compiled" if native.library() else "torch", right)
"""
# A compiler that is done at once: what it makes was made by the real one before.
COMPILER = """#!/bin/sh
[ "$1" = --version ] && echo 12 && exit
for last; do :; done
cp "{sound}" "$last"
"""
PLANT = """#include <stdio.h>
__attribute__((constructor)) void run(void) {{ FILE *f = fopen("{ran}", "w"); if (f) fclose(f); }}
void specdec_product(void) {{}} void specdec_layers(void) {{}}
"""


class Bench:
    """A place with a sound library and a planted one, and a cache for the engine."""

    def __init__(self, place: Path) -> None:
        self.place, self.ran = place, place / "ran"
        self.environment = {**os.environ, "TMPDIR": str(place / "tmp"), "XDG_CACHE_HOME": str(place / "cache")}
        self.environment.pop("SPECDEC_NATIVE", None)
        (place / "tmp").mkdir()

    def prepare(self) -> bool:
        """With the real compiler, once; whether it could."""
        if self.engine() != "compiled True":
            return False
        (file,) = self.files()
        (self.place / "sound.so").write_bytes(file.read_bytes()[:-32])
        (self.place / "plant.c").write_text(PLANT.format(ran=self.ran))
        made = [shutil.which("cc") or "g++", "-shared", "-fPIC", "plant.c", "-o", "plant.so"]
        subprocess.run(made, cwd=self.place, check=True)
        (self.place / "bin").mkdir()
        compiler = self.place / "bin" / "g++"
        compiler.write_text(COMPILER.format(sound=self.place / "sound.so"))
        compiler.chmod(0o755)
        self.environment["PATH"] = f"{compiler.parent}{os.pathsep}{os.environ['PATH']}"
        return True

    def files(self) -> list[Path]:
        return sorted((self.place / "cache" / "specdec").glob("*.so"))

    def fresh(self) -> Path:
        """The only file of a cache that a start has just filled."""
        shutil.rmtree(self.place / "cache", ignore_errors=True)
        shutil.rmtree(self.place / "tmp")
        (self.place / "tmp").mkdir()
        self.engine()
        return self.files()[0]

    def engine(self) -> str:
        done = subprocess.run(
            [sys.executable, "-c", ENGINE], cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=600
        )
        return done.stdout.strip() if done.returncode == 0 else f"ended with {done.returncode}"

    def plant(self, file: Path, owner: int = os.geteuid(), mode: int = 0o600, digest: bool = True) -> None:
        content = (self.place / "plant.so").read_bytes()
        file.unlink(missing_ok=True)
        file.write_bytes(content + (hashlib.sha256(content).digest() if digest else b""))
        file.chmod(mode)
        if owner != os.geteuid():
            os.chown(file, owner, owner)


def damaged(change: Callable[[bytes], bytes]) -> Callable[[Bench, Path], object]:
    return lambda bench, file: file.write_bytes(change(file.read_bytes()))


def without_functions(bench: Bench, file: Path) -> None:
    bench.plant(file, digest=False)


def linked(bench: Bench, file: Path) -> None:
    bench.plant(bench.place / "there.so")
    file.unlink()
    file.symlink_to(bench.place / "there.so")


def linked_folder(bench: Bench, file: Path) -> None:
    bench.plant(file)
    shutil.rmtree(bench.place / "there", ignore_errors=True)
    file.parent.rename(bench.place / "there")
    file.parent.symlink_to(bench.place / "there")


def others_folder(bench: Bench, file: Path) -> None:
    bench.plant(file)
    os.chown(file.parent, OTHER, OTHER)


def others_folders(bench: Bench, file: Path) -> None:
    others_folder(bench, file)
    second = bench.place / "tmp" / f"specdec-{os.geteuid()}"
    second.mkdir()
    shutil.copy(file, second)
    os.chown(second, OTHER, OTHER)


DAMAGE: dict[str, Callable[[Bench, Path], object]] = {
    "half of it": damaged(lambda content: content[: len(content) // 2]),
    "a page less": damaged(lambda content: content[:-4096]),
    "nothing": damaged(lambda content: b""),
    "one bit": damaged(lambda content: bytes([*content[:5000], content[5000] ^ 1, *content[5001:]])),
    "nonsense": damaged(lambda content: b"nonsense" * 9999),
    "a head alone": damaged(lambda content: content[:64]),
    "a program without a digest": without_functions,
    "a pipe": lambda bench, file: (file.unlink(), os.mkfifo(file)),
    "a folder": lambda bench, file: (file.unlink(), file.mkdir()),
}
PLANTED: dict[str, Callable[[Bench, Path], object]] = {
    "all may write it": lambda bench, file: bench.plant(file, mode=0o666),
    "a group may write it": lambda bench, file: bench.plant(file, mode=0o660),
    "a link": linked,
    "a linked folder": linked_folder,
}
BY_ROOT: dict[str, Callable[[Bench, Path], object]] = {
    "another user's": lambda bench, file: bench.plant(file, OTHER),
    "another user's folder": others_folder,
    "two folders of another user": others_folders,
}
SHORT = (
    "half of it",
    "nothing",
    "all may write it",
    "a linked folder",
    "another user's",
    "two folders of another user",
)


def count(long: bool) -> list[Figure]:
    name = "planted libraries that were run"
    ways = {**DAMAGE, **PLANTED, **(BY_ROOT if os.geteuid() == 0 else {})}
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place))
        if not bench.prepare():
            return [skipped(name, "0", "there is no g++ here, or no processor that the layers are for")]
        chosen = {way: do for way, do in ways.items() if long or way in SHORT}
        said = {}
        for way, do in chosen.items():
            do(bench, bench.fresh())
            said[way] = bench.engine()
        ran = bench.ran.exists()
        bench.fresh()
        bench.plant(bench.files()[0])
        bench.engine()
        sees = bench.ran.exists()
    works = [way for way, one in said.items() if one in ("compiled True", "torch True")]
    deaths = [f"{way}: {one}" for way, one in said.items() if one.startswith("ended")]
    return [
        at_least("ways to damage or plant one", len(chosen), len(SHORT) - 2),
        none(name, int(ran)),
        none("processes that ended", len(deaths)),
        all_of("engines that still compute what is right", len(works), len(chosen), len(SHORT) - 2),
        Figure("one's own library of the same kind is run, so it would be seen", "yes" if sees else "no", "yes", sees),
        *[Figure(one, "", "", False) for one in deaths],
    ]
