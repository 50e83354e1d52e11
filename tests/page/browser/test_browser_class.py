"""A class in real browsers: a teacher, and phones that follow, leave, come back and vote."""

from __future__ import annotations

import re

import pytest
import toyrun
from chrome import expect, pages, part, pytestmark, says, step, wait_for  # noqa: F401

from specdec.ui import classroom, session

BADGE = ".sd-badge"


@pytest.fixture(scope="module")
def room():
    return classroom.Room("127.0.0.1")


@pytest.fixture(scope="module")
def address(room, served):
    """The app in class mode."""
    return served(room)


@pytest.fixture
def teacher(open_page, room):
    page = open_page(query=f"?teach={room.secret}", reduced_motion="reduce")
    page.wait_for_selector(".sd-class:not([hidden])")
    yield page
    room.votes, room.question = {}, None


@pytest.fixture
def open_phone(open_page, teacher):
    return lambda **more: open_page(width=375, height=740, query="class", reduced_motion="reduce", **more)


def moment(page):
    return page.evaluate("document.querySelector('.sd-player').moment()")


def at_moment(phone, t):
    phone.wait_for_function("t => document.querySelector('.sd-player').moment().t === t", arg=t)


def log(page):
    return page.evaluate("document.querySelector('.sd-player').log()")


def test_a_phone_follows_run_and_time(teacher, open_phone, monkeypatch):
    phone = open_phone()
    assert log(phone) == log(teacher) and not part(phone, "play").is_visible()
    part(teacher, "stage").press("Home")
    for _ in range(2):
        step(teacher)
        at_moment(phone, moment(teacher)["t"])
        expect(says(phone)).to_have_text(says(teacher).text_content())
    expect(part(phone, "clock0")).to_have_text(part(teacher, "clock0").text_content())
    part(teacher, "stage").press("4")
    phone.wait_for_function("() => document.querySelector('.sd-player').moment().slow === 400")
    part(teacher, "play").click()
    wait_for(phone, "playing")
    part(teacher, "play").click()
    phone.wait_for_function("() => !document.querySelector('.sd-player').moment().playing")
    at_moment(phone, moment(teacher)["t"])
    teacher.get_by_role("button", name="Facts").click()
    phone.wait_for_function("() => document.querySelector('.sd-player .sd-tree') !== null")
    assert log(phone) == log(teacher)


@pytest.mark.long
def test_a_live_run_goes_to_the_class(teacher, open_phone, monkeypatch):
    runs = []

    def race(*_, **__):
        runs.append(1)
        yield from toyrun.events()

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), race))
    phones = [open_phone(), open_phone()]
    teacher.locator("#run").click()
    for phone in phones:
        expect(phone.locator(BADGE)).to_have_text("Live")
        wait_for(phone, "done")
        assert log(phone) == log(teacher)
    assert runs == [1]


@pytest.mark.long
def test_a_phone_leaves_and_returns(teacher, open_phone):
    phone = open_phone()
    part(teacher, "stage").press("Home")
    at_moment(phone, 0)
    phone.get_by_role("button", name="At my own pace").click()
    expect(part(phone, "play")).to_be_visible()
    part(phone, "next").first.click()
    here = moment(phone)["t"]
    step(teacher, 3)
    phone.wait_for_timeout(600)
    assert moment(phone)["t"] == here > 0
    teacher.get_by_role("button", name="Facts").click()  # another run: theirs stays until they come back
    teacher.wait_for_selector(".sd-player .sd-tree", state="attached")
    phone.wait_for_timeout(600)
    assert log(phone) != log(teacher)
    phone.get_by_role("button", name="Follow the class").click()
    at_moment(phone, moment(teacher)["t"])
    assert log(phone) == log(teacher) and not part(phone, "play").is_visible()


@pytest.mark.long
def test_a_phone_whose_stream_ends_comes_back_where_the_class_is(teacher, open_phone, monkeypatch):
    monkeypatch.setattr(classroom, "LIFE", 0.3)
    phone = open_phone()
    part(teacher, "stage").press("Home")
    for _ in range(3):
        step(teacher)
        at_moment(phone, moment(teacher)["t"])
        phone.wait_for_timeout(500)
    assert log(phone) == log(teacher)
    phone.close()
    monkeypatch.setattr(classroom, "GRACE", 0.0)
    expect(teacher.locator(".sd-class [data-part=joined]")).to_have_text("0 phones are here")


