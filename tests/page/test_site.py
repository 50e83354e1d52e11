"""The site: its files, their size, and the folders that it may overwrite."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import RepoCard

from specdec.cli import main
from specdec.families.export import browser_files
from specdec.ui import site
from specdec.ui.tabs import TABS
from specdec.ui.text import LANGUAGES

WHOLE = 30_000_000  # bytes; 17 MB of them are the engine's models
LINK = re.compile(r'(?:src|href)="([^"]*)"')


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A site where an earlier one was."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "assets").mkdir()
    (folder / site.STYLE).write_text("/* an earlier one */", encoding="utf-8")
    size = site.write(folder, "1.0", browser_files, "https://host.example/some/path/")
    assert size == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= WHOLE
    return folder


@pytest.mark.parametrize("index", ["index.html", "zh/index.html"])
def test_links_are_relative_and_lead_to_files(made, index: str) -> None:
    page = (made / index).read_text(encoding="utf-8")
    links = [link for link in LINK.findall(page) if not link.startswith(("https://", "data:", "#"))]
    assert len(links) == 7
    assert not any(link.startswith("/") for link in links)
    assert all((made / index).parent.joinpath(link).is_file() for link in links)
    sources = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', page)
    assert not any(link.startswith("http") for link in sources)
    policy = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert len(policy) == 1 and "http" not in policy[0] and policy[0].startswith("default-src 'self' ")
    assert 'content="https://host.example/some/path/preview.png"' in page
    assert all(f'id="{name}-button"' in page for name in TABS) and "@@" not in page


def test_what_the_host_is_told_is_there(made) -> None:
    for language in LANGUAGES:
        text = (made / f"data/{language}/page.js").read_text(encoding="utf-8")
        page = json.loads(text[text.index('= {"parts') + 2 :].strip().removesuffix(";"))
        files = [page["begin"]] + [name for run in page["runs"].values() for name in run["files"].values()]
        assert [name for name in files if not (made / f"{name}.js").is_file()] == []
        scripts = {part["script"] for part in page["parts"]}
        assert scripts >= {"race/player", "step/step", "guide/guide", "theory/theory"}
        asked = [name for part in page["parts"] for name in part["server"].values()]
        assert [name for name in asked if not list(made.glob(f"{name}.js"))] == []


def test_a_static_space_finds_its_settings(made) -> None:
    settings = RepoCard((made / "README.md").read_text(encoding="utf-8")).data
    assert settings["sdk"] == "static" and settings["license"] == "apache-2.0" and settings["title"]
    assert (made / settings["app_file"]).is_file()
    assert settings["custom_headers"]["cross-origin-opener-policy"] == "same-origin"  # the engine then has threads


def test_another_folder_is_refused_in_one_sentence_and_stays(tmp_path, capsys) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    for out in (tmp_path, tmp_path / "thesis.txt", tmp_path / "thesis.txt" / "site"):
        assert main(["site", "--out", str(out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
