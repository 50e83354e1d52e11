"""Mutation testing: plant small mistakes in `FILES`, one at a time, and check that the tests notice each of them.

A mutant is a file with one change in its syntax tree: another comparison, operator, number or condition, or a dropped
statement. A forked process imports the mutant instead of the file, and runs the tests until one fails. If the tests do
not end, the mutant counts as noticed. `python -m tools.mutants [SECONDS [FILE …]]` lists the mutants that survive.
"""

import ast
import importlib.util
import math
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

from tests.report import at_least, Figure

ROOT = Path(__file__).resolve().parents[1]
FILES = ("sampling", "verify", "rules", "task", "host", "loop")
# In this order, but the test file of the mutated file runs first.
TESTS = "test_sampling.py test_loop.py drafters/test_drafters.py proof/test_lossless.py test_rules.py".split()
TEST_SECONDS = 60  # time limit of a test; without a mutant, each takes less than a fifth of it
CPU_FACTOR = 3  # limit of a test run, as a multiple of the CPU time that it takes without a mutant
MEMORY = 6 * 2**30  # limit of a test run in bytes; without a mutant, the tests need a quarter of it
OTHER_COMPARISON = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OTHER_OPERATION = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
SORTED_WHOLE = "if the likely tokens do not reach top_p, the whole row is sorted"
SORTED_ALIKE = "the limit affects only speed: both ways to sort give the same result"
# Mutants that behave like the original: (function, change) -> the reason.
EQUAL = {
    ("sampling.SharedNoiseSampler.__init__", "0 → 1"): "the decoding loop calls `at` before it draws anything",
    ("sampling.SharedNoiseSampler.at", "position >= length → position > length"):
     "if noise is dropped, it is computed again from the seed and the position",
    ("sampling.highest_ids", "sorted=False → True"): "only the least of these values is used",
    ("sampling.normalised", "probs.shape[-1] < MIN_NORMALISED → probs.shape[-1] <= MIN_NORMALISED"):
     "the limit affects only precision: a row of exactly that length sums to one well enough either way",
    ("sampling.normalised", "probs.shape[-1] < MIN_NORMALISED or probs.device.type != 'cpu'"
     " → probs.shape[-1] < MIN_NORMALISED and probs.device.type != 'cpu'"):
     "the limit affects only precision: a short row may be normalised, too",
    ("sampling.", "1024 → 1025"): SORTED_ALIKE,
    ("sampling.apply_top_p", "probs.device.type == 'cpu' and probs.shape[-1] > MAX_SORTED_WHOLE and len(probs)"
     " → probs.device.type == 'cpu' or probs.shape[-1] > MAX_SORTED_WHOLE or len(probs)"): SORTED_ALIKE,
    ("sampling.mark_tail_of_long_row", "probs >= threshold → probs > threshold"):
     "tokens of exactly this probability are always dropped, too",
    ("sampling.apply_top_p", "probs.shape[-1] > MAX_SORTED_WHOLE → probs.shape[-1] >= MAX_SORTED_WHOLE"): SORTED_ALIKE,
    ("sampling.mark_tail_of_long_row", "0.0 → 1.0"): "a row without probabilities is NaN either way",
    ("sampling.mark_tail_of_long_row", "(1.0 - top_p) / 2 → (1.0 - top_p) * 2"): SORTED_WHOLE,
    ("sampling.mark_tail_of_long_row", "1.0 → 2.0"): SORTED_WHOLE,
    ("sampling.mark_tail_of_long_row", "total >= top_p + SUM_TOLERANCE → total > top_p + SUM_TOLERANCE"):
     "if the sum has exactly that value, both branches mark the same tokens",
    ("sampling.mark_tail_of_long_row", "2 → 3"): SORTED_WHOLE,
    ("sampling.mark_tail_of_long_row", "top_p + SUM_TOLERANCE → top_p - SUM_TOLERANCE"):
     "likely tokens sum to (1 + top_p) / 2, which is less than this only if top_p is 1 within float32's error",
    ("sampling.", "1e-06 → 0.001"): SORTED_WHOLE,
    ("sampling.", "14 → 15"): "the limit affects only precision: shorter rows sum to one well enough either way",
    ("task.CycleResult", "frozen=True → False"): "nothing writes to it",
    ("sampling.argmax", "logits.device.type == 'cpu' → logits.device.type != 'cpu'"):
     "torch's argmax returns the same, ten times slower",
    ("sampling.SharedNoiseSampler.noise", "32 → 33"):
     "torch's generator uses only the lower 32 bits, which are the same",
    ("host.check_proposal", "float((proposal.probs.sum(-1) - 1.0).abs().max()) < 1e-05"
     " → float((proposal.probs.sum(-1) - 1.0).abs().max()) <= 1e-05"): "no sum of float32 is off by exactly that much",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file of `specdec` with one change. `file`, `function` and `what` identify it even if lines move."""

    file: str
    function: str
    what: str
    line: int
    source: str

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.file}.{self.function}", self.what

    @property
    def reason(self) -> str | None:
        """Return why no test can notice the mutant, or None if a test should notice it."""
        if self.what.startswith("strict=True → False"):
            return "both sequences have equal lengths"
        return EQUAL.get(self.key)


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield each change to `node`: the part to replace, and the text to put in its place."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER_COMPARISON:
        yield node, ast.unparse(ast.Compare(node.left, [OTHER_COMPARISON[type(node.ops[0])]()], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in OTHER_OPERATION:
        if not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield node, ast.unparse(ast.BinOp(node.left, OTHER_OPERATION[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        yield node, ast.unparse(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield node, repr(node.value + 1 if node.value >= 1e-3 or not node.value else 1e-3)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, f"not ({ast.unparse(node.test)})"
    elif isinstance(node, ast.AugAssign | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield node, "pass"


def mutants(files: Sequence[str] = FILES) -> list[Mutant]:
    result, seen = list[Mutant](), Counter[tuple[str, str, str]]()
    for file in files:
        source = (ROOT / "specdec" / f"{file}.py").read_bytes()
        tree = ast.parse(source)
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if is_last_dimension(node, parents):
                continue
            function, parent = function_of(node, parents), parents.get(node)
            for place, new in changes(node):
                what = f"{ast.unparse(place)} → {new}"
                what = f"{parent.arg}={what}" if isinstance(parent, ast.keyword) else what
                seen[file, function, what] += 1
                count = seen[file, function, what]
                what += f" ({count})" if count > 1 else ""
                result.append(Mutant(file, function, what, place.lineno, replace_node(source, place, new)))  # type: ignore[attr-defined]
    return result


def replace_node(source: bytes, place: Any, replacement: str) -> str:
    """Return the source with the text `replacement` in place of the node `place`."""
    lines = source.splitlines(keepends=True)
    start = sum(map(len, lines[: place.lineno - 1])) + place.col_offset
    end = sum(map(len, lines[: place.end_lineno - 1])) + place.end_col_offset
    replacement = replacement if replacement == "pass" else f"({replacement})"
    return (source[:start] + replacement.encode() + source[end:]).decode()


def function_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Return the class and function that contain the node, as Class.method; "" at the top of a file."""
    names: list[str] = []
    while node := parents.get(node):  # type: ignore[assignment]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.insert(0, node.name)
    return ".".join(names)


def is_last_dimension(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether the node is -1 as a dimension. In tensors [n, V], the mutant 1 would name the same dimension."""
    if not isinstance(node, ast.UnaryOp) or ast.unparse(node) != "-1":
        return False
    parent = parents[node]
    return (
        (isinstance(parent, ast.keyword) and parent.arg == "dim")
        or (isinstance(parent, ast.Call) and node is parent.args[0])
        or (isinstance(parent, ast.Subscript) and ast.unparse(parent.value).endswith(".shape"))
    )


def survives(mutant: Mutant, cpu_seconds: int = resource.RLIM_INFINITY) -> bool:
    """Return whether every test passes with the mutant. The tests run in a fork, which inherits loaded modules."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # some mutants allocate memory without end
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os._exit(run_tests(mutant))
        except BaseException:
            os._exit(77)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def run_tests(mutant: Mutant) -> int:
    """Run the tests with the mutant in place of the original file. Return pytest's exit code."""
    import pytest

    name = f"specdec.{mutant.file}"

    class MutantImporter:
        def find_spec(self, wanted: str, *_: Any) -> Any:
            if wanted == name:
                return importlib.util.spec_from_loader(name, self)  # type: ignore[arg-type]

        def create_module(self, spec: Any) -> None:
            return None

        def exec_module(self, module: Any) -> None:
            module.__file__ = str(ROOT / "specdec" / f"{mutant.file}.py")
            exec(compile(mutant.source, module.__file__, "exec"), module.__dict__)

    sys.meta_path.insert(0, MutantImporter())  # type: ignore[arg-type]
    os.chdir(ROOT)
    options = ["-x", "-n0", "-p", "no:cacheprovider", "-o", f"timeout={TEST_SECONDS}"]
    tests = sorted(TESTS, key=lambda test: f"test_{mutant.file}.py" != test)
    return int(pytest.main([*options, *(f"tests/{test}" for test in tests)]))


def try_mutants(files: Sequence[str] = FILES, seconds: float = math.inf) -> list[Figure]:
    """Test mutants in random order for `seconds`, and return the figures."""
    import hypothesis
    import pytest
    import torch
    import transformers

    assert hypothesis and pytest and torch and transformers  # loaded before the forks, which inherit them
    for loaded in [name for name in sys.modules if name.split(".")[0] in ("specdec", "tests")]:
        del sys.modules[loaded]
    torch.set_num_threads(1)  # two forks run at once; with more threads, they would compete for cores
    all_mutants, end = mutants(files), time.monotonic() + seconds
    source = (ROOT / "specdec" / f"{files[0]}.py").read_text(encoding="utf-8")
    unchanged = survives(Mutant(files[0], "", "as it is", 0, source))
    limit = round(CPU_FACTOR * resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)

    def outcome(mutant: Mutant) -> bool | None:
        return survives(mutant, limit) if time.monotonic() < end else None

    with ThreadPoolExecutor(2) as pool:
        mixed = random.Random(6).sample(all_mutants, len(all_mutants))
        outcomes = list(zip(mixed, pool.map(outcome, mixed), strict=True))
    tried = sum(survived is not None for _, survived in outcomes)
    alive = [mutant for mutant, survived in outcomes if survived]
    unexplained = [mutant for mutant in alive if mutant.reason is None]
    stale = [key for key in EQUAL.keys() - {mutant.key for mutant in all_mutants} if key[0].split(".")[0] in files]
    killed = tried - len(alive)
    unequal = killed + len(unexplained)
    return [
        Figure("the tests pass on what is not changed", str(unchanged), "True", unchanged),
        at_least("mutants", tried, 200),
        Figure(
            "noticed",
            f"{killed:,} of {unequal:,} that change something ({killed / max(1, unequal):.1%})",
            "≥ 95 %",
            killed >= 0.95 * unequal,
        ),
        *(
            Figure(f"lives: {mutant.file}.{mutant.function}: {mutant.what}", mutant.reason or "not explained", "", True)
            for mutant in alive
        ),
        Figure("living without an explanation", f"{len(unexplained)}", "0", not unexplained),
        Figure("explanations of what is no longer there", f"{len(stale)}", "0", not stale),
    ]


if __name__ == "__main__":
    for figure in try_mutants(sys.argv[2:] or FILES, float((sys.argv[1:] or ["inf"])[0])):
        print(figure.name, figure.figure, figure.target, figure.holds)
