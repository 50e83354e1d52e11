"""Small mistakes in the reading path, one at a time: does its test suite notice each?

A mutant changes one place of a file's syntax tree: a comparison, an operator, a number, a condition, a statement left
out. Each is imported instead of the file, in a fork of its own, and the tests of the reading path run until one fails.
One that does not end counts as noticed. `python -m tools.mutants [SHARE]` lists those that live.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trust.figures import at_least, Figure

ROOT = Path(__file__).resolve().parents[1]
FILES = ("sampling", "verify", "rules", "engine")
TESTS = (
    "test_sampling.py",
    "test_engine.py",
    "test_rules.py",
    "proof/test_lossless.py",
    "drafters/test_drafters.py",
)
SECONDS = 240  # of the processor: no test run is as long
MEMORY = 6 * 2**30  # bytes; four times what the tests need
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
# Mutants that no test can tell from the original: where, what it becomes, and the reason.
EQUAL = {
    ("sampling.SharedNoiseSampler.__init__", "0 → 1"): "the loop says the length before anything is drawn",
    ("sampling.SharedNoiseSampler.at", "place >= length → place > length"):
     "what is forgotten is computed again from seed and place",
    ("sampling.probabilities", "sorted=False → True"): "they are sorted anew, by index",
    ("sampling.argmax", "logits.device.type == 'cpu' → logits.device.type != 'cpu'"):
     "torch finds the same one, in ten times the time",
    ("sampling.SharedNoiseSampler.noise", "32 → 33"):
     "torch's generator takes the lower 32 bits, and these are the same",
    ("engine.check_proposal", "float((proposal.probs.sum(-1) - 1.0).abs().max()) < 0.001"
     " → float((proposal.probs.sum(-1) - 1.0).abs().max()) <= 0.001"): "no sum of float32 is off by exactly that much",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file in which the node of that `number` is another one, or none."""

    file: str
    function: str
    what: str
    line: int
    tree: ast.Module
    number: int
    other: ast.AST | None

    @property
    def source(self) -> str:
        copied = copy.deepcopy(self.tree)
        place = next((one for at, one in enumerate(ast.walk(copied)) if at == self.number), None)  # none: as it is
        return ast.unparse(ast.fix_missing_locations(put(copied, place, self.other)))

    @property
    def key(self) -> tuple[str, str]:
        """By which it is found where lines have moved."""
        return f"{self.file}.{self.function}", self.what

    @property
    def name(self) -> str:
        return f"{self.file}.py:{self.line}: {self.what}"

    @property
    def reason(self) -> str | None:
        """Why no test can notice it."""
        if self.what.startswith("strict=True → False"):
            return "both have a number for every node"
        return EQUAL.get(self.key)


def changes(node: ast.AST) -> Iterator[ast.AST | None]:
    """What this node may become; None leaves a statement out."""
    other: Any = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        other.ops = [COMPARED[type(node.ops[0])]()]
        yield other
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        other.op = COMPUTED[type(node.op)]()
        if not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield other
    elif isinstance(node, ast.BoolOp):
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield other.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value + 1 if node.value >= 1e-3 or not node.value else 1e-3
        yield ast.Constant(not node.value if isinstance(node.value, bool) else value)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        other.test = ast.UnaryOp(ast.Not(), other.test)
        yield other
    elif isinstance(node, ast.AugAssign | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield None


def in_words(node: ast.AST, other: ast.AST | None) -> str:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)} → not"
    return f"{ast.unparse(node)} → {'nothing' if other is None else ast.unparse(other)}"


def mutants(files: Sequence[str] = FILES) -> list[Mutant]:
    found, seen = [], Counter[tuple[str, str, str]]()
    for file in files:
        tree = ast.parse((ROOT / "specdec" / f"{file}.py").read_text(encoding="utf-8"))
        holders = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        left_alone = hints(tree)
        for number, node in enumerate(ast.walk(tree)):
            if not hasattr(node, "lineno") or number in left_alone or is_last_dimension(node, holders):
                continue
            function, holder = function_of(node, holders), holders[id(node)]
            for other in changes(node):
                what = in_words(node, other)
                what = f"{holder.arg}={what}" if isinstance(holder, ast.keyword) else what
                seen[file, function, what] += 1
                again = seen[file, function, what]
                what += f" ({again})" if again > 1 else ""
                found.append(Mutant(file, function, what, node.lineno, tree, number, other))
    return found


