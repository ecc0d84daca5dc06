"""The overview in the panel: what a conversation is about, and what it has changed of what is remembered (B5.5)."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.looks import look
from tests.browser.script_lines import remember
from tests.browser.side_panel import LONG, check_both, panel, show_view, toggle

OpenTab = Callable[..., ChatPage]
NOTHING = "There’s no summary of this conversation yet."


def overview(tab: ChatPage) -> Locator:
    if not panel(tab).is_visible():
        toggle(tab).click()
    show_view(tab, "Overview")
    return tab.page.get_by_role("tabpanel", name="Overview")


def changed(tab: ChatPage, name: str) -> Locator:
    return panel(tab).locator(".overview details", has=tab.page.locator("summary", has_text=name))


def test_what_a_conversation_has_changed(keeper: ChatPage) -> None:
    shown = overview(keeper)
    expect(shown).to_contain_text("A conversation starts with your first message")
    look(keeper, "overview-new")
    keeper.ask("say: Hello.")
    expect(shown).to_contain_text(NOTHING)
    expect(shown).to_contain_text("Nothing in memory was changed in this conversation.")
    look(keeper, "overview-empty")
    keeper.ask(remember("memory", "Likes tea."))
    keeper.ask(remember("notes", "Water first.\nThen tea."))
    keeper.ask(remember("notes", "Water first.\nThen milk."))
    expect(shown).to_contain_text("2 texts in memory changed (+3).")
    expect(changed(keeper, "memory")).to_contain_text("new, about you")
    changed(keeper, "notes").locator("summary").click()
    expect(changed(keeper, "notes").locator(".diff")).to_have_text("@@ -0,0 +1,2 @@\n+Water first.\n+Then milk.\n")
    look(keeper, "overview-changes")
    check_both(keeper)
    keeper.ask(remember("notes", f"Water first.\n{LONG}"))
    expect(changed(keeper, "notes").locator(".diff")).to_contain_text(LONG)  # what was open stays open
    look(keeper, "overview-long-word")


def test_what_it_is_about_is_asked_for_written_and_deleted(keeper: ChatPage, open_tab: OpenTab) -> None:
    keeper.ask("say: Green tea.")
    shown = overview(keeper)
    text, ask = shown.locator(".overview-text"), shown.get_by_role("button", name="Summarise with a model")
    ask.click()
    expect(text).not_to_be_empty()
    expect(shown).to_contain_text(re.compile(r"By \S+, "))
    look(keeper, "overview-written")
    check_both(keeper)
    shown.get_by_role("button", name="Edit").click()
    field = shown.get_by_role("textbox", name="What this conversation is about")
    expect(field).to_be_focused()
    field.fill("x" * 4_001)
    shown.get_by_role("button", name="Save").click()
    expect(shown.get_by_role("alert")).to_have_text("A summary has at most 4,000 characters.")
    look(keeper, "overview-refused")
    field.fill("Everything about tea.")
    elsewhere = open_tab(keeper.page.url.removeprefix(keeper.base_url), context=keeper.page.context)
    there = overview(elsewhere)
    expect(there.locator(".overview-text")).to_be_visible()
    keeper.page.bring_to_front()
    shown.get_by_role("button", name="Save").click()
    expect(text).to_have_text("Everything about tea.")
    expect(shown.get_by_role("button", name="Edit")).to_be_focused()
    expect(shown).to_contain_text("Written by you")
    expect(there.locator(".overview-text")).to_have_text("Everything about tea.")  # the page received it
    keeper.ask("say: Cake.")
    expect(shown).to_contain_text("The conversation has moved on since.")
    expect(text).to_have_text("Everything about tea.")
    shown.get_by_role("button", name="Delete").click()
    keeper.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(shown).to_contain_text(NOTHING)
    expect(ask).to_be_focused()
    expect(there).to_contain_text(NOTHING)


@pytest.mark.smoke
def test_histories_say_what_they_are_about(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=shelves")
    tab.ask("say: Green tea.")
    shown = overview(tab)
    shown.get_by_role("button", name="Write it yourself").click()
    shown.get_by_role("textbox").fill(f"Everything about tea, and more than fits into two lines of a list. {LONG}")
    shown.get_by_role("button", name="Save").click()
    expect(shown.locator(".overview-text")).to_contain_text("Everything about tea")
    tab.page.locator("#histories").click()
    tab.page.get_by_role("button", name="New history").click()
    tab.page.get_by_role("dialog").get_by_role("textbox").fill("Second")
    tab.page.keyboard.press("Enter")
    expect(shown).to_contain_text(NOTHING)
    tab.page.locator("#histories").click()
    expect(tab.page.locator(".history-about")).to_have_count(1)
    expect(tab.page.locator(".history-about")).to_contain_text("Everything about tea")
    look(tab, "overview-histories")
    check_both(tab)
    tab.page.locator(".history-name", has_text="Untitled").click()
    expect(shown.locator(".overview-text")).to_contain_text("Everything about tea")


FIRST_SUMMARY = re.compile(r"^(Green tea\.|You said: So far the summary was: <summary> Green tea\. </summary> .*)$")


def test_where_a_model_is_named_it_is_kept_up_to_date(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=teller")
    shown = overview(tab)
    tab.ask("say: Green tea.")
    # A script says what it is sent: before the answer was there or, once more, with it, and then of its first text.
    expect(shown.locator(".overview-text")).to_have_text(FIRST_SUMMARY)
    tab.ask("say: Black tea.")
    expect(shown.locator(".overview-text")).to_contain_text("Black tea.")
    expect(shown).not_to_contain_text("The conversation has moved on since.")


def test_the_reason_for_a_missing_browser_is_reported(keeper: ChatPage) -> None:
    keeper.ask("say: Green tea.")
    shown = overview(keeper)
    keeper.page.route(
        "**/summary", lambda route: route.abort() if route.request.method == "POST" else route.continue_()
    )
    shown.get_by_role("button", name="Summarise with a model").click()
    expect(shown.locator(".is-error")).to_have_text("The server can’t be reached.")
    expect(shown.get_by_role("button", name="Summarise with a model")).to_be_focused()
    look(keeper, "overview-offline")
    keeper.page.unroute("**/summary")
    keeper.page.route("**/summary", lambda route: route.abort())
    keeper.page.reload()
    expect(shown.get_by_role("alert")).to_have_text("The server can’t be reached.")
    keeper.page.unroute("**/summary")
    shown.get_by_role("button", name="Try again").click()
    expect(shown).to_contain_text(NOTHING)


def test_on_a_phone_with_much_to_say(open_tab: OpenTab) -> None:
    phone = open_tab("/c/new?agent=keeper", shape=PHONE)
    phone.ask(remember("notes", "Water first.\nThen tea.\n" * 12))
    shown = overview(phone)
    shown.get_by_role("button", name="Write it yourself").click()
    shown.get_by_role("textbox").fill(f"A long story about tea. {LONG} " + "It goes on and on. " * 40)
    shown.get_by_role("button", name="Save").click()
    expect(shown.locator(".overview-text")).to_contain_text("It goes on and on.")
    changed(phone, "notes").locator("summary").click()
    look(phone, "overview-phone-long")
    check_both(phone)
