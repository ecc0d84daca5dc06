"""Calls that wait for a person, and for another user's app: asked, decided here and elsewhere, passed by."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
PAY = 'call tool pay {"amount": 5}\nsay: The bank says {result}.'


@pytest.fixture
def desk(open_tab: OpenTab) -> ChatPage:
    """A tab with an empty conversation of the agent with all kinds of tools."""
    return open_tab("/c/new?agent=desk")


def question(tab: ChatPage, name: str = "pay") -> Locator:
    return tab.page.get_by_role("group", name=f"Approve {name}")


@pytest.mark.smoke
def test_allowing_runs_the_call(desk: ChatPage) -> None:
    desk.ask(PAY)
    expect(question(desk)).to_contain_text("May pay run with these arguments?")
    expect(question(desk).locator(".value")).to_contain_text('"amount": 5')
    expect(desk.page.locator("#status")).to_contain_text("Waiting for your decision.")
    assert desk.spoken().endswith("The assistant asks for your approval.")
    look(desk, "question")
    question(desk).get_by_role("button", name="Allow").click()
    expect(desk.answers.last).to_contain_text("The bank says paid 5.")
    expect(question(desk)).to_have_count(0)
    expect(desk.page.locator("details.tool .fold-note")).to_contain_text("Done")
    expect(desk.page.locator("#status")).to_be_hidden()
    look(desk, "question-allowed")


def test_the_model_sees_a_declined_call(desk: ChatPage) -> None:
    desk.ask(PAY)
    question(desk).get_by_role("button", name="Decline").click()
    expect(desk.answers.last).to_contain_text("denied by user")
    expect(desk.page.locator("details.tool .fold-note")).to_contain_text("Declined")


@pytest.mark.smoke
def test_a_question_survives_a_reload_and_is_answered_in_the_other_tab(desk: ChatPage, open_tab: OpenTab) -> None:
    desk.ask(PAY)
    other = open_tab(desk.page.url.removeprefix(desk.base_url), context=desk.page.context)
    desk.page.reload()
    expect(question(desk)).to_be_visible()
    question(other).get_by_role("button", name="Allow").click()
    for tab in (desk, other):
        expect(tab.answers.last).to_contain_text("paid 5")
        expect(question(tab)).to_have_count(0)


def test_a_new_message_goes_on_without_it(desk: ChatPage) -> None:
    desk.ask(PAY)
    desk.ask("say: Something else.")
    expect(question(desk)).to_have_count(0)
    expect(desk.page.locator("details.tool .fold-note")).to_contain_text("Declined")


def test_twenty_questions_and_one_answer_to_all(desk: ChatPage) -> None:
    calls = "\n".join(f'call tool pay {{"amount": {number}}}' for number in range(20))
    desk.ask(f"{calls}\nsay: All of them: {{results}}.")
    expect(question(desk)).to_have_count(20)
    expect(desk.page.locator("#status")).to_contain_text("20 calls wait for your decision.")
    look(desk, "question-twenty")
    question(desk).nth(3).get_by_role("button", name="Decline").click()
    expect(question(desk)).to_have_count(19)
    desk.page.get_by_role("button", name="Allow all 19").click()
    expect(question(desk)).to_have_count(0, timeout=20_000)
    expect(desk.answers.last).to_contain_text("paid 19", timeout=20_000)


def test_long_arguments_are_shown_whole(desk: ChatPage) -> None:
    path = "/tmp/" + "a-very-long-name-" * 40
    desk.ask(f'call tool sign {{"path": "{path}"}}')
    expect(question(desk, "sign").locator(".value")).to_contain_text(path)
    look(desk, "question-long")


def test_a_call_for_another_app_is_reported_and_can_be_skipped(desk: ChatPage) -> None:
    desk.ask("call tool locate {}\nsay: You are at {result}.")
    waiting = desk.page.get_by_role("group", name="Waiting: locate")
    expect(waiting).to_contain_text("another app or window")
    expect(desk.page.locator("details.tool .fold-note")).to_contain_text("Waiting for another app")
    look(desk, "question-elsewhere")
    waiting.get_by_role("button", name="Skip it").click()
    expect(desk.answers.last).to_contain_text(re.compile("denied by user"))
    expect(waiting).to_have_count(0)


@pytest.mark.smoke
def test_the_keyboard_decides(desk: ChatPage) -> None:
    desk.ask(PAY)
    allow = question(desk).get_by_role("button", name="Allow")
    allow.focus()
    desk.page.keyboard.press("Enter")
    expect(desk.answers.last).to_contain_text("paid 5")
    expect(desk.input).to_be_focused()


def test_the_keyboard_stays_at_a_question_while_the_page_draws_itself(desk: ChatPage) -> None:
    held: list[Route] = []
    is_read = False
    desk.page.route("**/messages?**", lambda route: route.continue_() if is_read else held.append(route))
    desk.ask(PAY)
    allow = question(desk).get_by_role("button", name="Allow")
    allow.focus()
    facts = desk.answers.last.locator(".facts")  # they come with the page
    assert facts.count() == 0
    is_read = True
    for route in held:
        route.continue_()
    expect(facts).to_be_visible()
    expect(allow).to_be_focused()
    desk.page.keyboard.press("Enter")
    expect(desk.answers.last).to_contain_text("paid 5")


def test_the_keyboard_stays_at_what_answers_all(desk: ChatPage, open_tab: OpenTab) -> None:
    calls = "\n".join(f'call tool pay {{"amount": {number}}}' for number in range(3))
    desk.ask(f"{calls}\nsay: All of them: {{results}}.")
    other = open_tab(desk.page.url.removeprefix(desk.base_url), context=desk.page.context)
    everything = desk.page.get_by_role("button", name="Allow all")
    everything.focus()
    question(other).first.get_by_role("button", name="Allow").click()
    expect(everything).to_have_text("Allow all 2")
    expect(everything).to_be_focused()