def function_of(node: ast.AST, holders: dict[int, ast.AST]) -> str:
    """The function or method that holds it, as Class.method; "" at the top of a file."""
    names = []
    while (node := holders.get(id(node), node)) and id(node) in holders:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
    return ".".join(reversed(names))


def is_last_dimension(node: ast.AST, holders: dict[int, ast.AST]) -> bool:
    """A -1 that names a dimension and no entry: distributions and logits are [n, V], so dimension 1 is the same."""
    if not isinstance(node, ast.UnaryOp) or ast.unparse(node) != "-1":
        return False
    holder = holders[id(node)]
    return (
        (isinstance(holder, ast.keyword) and holder.arg == "dim")
        or (isinstance(holder, ast.Call) and node is holder.args[0])
        or (isinstance(holder, ast.Subscript) and ast.unparse(holder.value).endswith(".shape"))
    )


def hints(tree: ast.Module) -> set[int]:
    """Places of annotations: what types say is mypy's to judge."""
    found = set()
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for holder in ast.walk(tree):
        for name in ("annotation", "returns"):
            if (hint := getattr(holder, name, None)) is not None:
                found |= {numbers[id(one)] for one in ast.walk(hint)}
    return found


def put(tree: ast.Module, place: ast.AST | None, other: ast.AST | None) -> ast.Module:
    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if node is place:
                return ast.Pass() if other is None else other
            return self.generic_visit(node)

    return Put().visit(tree)  # type: ignore[no-any-return]


def lives(mutant: Mutant) -> bool:
    """Whether every test passes with it: in a fork, which takes this process' imports along."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # some never end, and grow
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os._exit(int(tested(mutant)))
        except BaseException:
            os._exit(77)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def tested(mutant: Mutant) -> int:
    import pytest

    name = f"specdec.{mutant.file}"

    class Instead:
        def find_spec(self, wanted: str, *_: Any) -> Any:
            if wanted == name:
                return importlib.util.spec_from_loader(name, self)  # type: ignore[arg-type]

        def create_module(self, spec: Any) -> None:
            return None

        def exec_module(self, module: Any) -> None:
            module.__file__ = str(ROOT / "specdec" / f"{mutant.file}.py")
            exec(compile(mutant.source, module.__file__, "exec"), module.__dict__)

    sys.meta_path.insert(0, Instead())  # type: ignore[arg-type]
    os.chdir(ROOT)
    options = ["-x", "-n0", "-p", "no:cacheprovider"]
    return int(pytest.main([*options, *(f"tests/{name}" for name in TESTS)]))


def count(long: bool, share: float = 1.0) -> list[Figure]:
    import hypothesis
    import pytest
    import torch
    import transformers

    assert hypothesis and pytest and torch and transformers  # once, for all forks
    for loaded in [name for name in sys.modules if name.split(".")[0] in ("specdec", "conftest", "toyheads")]:
        del sys.modules[loaded]
    every = mutants()
    chosen = random.Random(6).sample(every, round(share * len(every)))
    trees = [ast.parse((ROOT / "specdec" / f"{file}.py").read_text(encoding="utf-8")) for file in FILES]
    sound = [Mutant(file, "", "as it is", 0, tree, -1, None) for file, tree in zip(FILES, trees, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        passed = sum(pool.map(lives, sound[:1] if share < 1.0 else sound))
        alive = [one for one, living in zip(chosen, pool.map(lives, chosen), strict=True) if living]
    return [
        Figure("the tests pass on what is not changed", str(passed), "≥ 1", passed >= 1),
        *told(every, chosen, alive),
    ]


def told(every: Sequence[Mutant], chosen: Sequence[Mutant], alive: Sequence[Mutant]) -> list[Figure]:
    unexplained = [one for one in alive if one.reason is None]
    stale = EQUAL.keys() - {one.key for one in every}
    killed = len(chosen) - len(alive)
    return [
        at_least("mutants", len(chosen), 200),
        Figure("noticed", f"{killed:,} ({killed / len(chosen):.1%})", "≥ 95 %", killed >= 0.95 * len(chosen)),
        *(Figure(f"lives: {one.name}", one.reason or "not explained", "", True) for one in alive),
        Figure("living without an explanation", f"{len(unexplained)}", "0", not unexplained),
        Figure("explanations of what is no longer there", f"{len(stale)}", "0", not stale),
    ]


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / room) for room in ("", "tests", "tests/proof", "tests/drafters", "tests/models")]
    began = time.monotonic()
    for figure in count(True, float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(figure.name, figure.figure, figure.target, figure.holds)
    print(f"{time.monotonic() - began:.0f} s")
