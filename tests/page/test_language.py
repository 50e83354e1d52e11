"""Two languages that say the same, and a process that answers each visitor in theirs."""

from __future__ import annotations

import ast
import json
import re
import threading
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from specdec import types
from specdec.families import smollm2
from specdec.families.smollm2 import NAME as SMOLLM2
from specdec.messages import Refused, TranslatableText
from specdec.methods import Choice
from specdec.ui import menu, recorded, text
from specdec.ui.build import build
from specdec.ui.components import examples
from specdec.ui.components.traces import open_trace, standalone
from specdec.ui.gateway.cache import LanguageRedirect, PATHS, preferred
from specdec.ui.request import check, RunRequest
from specdec.ui.session import chosen_sentence, session
from specdec.ui.tabs import labels
from specdec.ui.text import bind_language, ENGLISH, LANGUAGES, speaking, strings, TAGS, translated
from tests import toyrun

CODE = Path(text.__file__).parents[1]
WHOLE = ("zh",)  # languages that have every file; of others, what is missing is shown in English
ENGINE = "engine.json"  # keys are the engine's own English sentences
OTHERS = [language for language in LANGUAGES if language != ENGLISH]
NAMES = set("specdec transformers Medusa EAGLE- Top-k Top-p Leviathan Chen dflash vLLM DeepSpec openvino.genai".split())
NAMES |= set("min max norm token TTFT TPOT arXiv issue Qwen Llama LayerSkip Mistral SmolLM Hub".split())
NAMES |= set("rMLX llama.cpp mistral.rs mlxcel TensorRT-LLM vllm-ascend".split())
HAN = re.compile("[\u4e00-\u9fff]")


def read(language: str, name: str) -> dict[str, str]:
    """Return every string of a file by its path. Only the guide contains numbers."""
    found: dict[str, str] = {}

    def walk(node: typing.Any, path: str) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, str):
                found[f"{path}.{key}"] = value
            elif isinstance(value, dict | list):
                walk(value, f"{path}.{key}")
            else:
                assert isinstance(value, int) and name == "guide.json", f"{path}.{key}"

    walk(json.loads((text.TEXT / language / name).read_text("utf-8")), "")
    return found


def files(language: str, kind: str = "json") -> set[str]:
    return {path.name for path in (text.TEXT / language).glob(f"*.{kind}")}


def places(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)", template))


def test_a_language_begins_with_its_own_recorded_prompt() -> None:
    english, first = recorded.recorded_names(), {}
    for language in ("zh", ENGLISH):
        with speaking(language):
            names = recorded.recorded_names()
            first[language] = [json.loads(line) for line in recorded.recorded(names[0]).splitlines()[:2]]
            assert menu.target_of(names[0]) == SMOLLM2 and text.kind_of(first[language][0]["prompt"]) == names[0]
            assert text.example_name(names[0])
    assert "zh" not in english and names == english and "zh" not in text.prompts()
    assert HAN.search(first["zh"][0]["prompt"]) and not HAN.search(first[ENGLISH][0]["prompt"])
    with speaking("zh"):
        line = examples.show("zh", first["zh"][0]["prompt"], "default", SMOLLM2)[1]
    assert line["value"] == ""  # its only example is played again


def test_a_language_is_a_folder_with_its_own_name() -> None:
    assert set(LANGUAGES) == {file.name for file in text.TEXT.iterdir()} and next(iter(LANGUAGES)) == ENGLISH
    assert LANGUAGES["zh"] == "中文" and TAGS["zh"] == "zh-CN"
    for language in LANGUAGES:
        assert read(language, "language.json").keys() == {".name", ".tag", ".prompt"}
        assert language == TAGS[language].lower().partition("-")[0]  # as the browser's wish is read


@pytest.mark.parametrize("language", OTHERS)
def test_every_file_is_one_that_the_page_reads(language: str) -> None:
    for kind, more in (("json", {ENGINE}), ("md", set())):
        assert files(language, kind) <= files("en", kind) | more
        assert language not in WHOLE or files(language, kind) == files("en", kind) | more


