"""A class in real browsers: a teacher, and phones that follow, leave, come back and vote."""

import pytest

from specdec.ui import classroom
from specdec.ui.session import session
from specdec.ui.text import LANGUAGES
from tests.page.browser.chrome import cut_off, expect, LOG, part, says, step, wait_for, WHOLE

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def room():
    return classroom.Room("127.0.0.1")


@pytest.fixture(scope="module")
def address(room, served):
    """The app in class mode."""
    return served(room)


@pytest.fixture
def teacher(open_page, room):
    page = open_page(query=f"class/teacher?teach={room.secret}")
    page.wait_for_selector(".sd-class:not([hidden])")
    yield page
    room.votes, room.question = {}, None


@pytest.fixture
def open_phone(open_page, teacher):
    return lambda **more: open_page(width=375, height=740, query="class", **more)


def moment(page):
    return page.evaluate("document.querySelector('.sd-player').moment()")


def at_moment(phone, t):
    phone.wait_for_function("t => document.querySelector('.sd-player').moment().t === t", arg=t)


def test_a_live_run_goes_to_the_class(teacher, open_phone, toy_engine):
    toy_engine()
    phones = [open_phone(), open_phone()]
    teacher.locator("#run").click()
    for phone in phones:
        expect(phone.locator(".sd-badge")).to_have_text("Ran live")
        wait_for(phone, "done")
        assert phone.evaluate(LOG) == teacher.evaluate(LOG)
    assert len(session.process.targets) == 1


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
    assert phone.evaluate(LOG) != teacher.evaluate(LOG)
    phone.get_by_role("button", name="Follow the class").click()
    at_moment(phone, moment(teacher)["t"])
    assert phone.evaluate(LOG) == teacher.evaluate(LOG) and not part(phone, "play").is_visible()


def test_a_question_at_the_end_of_a_run_goes_back_by_itself_and_stays_in_sight(teacher, open_phone):
    teacher.set_viewport_size({"width": 1280, "height": 720})
    part(teacher, "stage").press("End")
    wait_for(teacher, "done")
    end = moment(teacher)["t"]
    inside = "node => node.getBoundingClientRect().top >= 0 && node.getBoundingClientRect().bottom <= innerHeight"
    lanes, transport = (teacher.locator(one).bounding_box() for one in (".sd-lanes", ".sd-transport"))
    assert lanes["y"] + lanes["height"] <= transport["y"] <= 720 - transport["height"]  # below the invitation, too
    panel = teacher.locator(".sd-class")
    expect(panel.locator("nav a")).to_have_count(len(LANGUAGES))
    for dark in (True, False):
        panel.locator(".sd-quiet").click()
        assert teacher.evaluate("document.body.classList.contains('dark')") == dark
    teacher.get_by_role("button", name="How many are kept?").click()
    expect(panel.locator("[data-part=reveal]")).to_be_visible()
    assert moment(teacher)["t"] < end
    for shown in (panel, *(part(teacher, name) for name in ("promptline", "say", "lane0", "play"))):
        expect(shown).to_be_visible()
        assert shown.evaluate(inside), shown
    teacher.get_by_role("button", name="Close the question").click()
    expect(part(teacher, "gantt")).to_be_visible()
    time, transport = (teacher.locator(one).bounding_box() for one in ("[data-part=gantt]", ".sd-transport"))
    assert time["y"] + time["height"] <= transport["y"]


def test_the_invitation_folds_to_its_line_once_no_more_phones_come(open_page, open_phone, room):
    teacher = open_page(query=f"class/teacher?teach={room.secret}")  # beside the other, for its clock
    teacher.clock.install()
    invitation = teacher.locator(".sd-class details")
    code = teacher.locator(".sd-cl-qr")
    open_phone()
    expect(teacher.locator(".sd-class [data-part=joined]")).to_have_text("1 phone is here")
    assert invitation.evaluate("one => one.open")  # the next one scans the code
    teacher.clock.fast_forward(15_000)
    expect(code).to_be_hidden()
    expect(invitation.locator(".sd-cl-short")).to_contain_text("/class")


