"""Whatever Gradio does not document is in one file, and the page is there without any of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdec.ui import gradio_private, visitors
from specdec.ui.build import build
from specdec.ui.theme import launch_settings

PACKAGE = Path(gradio_private.__file__).parents[1]
HERE = Path(gradio_private.__file__)
THEORY = {"data": [0.7, 4, 0.1, 1.0, 0.0]}


def touched() -> list[str]:
    """Every name that `private` is asked for."""
    calls = [node for node in ast.walk(ast.parse(HERE.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    asked = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "private"]
    return sorted({node.value for node in asked if isinstance(node, ast.Constant)})


def answered(client: httpx.Client) -> bool:
    event = client.post("gradio_api/call/theory", json=THEORY).json()["event_id"]
    return "2.7731" in client.get(f"gradio_api/call/theory/{event}").text


def served(**wanted: Any) -> Iterator[httpx.Client]:
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    with httpx.Client(base_url=url, timeout=60, **wanted) as client:
        yield client
    demo.close()


def absences() -> Iterator[Any]:
    """All of it; and halves, so that of any two names each is missing once while the other is there."""
    names = touched()
    yield pytest.param(set(names), id="all of it")
    for bit in range((len(names) - 1).bit_length()):
        for side in (0, 1):
            half = {name for number, name in enumerate(names) if number >> bit & 1 == side}
            yield pytest.param(half, id=f"{bit}-{side}", marks=pytest.mark.long)


@pytest.mark.parametrize("absent", absences())
def test_the_page_is_there_without(absent: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = gradio_private.private

    def without(owner: Any, asked: str, default: Any = None) -> Any:
        return default if asked in absent else real(owner, asked, default)

    monkeypatch.setattr(gradio_private, "private", without)
    for client in served():
        for language in ("en", "zh"):
            page = client.get("zh" if language == "zh" else "", headers={"Accept-Language": language})
            assert page.status_code == 200 and "<gradio-app" in page.text
        assert answered(client)
        v2 = ("call/v2/theory", {"alpha": 0.7})
        for path, sent in (("call/nothing", THEORY), ("run/nothing", THEORY), ("run/theory", THEORY), v2):
            refused = client.post(f"gradio_api/{path}", json=sent).status_code < 500
            assert refused or "get_blocks" in absent


def test_nothing_outside_of_the_file_touches_it() -> None:
    """No module of Gradio's is imported, and no attribute is named that is not its own there."""
    common = set("fn page scope request inputs outputs push blocks".split())  # names that others have, too
    private = {*touched(), "_data"} - common
    for path in [*PACKAGE.rglob("*.py"), PACKAGE.parent / "app.py"]:
        if path == HERE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradio") and not node.level:
                raise AssertionError(f"{path} imports from {node.module}")
            if isinstance(node, ast.Attribute) and PACKAGE / "ui" in path.parents:
                assert node.attr not in private, f"{path}:{node.lineno} touches {node.attr}"


def test_where_nobody_is_told_from_another_all_share_the_bounds_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradio_private, "private", lambda owner, name, default=None: default)
    assert visitors.asking() == ("", visitors.EVERYBODY) and not visitors.leads()
    monkeypatch.setenv("SPECDEC_PUBLIC", "1")
    visiting = visitors.Visitors()
    waits = [visiting.wait(*visitors.asking()) for _ in range(200)]
    assert waits[0] == 0 and waits[-1] > 0


def test_a_page_of_another_build_is_as_gradio_sends_it() -> None:
    other = b"<body><gradio></gradio></body>"
    assert gradio_private.before_app(other, b"screen") == other == gradio_private.with_head(other, b"<title>")
    assert gradio_private.address_in(other) == ""


def test_an_event_without_a_session_or_a_number_is_unknown() -> None:
    for client in served():
        for sent in ({"fn_index": None}, {"data": [], "session_hash": "a"}, {"data": ['"fn_index"']}):
            for path in ("queue/join", "run/predict", "call/nothing", "api/nothing"):
                status = client.post(f"gradio_api/{path}", json=sent).status_code
                assert status in (400, 404, 422), (path, sent)
        assert answered(client)


def test_the_queue_keeps_messages_of_few_sessions() -> None:
    messages = gradio_private.Messages()
    messages.most = 3
    for name in "abcad":
        messages[name] = name
    assert "".join(messages) == "cad" and messages["b"].empty() and "b" not in messages


def test_what_a_font_lacks_is_left_to_the_reader() -> None:
    assert gradio_private.font("IBMPlexSans/IBMPlexSans-Regular") and gradio_private.font("none") is None