@pytest.mark.parametrize(
    ("language", "name"), [(one, name) for one in OTHERS for name in sorted(files(one) - {ENGINE})]
)
def test_all_languages_say_the_same_things(language: str, name: str) -> None:
    english, other = read("en", name), read(language, name)
    assert english.keys() == other.keys()
    for path, told in english.items():
        assert places(told) == places(other[path]), path
        assert re.findall("<[^>]*>", told) == [] or name == "methods.json", path


@pytest.mark.parametrize("name", sorted(files("zh") - {"language.json"}))
def test_nothing_was_left_in_english(name: str) -> None:
    for path, told in read("zh", name).items():
        if path.endswith((".tab", ".part")) or (path.startswith(".practice.systems") and not HAN.search(told)):
            continue  # the key of a tab or of a part of it, a program, a command
        if HAN.search(told):
            assert not re.search("[\u4e00-\u9fff] ?[,;:?!]", told), f"{path}: punctuation that is not Chinese"
        else:
            words = re.findall(r"[A-Za-z][A-Za-z.-]{2,}", re.sub(r"\{.*?\}|（.*?）|“.*”", "", told))
            assert set(words) <= NAMES, path


def test_what_the_engine_says_has_its_translation() -> None:
    said = {"accepted", "rejected", "discarded", *typing.get_args(types.Kind)}  # names that are said, too
    for path in CODE.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "TranslatableText", "TraceError", "fault", "refuse",
            ):  # fmt: skip
                sentences = [one.value for one in node.args if isinstance(one, ast.Constant)]
                said |= {one for one in sentences if isinstance(one, str) and one}
    for file in text.TEXT.glob(f"*/{ENGINE}"):
        templates = json.loads(file.read_text("utf-8"))
        assert said == templates.keys()
        for english, told in templates.items():
            assert places(english) == places(told), english


def test_menus_and_the_default_follow_the_language() -> None:
    with speaking("zh"):
        line = menu.drafter_sentences("rejection")["draft_model"]
    assert "无损。" in line and "。 " not in line
    for language in LANGUAGES:
        with speaking(language):
            words = strings("page")["settings"]["chosen"]["pays"]
            name = strings("drafters")["draft_model"]["name"]
            assert chosen_sentence(Choice("draft_model", 3, 1.5)) == words.format(drafter=name, k=3)


def test_a_missing_file_is_there_in_english(tmp_path, monkeypatch) -> None:
    for language in ("en", "zh"):
        (tmp_path / language).mkdir()
    (tmp_path / "en" / "new.json").write_text('{"a": "English"}')
    (tmp_path / "en" / "new.md").write_text("English")
    monkeypatch.setattr(text, "TEXT", tmp_path)
    told = TranslatableText("The prompt has {n} tokens.", n="9")
    with speaking("zh"):
        assert strings("new") == {"a": "English"} and text.paragraph("new") == "English"
    with speaking("xx"):  # it has no sentences of the engine's
        assert translated(told) == "The prompt has 9 tokens."
    (tmp_path / "zh" / "new.md").write_text("中文", encoding="utf-8")
    with speaking("zh"):
        assert text.paragraph("new") == "中文"


def test_a_bound_function_keeps_its_language_whatever_others_speak() -> None:
    def whole() -> str:
        return text.language()

    def steps() -> typing.Iterator[str]:
        for _ in range(50):
            yield text.language()

    def collect(language: str, gate: threading.Barrier) -> list[str]:
        with speaking(language):
            once, many = bind_language(whole), bind_language(steps)
        found, running = [once()], many()
        with ThreadPoolExecutor(2) as others:  # each step in some thread, as Gradio runs them
            for _ in range(50):
                gate.wait(5)
                found.append(others.submit(next, running).result())
        return found

    gate = threading.Barrier(2)
    with ThreadPoolExecutor(2) as visitors:
        told = [visitors.submit(collect, language, gate) for language in ("en", "zh")]
        assert [set(one.result()) for one in told] == [{"en"}, {"zh"}]
    assert text.language() == "en"