def test_votes_become_bars_and_the_answer_shows_on_every_phone(teacher, open_phone):
    right, wrong = open_phone(), open_phone()
    expect(teacher.locator(".sd-class [data-part=joined]")).to_have_text(re.compile(r"[2-9] phones are here"))
    part(teacher, "stage").press("Home")
    teacher.get_by_role("button", name="Will it keep this token?").click()
    for phone in (right, wrong):
        expect(phone.locator("#class [data-part=text]")).to_contain_text(
            "the target gives it p = 0."
        )  # before the vote
    right.get_by_role("button", name="below ¼").click()
    right.get_by_role("button", name="¾ or more").click()
    wrong.get_by_role("button", name="below ¼").click()
    bars = teacher.locator(".sd-class .sd-cl-bar b")
    expect(bars).to_have_text(["1", "0", "0", "1"])
    expect(right.get_by_role("button", name="¾ or more")).to_have_attribute("aria-pressed", "true")
    teacher.locator(".sd-class").get_by_role("button", name="Reveal").click()
    expect(right.locator("#class [data-part=why]")).to_contain_text("Right. min(1, p/q) = min(1, 0.")
    expect(wrong.locator("#class [data-part=why]")).to_contain_text("Not quite.")
    expect(wrong.locator("#class .sd-cl-bar b")).to_have_text(["1", "0", "0", "1"])
    expect(says(wrong)).to_have_text(says(teacher).text_content())
    teacher.get_by_role("button", name="Close the question").click()
    expect(wrong.locator("#class [data-part=question]")).to_be_hidden()


@pytest.fixture
def refused_page(browser, address):
    """Opens a page to which the app will say no, so that its console may tell of errors."""
    with browser.new_context(reduced_motion="reduce") as context:

        def opener(query):
            page = context.new_page()
            page.goto(address + query)
            return page

        yield opener


def test_after_a_restart_the_teachers_page_says_so_and_asks_no_more(refused_page, room, monkeypatch):
    """The secret is another one then. The player goes on drawing, and each drawing would be told to the class."""
    teacher = refused_page(f"?teach={room.secret}")
    teacher.wait_for_selector(".sd-class:not([hidden])")
    posts, streams = [], []
    seen = {"/class/teach": posts, "/class/events": streams}
    teacher.on("request", lambda one: [found.append(one.url) for path, found in seen.items() if path in one.url])
    monkeypatch.setattr(room, "secret", "another")
    part(teacher, "stage").press("Home")
    said = teacher.locator(".sd-class [data-part=said]")
    expect(said).to_contain_text("The terminal prints the right one")
    posts.clear()
    streams.clear()
    for _ in range(4):
        step(teacher)
        teacher.wait_for_timeout(400)
    assert posts == [] and streams == []
    expect(said).to_contain_text("The terminal prints the right one")


def test_the_teacher_is_told_who_was_turned_away_and_lets_all_in(teacher, open_phone, refused_page, room):
    room.phones, room.phones_of_address = {}, 1
    first, second = open_phone(), refused_page("class")
    away = teacher.locator(".sd-class [data-part=away]")
    expect(away).to_contain_text("1 phone was turned away: its address has 1 here already.")
    expect(second.locator("#class [data-part=state]")).to_have_text("The class is full. Trying again.")
    away.get_by_role("button", name="Let all in").click()
    expect(away).to_be_hidden()
    expect(second.locator("#class [data-part=state]")).to_have_text("You follow the class.")
    assert log(first) == log(teacher) == log(second)


@pytest.mark.long
def test_other_questions(teacher, open_phone):
    phone = open_phone()
    part(teacher, "stage").press("Home")
    teacher.get_by_role("button", name="How many are kept?").click()
    expect(phone.locator(".sd-cl-choices button")).to_have_text(["0", "1", "2", "3"])
    teacher.get_by_role("button", name="Close the question").click()
    teacher.get_by_label("A question of the Guide").select_option(index=1)
    expect(phone.locator(".sd-cl-choices button")).to_have_count(3)
    phone.reload()  # whoever comes late is asked, too
    expect(phone.locator(".sd-cl-choices button")).to_have_count(3)
    phone.locator(".sd-cl-choices button").nth(1).click()
    expect(teacher.locator(".sd-class .sd-cl-bar b")).to_have_text(["0", "1", "0"])


@pytest.mark.long
def test_the_panel_is_for_the_secret_alone(open_page, teacher, room, address):
    assert room.secret not in teacher.url
    teacher.reload()
    teacher.wait_for_selector(".sd-class:not([hidden])")
    expect(teacher.locator(".sd-cl-address")).to_contain_text("/class")
    expect(teacher.locator(".sd-cl-qr svg")).to_be_visible()
    teacher.goto(address + "?tab=theory")  # where there is no first screen
    teacher.wait_for_selector(".sd-class:not([hidden])")
    visitor = open_page()
    assert visitor.locator(".sd-class").is_hidden() and room.secret not in visitor.content()
