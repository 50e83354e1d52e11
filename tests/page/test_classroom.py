"""A class: the teacher's run and moment reach every phone; votes are counted; only the secret steers."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import gradio as gr
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from specdec.cli import main
from specdec.exposure import CLASS, EXPOSURE
from specdec.ui import classroom
from specdec.ui.classroom import address, Classroom, invitation, reachable, Room
from specdec.ui.theme import launch_settings, styles
from specdec.ui.visitors import LEADS

RUN, OTHER = "0123456789abcdef", "fedcba9876543210"
ME, YOU = "a" * 32, "b" * 32
HERE, THERE = "192.168.1.7", "192.168.1.8"
MOMENT = {"t": 12.5, "settle": 1, "slow": 100, "playing": True, "closed": False}
KEEP = {"kind": "keep", "piece": " the", "choices": 4, "p": 0.25, "q": 0.5}
PATIENCE = 60  # seconds; the machine may be busy


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(classroom, "PACE", 0.0)
    monkeypatch.setattr(classroom, "BEAT", 0.05)
    monkeypatch.setattr(classroom, "VOTES", 0.0)


def taught(*parts, cursor=MOMENT):
    room = Room("192.168.1.5", secret="open sesame")
    for number, log in enumerate(parts):
        assert room.write(RUN, number, log)
    if parts:
        room.point(cursor)
    return room


def run(coroutine):
    """In a thread of its own: the browser tests have a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, asyncio.wait_for(coroutine, PATIENCE)).result()


def present(address=HERE, streams=1, seen=0.0):
    return classroom.Phone(address, streams, seen)


def heard(room, *deeds, since="", name=ME):
    """What a phone is told at first, and after each deed."""

    async def listen():
        stream, found = room.follow(name, HERE, since), []
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

    return run(listen())


def counted(room):
    return run(anext(room.watch()))


# ---- the room ----


def test_a_phone_gets_the_run_once_then_what_is_added_and_each_moment():
    room = taught("one\n", "two\n")
    first, more, moment = heard(
        room, lambda: room.write(RUN, 2, "three\n"), lambda: room.point(MOMENT | {"t": 13, "playing": False})
    )
    assert (first["run"], first["part"], first["log"], first["state"]["cursor"]) == (RUN, 0, "one\ntwo\n", MOMENT)
    assert (more["part"], more["log"]) == (2, "three\n")
    assert moment["log"] == "" and moment["state"]["cursor"]["t"] == 13 and not moment["state"]["cursor"]["playing"]


def test_another_run_begins_from_its_beginning():
    room = taught("one\n")
    _, other = heard(room, lambda: room.write(OTHER, 0, "new\n"))
    assert (other["run"], other["part"], other["log"], other["state"]["cursor"]) == (OTHER, 0, "new\n", None)


@pytest.mark.parametrize(
    ("since", "part"),
    [(f"{RUN}:1", 1), (f"{RUN}:2", 2), (f"{OTHER}:1", 0), (f"{RUN}:9", 0)]
    + [(bad, 0) for bad in ("", ":", "x", f"{RUN}:-1", f"{RUN}:1e9", f"{RUN}:" + "9" * 400, f"{RUN}:²", "<script>")],
)
def test_a_phone_that_comes_back_is_sent_what_it_lacks(since, part):
    told = heard(taught("one\n", "two\n"), since=since)[0]
    assert (told["part"], told["log"]) == (part, "".join(["one\n", "two\n"][part:]))
    assert told["id"] == f"{RUN}:2" and told["state"]["cursor"] == MOMENT


def test_a_slow_phone_skips_moments():
    room = taught("one\n")
    _, last = heard(room, lambda: [room.point(MOMENT | {"t": t}) for t in range(100)])
    assert last["state"]["cursor"]["t"] == 99


def test_halves_of_a_character_and_line_ends_cannot_break_a_message():
    odd = "\ud83d\r\n\u2028data: x\n\n</script>"
    assert heard(taught(odd))[0]["log"] == odd


def test_what_does_not_follow_is_not_taken():
    room = taught("one\n")
    assert not room.write(RUN, 2, "three\n") and not room.write(RUN, 0, "again\n") and not room.write(OTHER, 1, "two\n")
    assert (room.run, room.parts) == (RUN, ["one\n"])


def test_a_run_is_bounded(monkeypatch):
    monkeypatch.setattr(classroom, "MAX_BYTES", 10)
    room = taught("12345678")
    with pytest.raises(ValueError, match="too long"):
        room.write(RUN, 1, "9ab")
    assert room.write(OTHER, 0, "1234567890")


