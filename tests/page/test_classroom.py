"""A class: the teacher's run and moment reach every phone; votes are counted; only the secret steers."""

import asyncio
import json

import gradio as gr
import pytest
from anyio.from_thread import start_blocking_portal
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from specdec import exposure
from specdec.cli import main
from specdec.ui import classroom
from specdec.ui.classroom import address, Classroom, invitation, reachable, Room
from specdec.ui.gateway.visitors import LEADS
from specdec.ui.text import asset
from specdec.ui.theme import launch_settings

RUN, OTHER = "0123456789abcdef", "fedcba9876543210"
ME, YOU = "a" * 32, "b" * 32
MOMENT = {"t": 12.5, "settle": 1, "slow": 100, "playing": True, "closed": False}
KEEP = {"kind": "keep", "piece": " the", "choices": 4, "p": 0.25, "q": 0.5}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(classroom, "MIN_PAUSE_S", 0.0)


def taught(*parts):
    room = Room("192.168.1.5", secret="open sesame")
    for number, log in enumerate(parts):
        assert room.write(RUN, number, log)
    room.point(MOMENT)
    return room


@pytest.fixture
def room():
    return taught("one\n")


def heard(room, *deeds, since=""):
    async def listen():
        stream, found = room.follow(ME, since), []
        for deed in (None, *deeds):
            if deed:
                deed()
            async for message in stream:
                if "data: " in message:
                    mark, data = message.removeprefix("id: ").split("\ndata: ")
                    found.append(json.loads(data) | {"id": mark})
                    break
        await stream.aclose()
        return found

    with start_blocking_portal() as portal:  # in a new thread, since the browser tests have an event loop in this one
        return portal.call(asyncio.wait_for, listen(), 60)


def test_a_phone_gets_the_run_once_then_what_is_added_and_each_moment():
    room = taught("one\n", "two\n")
    first, more, moment = heard(
        room, lambda: room.write(RUN, 2, "three\n"), lambda: room.point(MOMENT | {"t": 13, "playing": False})
    )
    assert (first["run"], first["part"], first["log"], first["state"]["cursor"]) == (RUN, 0, "one\ntwo\n", MOMENT)
    assert (more["part"], more["log"]) == (2, "three\n")
    assert moment["log"] == "" and moment["state"]["cursor"]["t"] == 13 and not moment["state"]["cursor"]["playing"]


@pytest.mark.parametrize(
    ("since", "part"),
    [(f"{RUN}:1", 1), (f"{RUN}:2", 2), (f"{OTHER}:1", 0), (f"{RUN}:9", 0)]
    + [(bad, 0) for bad in ("", ":", "x", f"{RUN}:-1", f"{RUN}:1e9", f"{RUN}:" + "9" * 400, f"{RUN}:²", "<script>")],
)
def test_a_phone_that_comes_back_is_sent_what_it_lacks(since, part):
    told = heard(taught("one\n", "two\n"), since=since)[0]
    assert (told["part"], told["log"]) == (part, "".join(["one\n", "two\n"][part:]))
    assert told["id"] == f"{RUN}:2" and told["state"]["cursor"] == MOMENT


def test_phones_are_told_whether_the_teachers_page_is_open(room):
    async def listen():
        phone, page = room.follow(ME), room.watch()
        told = [await anext(phone), await anext(phone)]
        for deed in (page.__anext__, page.aclose):
            await deed()
            told.append(await anext(phone))
        await phone.aclose()
        return ['"led": true' in one for one in told[1:]]

    with start_blocking_portal() as portal:
        assert portal.call(listen) == [False, True, False]


def test_one_vote_a_phone_until_the_answer(room):
    room.streams.update([ME, YOU])
    room.ask(KEEP)
    question = room.question["id"]
    for name, choice in ((ME, 0), (YOU, 1), (ME, 1)):
        assert room.vote(name, question, choice)
    told, shown = heard(room, lambda: room.reveal({"right": 1, "more": 3}))
    assert told["state"]["vote"] == 1 and told["state"]["counts"] is None and told["state"]["answer"] is None
    assert shown["state"]["counts"] == [0, 2, 0, 0] and shown["state"]["answer"]["right"] == 1
    assert told["state"]["question"] == {"id": question, **KEEP}  # p and q first
    for name, asked, choice in ((ME, question, 0), (YOU, question, 0)):
        with pytest.raises(ValueError, match="not open for votes"):
            room.vote(name, asked, choice)
    room.ask(KEEP)
    assert room.votes == {} and room.answer is None and room.question["id"] != question
    room.ask(None)
    assert room.question is None


@pytest.fixture
def client(room):
    return TestClient(Classroom(PlainTextResponse("the page"), room))


def teach(client, body, secret="open sesame"):
    return client.post("/class/teach", json=body, headers={"X-Teach": secret})


def test_only_the_secret_steers(room, client):
    for secret in ("", "open", "open sesamé".encode()):
        for body in ({"cursor": MOMENT | {"t": 99}}, {"ask": KEEP}, {"run": OTHER, "part": 0, "log": "x"}):
            assert teach(client, body, secret).status_code == 403
    assert client.post("/class/teach", json={"ask": KEEP, "secret": "open sesame"}).status_code == 403
    assert client.get("/class/events?teach=guess").status_code == 403
    assert (room.cursor, room.question, room.run) == (MOMENT, None, RUN)


