"""Calls that wait for a person, and for another user's app: asked, decided here and elsewhere, passed by."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
PAY = 'call tool pay {"amount": 5}\nsay: The bank says {result}.'


@pytest.fixture
def desk_tab(open_tab: OpenTab) -> ChatPage:
    """A tab with an empty conversation of the agent with all kinds of tools."""
    return open_tab("/c/new?agent=desk")


def question(tab: ChatPage, name: str = "pay") -> Locator:
    return tab.page.get_by_role("group", name=f"Approve {name}")


@pytest.mark.smoke
def test_allowing_runs_the_call(desk_tab: ChatPage) -> None:
    desk_tab.ask(PAY)
    expect(question(desk_tab)).to_contain_text("Pay 5?")
    expect(question(desk_tab).locator(".argument")).to_have_text("Amount5")
    expect(question(desk_tab)).to_contain_text("Expires in 6 days")
    expect(desk_tab.page.locator("#status")).to_be_hidden()  # the card says all of it: no row, no line, no foot
    expect(desk_tab.page.locator("details.tool")).to_have_count(0)
    expect(desk_tab.answers.last.locator(".message-foot")).to_have_count(0)
    assert desk_tab.spoken().endswith("The assistant is asking for your approval.")
    look(desk_tab, "question")
    question(desk_tab).get_by_role("button", name="Allow once").click()
    expect(desk_tab.answers.last).to_contain_text("The bank says paid 5.")
    expect(question(desk_tab)).to_have_count(0)
    expect(desk_tab.page.locator("details.tool .fold-note")).to_contain_text("Done")
    expect(desk_tab.page.locator("#status")).to_be_hidden()
    look(desk_tab, "question-allowed")


def test_the_model_sees_a_declined_call(desk_tab: ChatPage) -> None:
    desk_tab.ask(PAY)
    question(desk_tab).get_by_role("button", name="Decline").click()
    expect(desk_tab.answers.last).to_contain_text("denied by user")
    expect(desk_tab.page.locator("details.tool .fold-note")).to_contain_text("Declined")


@pytest.mark.smoke
def test_a_question_survives_a_reload_and_is_answered_in_the_other_tab(desk_tab: ChatPage, open_tab: OpenTab) -> None:
    desk_tab.ask(PAY)
    other = open_tab(desk_tab.page.url.removeprefix(desk_tab.base_url), context=desk_tab.page.context)
    desk_tab.page.reload()
    expect(question(desk_tab)).to_be_visible()
    question(other).get_by_role("button", name="Allow once").click()
    for tab in (desk_tab, other):
        expect(tab.answers.last).to_contain_text("paid 5")
        expect(question(tab)).to_have_count(0)


def test_a_new_message_goes_on_without_it(desk_tab: ChatPage) -> None:
    desk_tab.ask(PAY)
    desk_tab.ask("say: Something else.")
    expect(question(desk_tab)).to_have_count(0)
    expect(desk_tab.page.locator("details.tool .fold-note")).to_contain_text("Declined")


def test_twenty_questions_and_one_answer_to_all(desk_tab: ChatPage) -> None:
    calls = "\n".join(f'call tool pay {{"amount": {number}}}' for number in range(20))
    desk_tab.ask(f"{calls}\nsay: All of them: {{results}}.")
    expect(question(desk_tab)).to_have_count(20)
    expect(desk_tab.page.locator("#status")).to_contain_text("20 calls are waiting for your decision.")
    look(desk_tab, "question-twenty")
    question(desk_tab).nth(3).get_by_role("button", name="Decline").click()
    expect(question(desk_tab)).to_have_count(19)
    desk_tab.page.get_by_role("button", name="Allow all 19").click()
    expect(question(desk_tab)).to_have_count(0, timeout=20_000)
    expect(desk_tab.answers.last).to_contain_text("paid 19", timeout=20_000)


def test_long_arguments_are_cut_until_they_are_asked_for(desk_tab: ChatPage) -> None:
    path = "/tmp/" + "a-very-long-name-" * 40
    desk_tab.ask(f'call tool sign {{"path": "{path}"}}')
    value = question(desk_tab, "sign").locator(".argument-text")
    expect(value).to_have_text(f"{path[:400]}…")
    look(desk_tab, "question-long")
    question(desk_tab, "sign").get_by_role("button", name="Show all").click()
    expect(value).to_have_text(path)


def test_a_call_for_another_app_is_reported_and_can_be_skipped(desk_tab: ChatPage) -> None:
    desk_tab.ask("call tool locate {}\nsay: You are at {result}.")
    waiting = desk_tab.page.get_by_role("group", name="Waiting: Locate")
    expect(waiting).to_contain_text("Another app or window")
    expect(desk_tab.page.locator("details.tool .fold-note")).to_contain_text("Waiting for another app")
    look(desk_tab, "question-elsewhere")
    waiting.get_by_role("button", name="Skip").click()
    expect(desk_tab.answers.last).to_contain_text(re.compile("denied by user"))
    expect(waiting).to_have_count(0)


@pytest.mark.smoke
def test_the_keyboard_decides(desk_tab: ChatPage) -> None:
    desk_tab.ask(PAY)
    allow = question(desk_tab).get_by_role("button", name="Allow once")
    allow.focus()
    desk_tab.page.keyboard.press("Enter")
    expect(desk_tab.answers.last).to_contain_text("paid 5")
    expect(desk_tab.input).to_be_focused()


def test_the_keyboard_stays_at_a_question_while_the_page_draws_itself(desk_tab: ChatPage) -> None:
    held: list[Route] = []
    is_read = False
    desk_tab.page.route("**/messages?**", lambda route: route.continue_() if is_read else held.append(route))
    desk_tab.holds_back = True
    desk_tab.ask(PAY)
    allow = question(desk_tab).get_by_role("button", name="Allow once")
    allow.focus()
    assert held
    is_read = True
    with desk_tab.page.expect_response("**/messages?**"):
        for route in held:
            route.continue_()
    desk_tab.page.wait_for_selector("html[data-state=rest]", state="attached")  # it is drawn
    expect(allow).to_be_focused()
    desk_tab.page.keyboard.press("Enter")
    expect(desk_tab.answers.last).to_contain_text("paid 5")


def test_the_keyboard_stays_at_what_answers_all(desk_tab: ChatPage, open_tab: OpenTab) -> None:
    calls = "\n".join(f'call tool pay {{"amount": {number}}}' for number in range(3))
    desk_tab.ask(f"{calls}\nsay: All of them: {{results}}.")
    other = open_tab(desk_tab.page.url.removeprefix(desk_tab.base_url), context=desk_tab.page.context)
    everything = desk_tab.page.get_by_role("button", name="Allow all")
    everything.focus()
    question(other).first.get_by_role("button", name="Allow once").click()
    expect(everything).to_have_text("Allow all 2")
    expect(everything).to_be_focused()


REFUND = 'call tool refund {"order_number": "A-17", "amount": 12.5}\nsay: The till says {result}.'


@pytest.fixture
def clerk_tab(open_tab: OpenTab) -> ChatPage:
    """A tab with an empty conversation of the agent whose tool asks in its own words."""
    return open_tab("/c/new?agent=clerk")


def test_a_tool_asks_in_its_own_words_and_not_in_the_models(clerk_tab: ChatPage) -> None:
    clerk_tab.ask(REFUND)
    asked = question(clerk_tab, "Refund an order")
    expect(asked.locator(".question-text")).to_have_text("Refund 12.50 euros for order A-17?")
    expect(asked.locator(".argument")).to_have_text(["Order numberA-17", "Amount12.5"])
    expect(clerk_tab.page.locator("body")).not_to_contain_text("FOR MODELS ONLY")
    check(clerk_tab.page)


@pytest.mark.smoke
def test_arguments_are_changed_before_they_are_allowed(clerk_tab: ChatPage) -> None:
    clerk_tab.ask(REFUND)
    asked = question(clerk_tab, "Refund an order")
    asked.get_by_role("button", name="Edit").press("Enter")
    amount = asked.get_by_role("textbox", name="Amount")
    expect(amount).to_be_focused()
    expect(asked.get_by_role("textbox", name="Order number")).to_have_count(0)  # the tool does not permit it
    check(clerk_tab.page)
    look(clerk_tab, "question-edit")
    amount.fill("lots")
    asked.get_by_role("textbox", name="Parts").fill("[1")
    asked.get_by_role("textbox", name="Parts").press("Tab")
    clerk_tab.page.keyboard.press("Enter")
    expect(amount).to_be_focused()
    expect(amount).to_have_accessible_description("Write a number.")
    expect(asked).to_contain_text("This isn’t valid JSON")
    amount.fill("7")
    asked.get_by_role("textbox", name="Parts").fill("")
    asked.get_by_role("combobox", name="Reason").select_option(label="broken")
    asked.get_by_role("button", name="Allow with these changes").click()
    expect(clerk_tab.answers.last).to_contain_text("refunded 7 for A-17, broken")
    expect(clerk_tab.input).to_be_focused()
    tool = clerk_tab.page.locator("details.tool")
    expect(tool.locator(".fold-note")).to_contain_text("You changed the arguments")
    clerk_tab.page.reload()
    tool.locator("> summary").click()
    expect(tool.get_by_role("heading", name="Arguments, as you changed them")).to_be_visible()
    tool.get_by_text("Original arguments").click()
    expect(tool.locator(".tool-original .value")).to_contain_text('"amount": 12.5')


def test_escape_ends_the_edit_and_nothing_else(clerk_tab: ChatPage) -> None:
    clerk_tab.ask(REFUND)
    asked = question(clerk_tab, "Refund an order")
    asked.get_by_role("button", name="Edit").click()
    asked.get_by_role("textbox", name="Amount").fill("7")
    clerk_tab.page.keyboard.press("Escape")
    expect(asked.get_by_role("button", name="Edit")).to_be_focused()
    expect(asked.locator(".argument").last).to_have_text("Amount12.5")


@pytest.mark.smoke
def test_an_answer_that_a_question_interrupted_has_one_foot(desk_tab: ChatPage) -> None:
    desk_tab.ask(PAY)
    question(desk_tab).get_by_role("button", name="Allow once").click()
    expect(desk_tab.answers).to_have_count(2)
    desk_tab.rest()
    facts = desk_tab.page.locator(".message.is-assistant .facts")
    expect(facts).to_have_count(1)
    facts.click()
    desk_tab.until(lambda: "2 steps" in desk_tab.answers.last.locator(".facts-more").inner_text())  # of both turns
    facts.click()
    expect(desk_tab.page.locator(".message-head")).to_have_count(1)
    expect(desk_tab.page.get_by_role("button", name="Answer again")).to_have_count(1)
    desk_tab.page.reload()
    expect(facts).to_have_count(1)
    look(desk_tab, "one-answer")


def test_files_of_an_answer_that_waited_are_shown_together(desk_tab: ChatPage) -> None:
    first, second = ({"path": "/paid.txt", "content": words} for words in ("to be paid\n", "paid\n"))
    writing = "\nsay: Next.\n".join(
        [f"call tool write {json.dumps(first)}", 'call tool pay {"amount": 5}', f"call tool write {json.dumps(second)}"]
    )
    desk_tab.ask(f"{writing}\nsay: Done.")
    question(desk_tab).get_by_role("button", name="Allow once").click()
    expect(desk_tab.answers.last).to_contain_text("Done.")
    desk_tab.rest()
    line = desk_tab.page.get_by_role("button", name="Review")
    expect(line).to_have_count(1)
    line.click()
    panel = desk_tab.page.get_by_role("tabpanel", name="Files")
    expect(panel.locator("summary")).to_have_text(["/paid.txt created"])
    expect(panel.locator(".is-added")).to_have_text(["+paid\n"])  # what both turns made of it
    expect(panel.locator(".is-gone")).to_have_count(0)