def test_after_a_restart_the_teachers_page_says_so_and_asks_no_more(browser, address, room, monkeypatch):
    teacher = browser.browser.new_page(reduced_motion="reduce")  # whose console may tell of what the app refuses
    teacher.goto(f"{address}class/teacher?teach={room.secret}")
    teacher.wait_for_selector(".sd-class:not([hidden])")
    posts, streams = [], []
    seen = {"/class/teach": posts, "/class/events": streams}
    teacher.on("request", lambda one: [found.append(one.url) for path, found in seen.items() if path in one.url])
    monkeypatch.setattr(room, "secret", "another")
    part(teacher, "stage").press("Home")
    said = teacher.locator(".sd-class [data-part=notice]")
    expect(said).to_contain_text("The terminal prints the right one")
    posts.clear()
    streams.clear()
    for _ in range(4):
        step(teacher)
        teacher.wait_for_timeout(400)
    assert posts == [] and streams == []
    expect(said).to_contain_text("The terminal prints the right one")
    teacher.close()


def test_a_phone_follows_and_votes(teacher, open_phone):
    phone = open_phone()
    part(teacher, "stage").press("Home")
    expect(part(teacher, "foot")).to_contain_text("the same so far: 1")  # of samples, not yet of the whole run
    for _ in range(2):
        step(teacher)
        expect(says(phone)).to_have_text(says(teacher).text_content())
        assert says(phone).evaluate(WHOLE)
    veil, line = (phone.locator(one).first.bounding_box() for one in (".sd-veil", "[data-part=gantt]"))
    assert line["y"] - 1 <= veil["y"] and veil["y"] + veil["height"] <= line["y"] + line["height"] + 1
    assert cut_off(phone) == [] and not part(phone, "play").is_visible()
    teacher.set_viewport_size({"width": 1280, "height": 720})  # a projector's
    teacher.get_by_role("button", name="Will it keep this token?").click()
    asked = phone.locator("#class [data-part=text]")
    expect(asked).to_contain_text("After “")
    expect(asked).to_contain_text("the target gives it p = ")
    for page in (phone, teacher):
        expect(page.locator(".sd-flow [data-asked]")).to_have_count(1)  # the token in question is ringed
    choices = phone.locator("#class [data-part=choices] button")
    boxes = [one.bounding_box() for one in choices.all()]
    assert [len({box[side] for box in boxes}) for side in "xy"] == [2, 2]
    sizes = "all => all.map(one => parseFloat(getComputedStyle(one).fontSize))"
    assert min(teacher.locator(".sd-class .sd-cl-choice").evaluate_all(sizes)) >= 22  # the back row reads them
    below = phone.locator("#run").bounding_box()["y"]
    phone.locator("#class [data-part=choices] button").first.click()
    expect(phone.locator("#class [data-part=why]")).to_contain_text("Counted.")
    expect(teacher.locator(".sd-class [data-part=votes]")).to_have_text("1 vote")
    assert teacher.locator(".sd-class .sd-cl-bar").count() == 0  # votes that can be seen would steer the others
    height = teacher.locator(".sd-class").bounding_box()["height"]
    teacher.locator(".sd-class").get_by_role("button", name="Reveal").click()
    expect(teacher.locator(".sd-class .sd-cl-bar b")).to_have_text(["1", "0", "0", "0"])
    expect(teacher.locator(".sd-class [data-part=why]")).to_contain_text("The coin fell ")
    places = "all => all.map(one => [one.getBoundingClientRect().x, one.getBoundingClientRect().width].join())"
    assert len({*teacher.locator(".sd-class .sd-cl-track").evaluate_all(places)}) == 1  # bars begin in one line
    assert teacher.locator(".sd-class").bounding_box()["height"] == height
    assert min(teacher.locator(".sd-class :is([data-part=why], [data-part=votes])").evaluate_all(sizes)) >= 18
    expect(teacher.locator(".sd-class [data-part=why] b")).to_have_count(1)
    expect(teacher.locator(".sd-class mark")).to_have_count(2)  # the token, in the question and before its answer
    expect(phone.locator("#class .sd-cl-own")).to_contain_text("yours")
    assert phone.locator("#run").bounding_box()["y"] == below  # nothing jumps
    last, told = (phone.locator(f"#class [data-part={one}]").bounding_box() for one in ("answers", "why"))
    assert told["y"] - last["y"] - last["height"] >= 10
    expect(phone.locator(".sd-legend [data-of=accepted]")).to_be_visible()
    expect(phone.locator("#class [data-part=why]")).to_contain_text("min(1, p/q) = min(1, ")
