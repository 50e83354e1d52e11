"""What is imported is declared, once for pip and once for the project; and the package comes without torch."""

import ast
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from huggingface_hub import SpaceHardware
from packaging.requirements import Requirement

import specdec
from specdec.families.smollm2 import REPOSITORY
from specdec.ui import menu
from tools import sources

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
    assert list(page) == [line.replace(",<=2.13.0", "") for line in declared("requirements.txt")]  # ZeroGPU's newest
    assert listed("dev") == declared("requirements-dev.txt")
    assert len(listed("dependencies")) <= 10 and len(page) <= 18


def test_changelog_and_citation_begin_with_this_version() -> None:
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0] == specdec.__version__
    assert f"\nversion: {specdec.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_head_of_the_readme_fits_what_is_required() -> None:
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    told = dict(re.findall(r"^(\w+): (.*)$", head, re.M))
    needed = {one.name: one.specifier for one in map(Requirement, declared("requirements.txt"))}
    assert told["sdk"] == "gradio" and told["sdk_version"] in needed["gradio"]
    assert told["suggested_hardware"] in {str(flavor.value) for flavor in SpaceHardware}
    zero = next(one for one in sources.sources()["hosts"] if one["name"] == "ZeroGPU")["values"]
    assert told["python_version"].strip('"') in zero["python"] and REPOSITORY in told["models"]
    assert zero["torch"][-1] in needed["torch"] and f"{zero['torch'][-1]}.1" not in needed["torch"]
    assert (ROOT / told["app_file"]).is_file() and len(told["short_description"]) <= 60


# What packages need beside the engine's packages.
EXTRAS = {"ui": ["app"], "bench": ["bench"], "traces": ["bench"], "zero.py": ["app"]}
ALL = ["app", "bench", "dev"]
NAMES = {"markdown_it": "markdown-it-py", "PIL": "pillow"}  # packages whose module has another name
# Triton comes with torch for a GPU, spaces with ZeroGPU; the bench measures llama.cpp where it is.
OPTIONAL = {"triton", "spaces", "llama-cpp"}


def imports(path: Path) -> set[str]:
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    others = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"specdec", "tools", "tests"}
    return {NAMES.get(name, name.replace("_", "-")) for name in others} - OPTIONAL


def test_what_is_imported_is_declared_where_it_belongs_and_nothing_else() -> None:
    used = set[str]()
    files = (file for top in ("specdec", "tools", "tests") for file in (ROOT / top).rglob("*.py"))
    for path in (ROOT / "app.py", *files):
        top, room = path.relative_to(ROOT).parts[:2] if path.parent != ROOT else ("", "")
        extras = EXTRAS.get(room, []) if top == "specdec" else ALL
        lines = [line for key in ("dependencies", *extras) for line in listed(key)]
        missing = imports(path) - {Requirement(line).name.replace("_", "-") for line in lines}
        assert not missing, f"{path} imports {missing}"
        used |= imports(path)
    assert {Requirement(line).name.replace("_", "-") for line in declared("requirements.txt")} <= used


def test_the_package_gives_its_main_names_and_loads_no_torch() -> None:
    code = "import sys, specdec, specdec.servers.connect, specdec.servers.lane; specdec.METHODS; "
    code += "raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    assert all(getattr(specdec, name).__doc__ for name in specdec.__all__ if name != "METHODS")
    assert len(specdec.__all__) <= 12
    assert len([name for name in vars(specdec.Engine) if not name.startswith("_")]) <= 12


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
def test_the_wheel_is_light_and_holds_what_a_user_runs(wheel) -> None:
    assert 20_000_000 < sum(len(zlib.compress(path.read_bytes(), 6)) for path in wheel.values()) <= MOST
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "specdec").rglob("*.py")}
    kept = [path for path in (ROOT / "assets").rglob("*") if path.is_file() and not left_out(path)]
    assert {*wheel} == ours | {f"specdec/{path.relative_to(ROOT).as_posix()}" for path in kept} | {
        "specdec/models/native.cpp",
        "specdec/py.typed",
    }


def test_menus_hide_what_the_wheel_leaves_out(wheel, tmp_path, monkeypatch) -> None:
    for place, path in wheel.items():
        if place.startswith("specdec/assets/family/"):
            (link := tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    family = tmp_path / "specdec" / "assets" / "family"
    monkeypatch.setattr(menu, "FAMILY", family)
    offered = menu.drafters()
    assert not {"medusa", "block", "draft_model:story"} & {*offered}
    assert {"draft_model", "eagle3", "mtp", "early_exit"} <= {*offered}
