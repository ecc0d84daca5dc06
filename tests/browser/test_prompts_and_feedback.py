"""Prompts that are saved once and used often, and what people think of answers."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look


@pytest.mark.smoke
def test_a_prompt_is_saved_from_a_message_found_by_a_slash_filled_in_and_removed(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("say: Dear {name}, about {topic}.")
    page.locator(".message.is-user").get_by_role("button", name="More for this message").click()
    page.get_by_role("menuitem", name="Save as a prompt").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Text")).to_have_value("say: Dear {name}, about {topic}.")
    check(page)
    dialog.get_by_label("Name", exact=True).fill("Letter")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()

    tab.input.fill("/let")
    expect(page.locator("#commands .command")).to_have_count(1)
    look(tab, "prompts-slash")
    tab.input.press("Enter")
    expect(dialog.get_by_label("name", exact=True)).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Tab")
    expect(dialog.get_by_label("topic")).to_be_focused()
    page.keyboard.type("tea")
    check(page)
    page.keyboard.press("Enter")
    expect(tab.input).to_have_value("say: Dear Ada, about tea.")
    tab.input.press("Enter")
    expect(tab.answers).to_have_count(2)
    tab.rest()
    expect(tab.answers.last).to_contain_text("Dear Ada, about tea.")

    tab.open("/settings/prompts")
    expect(page.get_by_text("Letter", exact=True)).to_be_visible()
    check(page)
    look(tab, "prompts")
    page.get_by_role("button", name="Remove Letter").click()
    expect(page.get_by_text("You have saved no prompts yet.")).to_be_visible()


@pytest.mark.smoke
def test_an_answer_is_found_good_or_bad_and_that_is_taken_back_by_a_second_press(tab: ChatPage) -> None:
    page = tab.page
    answer = tab.ask("say: An answer.")
    bad = answer.get_by_role("button", name="Bad answer")
    bad.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is wrong with it?").fill("Too short.")
    dialog.get_by_role("button", name="Add").click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    look(tab, "feedback")
    check(page)
    tab.open(page.url.removeprefix(tab.base_url))
    expect(bad).to_have_attribute("aria-pressed", "true")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    tab.rest()
    tab.open(page.url.removeprefix(tab.base_url))
    expect(bad).to_have_attribute("aria-pressed", "false")


def test_another_model_answers_again_beside_the_answer_that_is_there(tab: ChatPage) -> None:
    page = tab.page
    answer = tab.ask("say: An answer.")
    answer.get_by_role("button", name="More for this message").click()
    expect(page.get_by_role("menuitem", name="Read aloud, or stop")).to_be_visible()
    page.get_by_role("menuitem", name="Answer again with another model").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Choose a model").select_option("openai/gpt-5-mini")
    check(page)
    dialog.get_by_role("button", name="Answer again").click()
    expect(page.locator(".siblings")).to_contain_text("2", timeout=20_000)
    tab.rest()
    expect(page.locator("#model-name")).to_have_text("GPT-5 mini")


def test_the_questions_of_a_conversation_are_listed_and_lead_to_their_places(
    open_tab: Callable[..., ChatPage], live_product: LiveProduct
) -> None:
    tab = open_tab()
    messages = [
        {"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": f"{role} {number}"}]}
        for number in range(260)
        for role in [("user", "assistant")[number % 2]]
    ]
    tab.open(f"/c/{live_product.seed('Long', messages)}")
    page = tab.page
    page.get_by_role("button", name="More for this conversation").click()
    page.get_by_role("menuitem", name="List the questions").click()
    questions = page.get_by_role("dialog").locator(".outline button")
    expect(questions).to_have_count(130)
    expect(questions.first).to_have_text("user 0")
    check(page)
    questions.nth(2).click()
    expect(page.locator('[data-id="m4"]')).to_be_in_viewport()
