"""What is imported is declared, once for pip and once for the project; and the package comes without torch."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import zlib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from huggingface_hub import SpaceHardware
from packaging.requirements import Requirement

import specdec
from specdec.ui import menu

ROOT = Path(__file__).resolve().parents[1]


def declared(name: str) -> list[str]:
    lines = (line.partition(" #")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-r")]


def listed(key: str) -> list[str]:
    """An array of strings in pyproject.toml. (Python 3.10 has no reader of TOML.)"""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = ast.literal_eval(text.partition(f"\n{key} = ")[2].partition("\n]")[0] + "]")
    assert isinstance(found, list)
    return found


def test_the_project_and_the_lists_for_pip_agree() -> None:
    page = dict.fromkeys([*listed("dependencies"), *listed("app"), *listed("bench")])
    assert list(page) == declared("requirements.txt")
    assert listed("dev") == declared("requirements-dev.txt")
    assert len(listed("dependencies")) <= 8 and len(page) <= 16


def test_the_head_of_the_readme_fits_what_is_required() -> None:
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    told = dict(re.findall(r"^(\w+): (.*)$", head, re.M))
    needed = {one.name: one.specifier for one in map(Requirement, declared("requirements.txt"))}
    assert told["sdk"] == "gradio" and told["sdk_version"] in needed["gradio"]
    assert told["suggested_hardware"] in {str(flavor.value) for flavor in SpaceHardware}
    assert (ROOT / told["app_file"]).is_file() and len(told["short_description"]) <= 60


EXTRAS = {"ui": ["app"], "bench": ["bench"], "app.py": ["app"]}  # what rooms need beside the engine's packages


@functools.cache
def bringing(name: str) -> set[str]:
    """A package and those that it cannot do without."""
    needed = (Requirement(line) for line in requires(name) or [])
    return {name, *(one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""}))}


def test_every_import_is_declared_where_it_belongs() -> None:
    homes = packages_distributions()
    for path in [*(ROOT / "specdec").rglob("*.py"), ROOT / "app.py"]:
        room = path.relative_to(ROOT / "specdec").parts[0] if path.name != "app.py" else path.name
        known = [*listed("dependencies"), *(line for extra in EXTRAS.get(room, []) for line in listed(extra))]
        names = {one.lower().replace("-", "_") for line in known for one in bringing(Requirement(line).name)}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for module in {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"specdec"}:
                brought = {home.lower().replace("-", "_") for home in homes.get(module, [module])}
                optional = module == "triton"  # comes with torch for a GPU
                assert optional or brought & names, f"{path} imports {module}"


def test_the_package_gives_its_main_names_and_loads_no_torch() -> None:
    code = "import sys, specdec; specdec.METHODS; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    from specdec import generate, load, race

    assert all(map(callable, (generate, load, race)))
    assert {"load", "generate", "race"} <= set(specdec.__all__)


# ---- the wheel ----

MOST = 30_000_000  # bytes
LEFT_OUT = {"medusa", "block", "draft_model_story"}  # of the family
HEAD = ("models", "smollm2", "eagle3")


@pytest.fixture(scope="module")
def wheel() -> dict[str, Path]:
    """The files that it would hold, by their place in it."""
    return {file.distribution_path: Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}


def left_out(path: Path) -> bool:
    parts = path.relative_to(ROOT / "assets").parts
    runs = parts[0] == "traces" and parts[1].startswith(("medusa", "block"))
    return runs or (parts[0] == "family" and parts[1] in LEFT_OUT) or parts[:3] == HEAD


@pytest.mark.long
def test_the_wheel_is_light_and_holds_what_a_user_runs(wheel: dict[str, Path]) -> None:
    assert 20_000_000 < sum(len(zlib.compress(path.read_bytes(), 6)) for path in wheel.values()) <= MOST
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "specdec").rglob("*.py")}
    kept = [path for path in (ROOT / "assets").rglob("*") if path.is_file() and not left_out(path)]
    assert {*wheel} == ours | {f"specdec/{path.relative_to(ROOT).as_posix()}" for path in kept} | {
        "specdec/models/native.cpp"
    }


def test_menus_hide_what_the_wheel_leaves_out(
    wheel: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, path in wheel.items():
        if place.startswith("specdec/assets/family/"):
            (link := tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    family = tmp_path / "specdec" / "assets" / "family"
    monkeypatch.setattr(menu, "FAMILY", family)
    offered = menu.drafters()
    assert not {"medusa", "block", "draft_model:story"} & {*offered}
    assert {"draft_model", "eagle3", "mtp", "early_exit"} <= {*offered}