@pytest.mark.parametrize("part", [("x", 0, ""), (RUN, "0", ""), (RUN, 0, None), (RUN, 0.5, ""), (None, 0, "")])
def test_a_part_must_be_one(part):
    with pytest.raises(ValueError, match="needs its run"):
        Room("here").write(*part)


@pytest.mark.parametrize(
    "wrong", [None, [], {}, *({**MOMENT, "t": t} for t in (-1, float("nan"), float("inf"), "1", True, None, 1e300))]
)
def test_a_moment_must_be_one(wrong):
    room = taught("one\n")
    with pytest.raises(ValueError, match=r"number|moment"):
        room.point(wrong)
    assert room.cursor == MOMENT


def test_one_vote_a_phone_until_the_answer():
    room = taught("one\n")
    room.phones = {ME: present(), YOU: present()}
    room.ask(KEEP)
    question = room.question["id"]
    for name, choice in ((ME, 0), (YOU, 1), (ME, 1)):
        assert room.vote(name, question, choice)
    told, shown = heard(room, lambda: room.reveal({"right": 1, "more": 3}))
    assert told["state"]["vote"] == 1 and told["state"]["counts"] is None and told["state"]["answer"] is None
    assert shown["state"]["counts"] == [0, 2, 0, 0] and shown["state"]["answer"] == {"right": 1}
    assert told["state"]["question"] == {"id": question, "number": 0, **KEEP}  # p and q first
    for name, asked, choice in ((ME, question, 0), (YOU, question, 0)):
        with pytest.raises(ValueError, match="no such question"):
            room.vote(name, asked, choice)
    room.ask(KEEP)
    assert room.votes == {} and room.answer is None and room.question["id"] != question
    room.ask(None)
    assert room.question is None


def test_the_teacher_sees_votes_as_they_come():
    room = taught()
    room.phones = {ME: present()}
    room.ask({"kind": "count", "choices": 4})
    room.vote(ME, room.question["id"], 3)
    told = json.loads(counted(room).removeprefix("data: "))
    assert told["joined"] == 1 and told["counts"] == [0, 0, 0, 1] and told["answer"] is None


@pytest.mark.parametrize(
    ("name", "choice"), [(YOU, 0), (None, 0), ([], 0), (ME, 4), (ME, -1), (ME, 0.5), (ME, "0"), (ME, True), (ME, None)]
)
def test_a_vote_must_be_one(name, choice):
    room = taught()
    room.phones = {ME: present()}
    room.ask(KEEP)
    with pytest.raises(ValueError, match=r"question|choice|number"):
        room.vote(name, room.question["id"], choice)
    assert room.votes == {}


def test_votes_come_one_at_a_time(monkeypatch):
    monkeypatch.setattr(classroom, "VOTES", 1e9)
    room = taught()
    room.phones = {ME: present()}
    room.ask(KEEP)
    assert room.vote(ME, room.question["id"], 0) and not room.vote(ME, room.question["id"], 1)
    assert room.votes == {ME: 0}


@pytest.mark.parametrize(
    "wrong",
    [
        [], {}, {"kind": "x", "choices": 2}, KEEP | {"choices": 1}, KEEP | {"choices": 21}, KEEP | {"choices": "2"},
        KEEP | {"piece": "x" * 201}, KEEP | {"piece": 5}, KEEP | {"number": -1}, KEEP | {"number": None},
        KEEP | {"p": 2},
        KEEP | {"q": None},
    ],
)  # fmt: skip
def test_a_question_must_be_one(wrong):
    room = Room("here")
    with pytest.raises(ValueError, match=r"question|number|choice"):
        room.ask(wrong)
    assert room.question is None


@pytest.mark.parametrize("wrong", [None, {}, {"right": 4}, {"right": -1}, {"right": None}])
def test_an_answer_must_be_one(wrong):
    room = Room("here")
    with pytest.raises(ValueError, match="ask a question first"):
        room.reveal({"right": 0})
    room.ask(KEEP)
    with pytest.raises(ValueError, match=r"question|number|choice"):
        room.reveal(wrong)
    assert room.answer is None


def test_who_left_is_not_counted_and_who_is_back_soon_is(monkeypatch):
    room = taught("one\n")
    heard(room)
    assert room.joined() == 1  # for a moment
    monkeypatch.setattr(classroom, "GRACE", -1.0)
    assert room.joined() == 0 and room.phones == {}