def test_every_page_has_its_tabs_in_order_and_answers_in_its_language(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recorded, "TRACES", tmp_path)
    toyrun.trace().save(tmp_path / "story.jsonl")
    demo = build()
    config, tabs, heard = demo.get_config_file(), list[str](), {}
    for language, path in PATHS.items():
        handlers = [event.fn for event in demo.fns.values() if event.page == path.strip("/") and event.fn]
        start, run = (next(one for one in handlers if one.__name__ == name) for name in ("begin", "run"))
        heard[language] = next(start("own", "", "", "", ""))[1]["value"]
        assert heard[language] == json.loads(next(run("")))["error"]
        with speaking(language):
            tabs += labels().values()
    assert heard["en"].startswith("The prompt is empty") and heard["zh"].startswith("提示词是空的")
    assert [one["props"]["label"] for one in config["components"] if one["type"] == "tabitem"] == tabs
    assert {"Race", "Guide", "指南"} <= set(tabs)

    def written(page: str) -> str:
        here = [one["props"] for one in config["components"] if one["id"] in config["page"][page]["components"]]
        return json.dumps(here, ensure_ascii=False, default=str)

    assert "实时运行" in written("zh") and "Run live" not in written("zh")
    assert "实时运行" not in written("")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_smollm2_is_read_from_and_unpacked_to_is_named_in_each_language(language: str) -> None:
    with speaking(language):
        for sentence in (strings("pairs")[SMOLLM2]["shows"], strings("player")["meta"]["unpacked"]):
            assert smollm2.FILE.split(".")[-2] in sentence and "bfloat16" in sentence


def test_what_the_engine_refuses_is_told_in_the_language_of_the_visitor(toy_engine) -> None:
    told = {"n": 900, "limit": 511}
    refusal = Refused(
        TranslatableText("The prompt has {n} tokens; the model reads at most {limit}. Shorten it.", **told)
    )

    def race(*_: typing.Any, **__: typing.Any) -> typing.NoReturn:
        raise refusal

    toy_engine(race)
    request: RunRequest = check("Once")
    with speaking("zh"):
        assert list(session.run(request))[-1].text == "提示词有 900 个 token；模型最多读 511 个。请缩短。"
    assert list(session.run(request))[-1].text == str(refusal)
    with speaking("zh"):
        assert translated("a plain sentence") == "a plain sentence"


def test_files_are_refused_in_the_language_of_the_visitor() -> None:
    with speaking("zh"):
        answer = bind_language(open_trace)
    broken = toyrun.trace().header.line() + '{"event":"committed"}'
    assert answer("{}")["said"] == "文件未被接受：第一行不是轨迹的文件头。"  # bound for good
    assert "第 2 行：Committed.lane 的类型必须是 str" in answer(broken)["said"]


def test_a_standalone_page_speaks_the_language_of_the_page_it_came_from() -> None:
    with speaking("zh"):
        page = standalone(toyrun.trace())
    assert '<html lang="zh-CN">' in page and "推测解码" in page
    assert '<html lang="en">' in standalone(toyrun.trace())


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("qaa,qab;q=0.9,zh-TW;q=0.5", "zh"),
        ("qaa, qab, *", "en"),
        (";;,,q=", "en"),
        ("en;q=0.1, zh;q=0.9", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("en, ZH;q=0.9", "en"),
    ],
)
def test_the_browsers_preference(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


@pytest.mark.parametrize(
    ("address", "accepted", "way"),
    [
        ("/", "en", ""),
        ("/?k=5&prompt=a%20b", "zh", "./zh?k=5&prompt=a%20b"),
        ("/?lang=zh-CN", "en", "./zh?lang=zh-CN"),
        ("/?lang=en", "zh", ""),
        ("/?lang=xx", "zh", "./zh?lang=xx"),
        ("/zh", "en", ""),
        ("/zh?lang=en&tab=step", "zh", "./?lang=en&tab=step"),
        ("/config", "zh", ""),
    ],
)
def test_who_comes_is_shown_the_way(address: str, accepted: str, way: str) -> None:
    client = TestClient(LanguageRedirect(PlainTextResponse("here")), follow_redirects=False)
    answer = client.get(address, headers={"Accept-Language": accepted})
    assert answer.headers.get("location", "") == way and (answer.text == "here") is not bool(way)
    assert client.post(address).text == "here"