def test_the_teachers_page_proves_itself_in_requests_that_gradio_writes(room):
    """By a cookie that no script can read and no other site can send; `has_queue_priority` reads what comes of it."""
    leading = []

    async def page(scope, receive, send):
        leading.append(scope[LEADS])
        await PlainTextResponse("the page")(scope, receive, send)

    client = TestClient(Classroom(page, room))
    client.get("/queue")
    page_of_guess = client.get("/class/teacher?teach=guess")
    page_of_teacher = client.get("/class/teacher?teach=open sesame")
    client.get("/queue")
    assert leading == [False, False, True, True]
    assert str(page_of_teacher.url) == "http://testserver/?teach=open%20sesame"
    cookie = page_of_guess.history[0].headers["set-cookie"]
    assert cookie == f"{classroom.COOKIE}=guess; HttpOnly; Path=/; SameSite=strict"


def test_the_teacher_steers(room, client):
    assert teach(client, {"run": RUN, "part": 1, "log": "two\n", "cursor": MOMENT | {"t": 20}}).status_code == 204
    for run, part in ((RUN, 7), (RUN, 0), (OTHER, 1)):  # what does not follow is not taken
        assert teach(client, {"run": run, "part": part, "log": "x", "cursor": MOMENT}).status_code == 409
    assert (room.run, room.parts, room.cursor["t"]) == (RUN, ["one\n", "two\n"], 20)
    assert teach(client, {"ask": KEEP}).status_code == teach(client, {"reveal": {"right": 0}}).status_code == 204
    assert room.answer == {"right": 0}


@pytest.mark.parametrize("text", ["", "x", "[]", "5", "null", "[" * 900, '{"choice":NaN}', "x" * 1001, b"\xff\xfe"])
def test_nonsense_is_refused_in_a_sentence(client, text):
    answer = client.post("/class/vote", content=text)
    assert answer.status_code == 400 and answer.text


def test_a_class_has_an_end(room, client, monkeypatch):
    monkeypatch.setattr(classroom, "MAX_PHONES", 1)
    room.streams[ME] = 1
    assert client.get(f"/class/events?phone={YOU}").status_code == 503
    assert room.admits(ME)
    room.streams[ME] = classroom.MAX_STREAMS
    assert not room.admits(ME)


def test_phones_are_invited_in_words_and_as_a_code(client):
    told = client.get("/class/join").json()
    assert told["address"] == "http://192.168.1.5:80/class"
    assert told["qr"].startswith("<svg") and told["qr"] != invitation("http://192.168.1.6:80/class")["qr"]
    assert address("fe80::1", 7860) == "http://[fe80::1]:7860/class"
    assert reachable("192.168.7.7") == "192.168.7.7" and reachable("0.0.0.0").count(".") == 3 != "0.0.0.0"


@pytest.mark.parametrize(
    ("accept", "says"), [("en", "Waiting for the teacher"), ("zh-CN", "正在等待教师"), ("", "Waiting")]
)
def test_a_phones_page_is_light_and_speaks_its_language(client, accept, says):
    answer = client.get("/class", headers={"Accept-Language": accept})
    assert says in answer.text and "@@" not in answer.text
    assert "gradio_config" not in answer.text and " src=" not in answer.text and len(answer.text) < 300_000
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert "url(static/fonts/IBMPlexMono/IBMPlexMono-Regular.woff2)" in answer.text


def test_without_a_class_there_is_none():
    def stack(*room):
        return [one.cls for one in launch_settings(*room)["app_kwargs"]["middleware"]]

    assert stack(Room("here")) == [*stack(), Classroom] and Classroom not in stack()
    teacher = asset("class/teacher.css")
    assert teacher not in launch_settings()["css"] and teacher in launch_settings(Room("here"))["css"]


@pytest.mark.parametrize(
    ("options", "host", "joins"),
    [
        ((), "0.0.0.0", "http://10.1.2.3:7861/class"),
        (("--host", "127.0.0.1"), "127.0.0.1", "http://127.0.0.1:7861/class"),
    ],
)
def test_the_terminal_says_where_the_class_is(options, host, joins, monkeypatch, capsys):
    asked = {}
    monkeypatch.setattr(exposure, "host", exposure.Host())  # what the command sets is taken back

    def launch(demo, **settings):
        asked.update(settings)
        demo.server_port = 7861

    monkeypatch.setattr(gr.Blocks, "launch", launch)
    monkeypatch.setattr(gr.Blocks, "block_thread", lambda _: None)
    monkeypatch.setattr(classroom, "reachable", lambda host: "10.1.2.3" if host == "0.0.0.0" else host)
    assert main(["app", "--class", *options]) == 0
    room = asked["app_kwargs"]["middleware"][-1].kwargs["room"]
    told = capsys.readouterr().out
    assert asked["server_name"] == host and joins in told and len(room.secret) >= 16
    assert f"{joins}/teacher?teach={room.secret}" in told