def test_a_stream_ends_and_is_opened_anew(monkeypatch):
    """A phone that vanished without a word does not come back."""
    monkeypatch.setattr(classroom, "LIFE", 0.0)

    async def whole():
        return [message async for message in taught("one\n").follow(ME, HERE)]

    assert run(whole()) == ["retry: 300\n\n"]


# ---- the routes ----


@pytest.fixture
def room():
    return taught("one\n")


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
    """By a cookie that no script can read and no other site can send; `visitors.leads` reads what comes of it."""
    leading = []

    async def page(scope, receive, send):
        leading.append(scope[LEADS])
        await PlainTextResponse("the page")(scope, receive, send)

    client = TestClient(Classroom(page, room))
    refused = teach(client, {}, "guess")
    client.get("/")
    answer = teach(client, {})
    client.get("/")
    client.cookies = {classroom.COOKIE: "guess"}
    client.get("/")
    assert leading == [False, True, False] and "set-cookie" not in refused.headers
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))


def test_the_teacher_steers(room, client):
    assert teach(client, {"run": RUN, "part": 1, "log": "two\n", "cursor": MOMENT | {"t": 20}}).status_code == 204
    assert room.parts == ["one\n", "two\n"] and room.cursor["t"] == 20
    assert teach(client, {"run": RUN, "part": 7, "log": "x", "cursor": MOMENT}).status_code == 409
    assert room.cursor["t"] == 20
    assert teach(client, {"ask": KEEP}).status_code == teach(client, {"reveal": {"right": 0}}).status_code == 204
    assert room.answer == {"right": 0}


def test_a_vote_is_posted(room, client):
    room.phones = {ME: present()}
    room.ask(KEEP)
    vote = {"phone": ME, "question": room.question["id"], "choice": 1}
    assert client.post("/class/vote", json=vote).status_code == 204 and room.votes == {ME: 1}
    assert client.post("/class/vote", json=vote | {"phone": YOU}).status_code == 400


@pytest.mark.parametrize("text", ["", "x", "[]", "5", "null", "[" * 900, '{"choice":NaN}', "x" * 1001, b"\xff\xfe"])
def test_nonsense_is_refused_in_a_sentence(client, text):
    answer = client.post("/class/vote", content=text)
    assert answer.status_code == 400 and answer.text


def test_a_teachers_post_is_bounded(client, monkeypatch):
    monkeypatch.setattr(classroom, "PART", 100)
    assert "at most 100 bytes" in teach(client, {"run": OTHER, "part": 0, "log": "x" * 100}).text


def test_other_paths(client):
    assert client.get("/").text == client.get("/classes").text == client.post("/x").text == "the page"
    for path in ("/class/x", "/class/../class/y", "/class/events/z"):
        assert client.get(path).status_code == 404
    assert client.get("/class/teach").status_code == client.post("/class").status_code == 405
    for name in ("", "me", "A" * 32, "a" * 65, "../../etc"):
        assert client.get("/class/events", params={"phone": name}).status_code == 400


def test_a_class_has_an_end(room, client, monkeypatch):
    monkeypatch.setattr(classroom, "MOST", 1)
    room.phones = {ME: present()}
    assert client.get(f"/class/events?phone={YOU}").status_code == 503
    assert room.admits(ME, HERE) and not room.turned_away


def test_a_phone_has_few_streams(room, client):
    """One more than it needs while an old one is not yet noticed to be gone."""
    room.phones = {ME: present(streams=classroom.STREAMS)}
    assert not room.admits(ME, HERE) and not room.admits(ME, THERE) and room.admits(YOU, HERE)
    assert client.get(f"/class/events?phone={ME}").status_code == 503
    assert room.joined() == 1 and classroom.STREAMS <= 3


def test_what_comes_at_once_is_counted_one_by_one(room, monkeypatch):
    """Many may ask before the first of them is served."""
    monkeypatch.setattr(classroom, "LIFE", 1e9)

    async def flood(room, names):
        room.phones_of_address = 5
        streams = [room.follow(name, HERE) for name in names]
        told = [await anext(stream, None) for stream in streams]
        counts = sum(one is not None for one in told), room.joined(), len(room.turned_away)
        for stream in streams:
            await stream.aclose()
        return counts

    assert run(flood(taught(), [f"{i:032x}" for i in range(40)])) == (5, 5, 35)
    assert run(flood(taught(), [ME] * 40)) == (classroom.STREAMS, 1, 0)


def test_one_address_fills_no_class_and_the_teacher_is_told_and_may_let_all_in(room, client, monkeypatch):
    monkeypatch.setenv(EXPOSURE, "class")
    room = taught()
    assert room.phones_of_address == CLASS.phones_of_address == 60
    crowd = [f"{i:032x}" for i in range(300)]
    for name in crowd:
        if room.admits(name, HERE):
            room.phones[name] = present()
    assert room.joined() == 60 and room.admits(YOU, THERE) and not room.admits(crowd[70], HERE)
    told = json.loads(counted(room).removeprefix("data: "))
    assert (told["turned_away"], told["phones_of_address"]) == (classroom.MOST, 60)  # 240, as far as it counts
    client = TestClient(Classroom(PlainTextResponse("the page"), room))
    assert teach(client, {"admit": True}, "guess").status_code == 403 and not room.admits(crowd[70], HERE)
    assert teach(client, {"admit": True}).status_code == 204 and room.admits(crowd[70], HERE)
    assert json.loads(counted(room).removeprefix("data: "))["turned_away"] == 0


def test_who_was_turned_away_and_came_in_later_is_not_counted(room):
    room.phones_of_address, room.phones = 1, {ME: present()}
    assert not room.admits(YOU, HERE) and not room.admits(YOU, HERE) and len(room.turned_away) == 1
    del room.phones[ME]
    assert room.admits(YOU, HERE) and not room.turned_away


def test_a_phone_without_a_stream_has_no_vote(room):
    room.phones = {ME: present(streams=0, seen=time.monotonic())}
    room.ask(KEEP)
    assert not room.vote(ME, room.question["id"], 1) and room.votes == {}
    room.phones[ME].streams = 1
    assert room.vote(ME, room.question["id"], 1)


def test_one_address_has_no_more_votes_than_phones(room, monkeypatch):
    """Phones that left keep their votes, so names that come and go must not add up."""
    room.phones_of_address = 3
    room.ask(KEEP)
    question = room.question["id"]
    for i in range(10):
        name = f"{i:032x}"
        room.phones = {name: present(), ME: present(THERE)}
        if i < 3:
            assert room.vote(name, question, 0) and room.vote(name, question, 1)  # it may change it
        else:
            with pytest.raises(ValueError, match="as many votes as phones"):
                room.vote(name, question, 0)
    assert room.vote(ME, question, 0) and len(room.votes) == 4
    room.ask(KEEP)
    assert room.vote(name, room.question["id"], 0)


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


def test_without_a_class_there_is_none():
    def stack(*room):
        return [one.cls for one in launch_settings(*room)["app_kwargs"]["middleware"]]

    assert Classroom not in stack() and stack(Room("here")) == [*stack(), Classroom]
    teacher = styles("class/teacher")
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
    for name in (EXPOSURE, "SPECDEC_PAIR", "SPECDEC_PAIRS"):  # what the command sets is taken back
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

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
    assert joins.removesuffix("class") + "?teach=" + room.secret in told


# ---- over the wire ----


@contextlib.contextmanager
def served(room):
    config = uvicorn.Config(
        Classroom(PlainTextResponse(""), room), port=0, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def wait(done):
    ends = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.01)


@contextlib.contextmanager
def connected(port, query, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", f"/class/events?{query}", headers=headers)
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    try:
        yield lambda: json.loads(next(line for line in answer if line.startswith(b"data: "))[6:])
    finally:
        answer.close()
        connection.close()


def test_a_phone_joins_drops_and_comes_back_where_the_class_is(room):
    with served(room) as port:
        with connected(port, f"phone={ME}") as phone, connected(port, "teach=open%20sesame") as teacher:
            assert phone()["log"] == "one\n"
            wait(lambda: teacher()["joined"] == 1)
        wait(lambda: room.phones[ME].streams == 0)  # a closed phone is noticed
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        body = json.dumps({"run": RUN, "part": 1, "log": "two\n", "cursor": MOMENT | {"t": 40}})
        connection.request("POST", "/class/teach", body, {"X-Teach": room.secret})
        assert connection.getresponse().status == 204
        connection.close()
        with connected(port, f"phone={ME}&since={RUN}:0", **{"Last-Event-ID": f"{RUN}:1"}) as phone:
            told = phone()
            assert (told["part"], told["log"], told["state"]["cursor"]["t"]) == (1, "two\n", 40)
