"""The panel beside the conversation: what the next call will contain, and what is remembered."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.reading import history
from tests.browser.script_lines import remember
from tests.browser.side_panel import LONG, check_both, panel, piece, show_view, toggle

OpenTab = Callable[..., ChatPage]


@pytest.mark.smoke
def test_the_next_call_is_laid_open(tab: ChatPage, live_product: LiveProduct) -> None:
    toggle(tab).click()
    expect(tab.page.get_by_role("tab", name="Context")).to_be_focused()
    expect(panel(tab)).to_contain_text("A conversation starts with your first message")
    look(tab, "panel-new")
    tab.open("/c/" + live_product.seed("Long ago", history(40)))
    expect(panel(tab)).to_contain_text(re.compile(r"About [\d,]+ tokens\. This model’s limit isn’t known\."))
    look(tab, "panel-context")
    for name in ("System prompt", "Tools", "Messages"):
        piece(tab, name).locator("summary").click()
    expect(piece(tab, "System prompt")).to_contain_text("You are a helpful assistant.")
    expect(piece(tab, "Tools")).to_contain_text("current_time")
    expect(piece(tab, "Messages")).to_contain_text("40 messages, starting with:Message 0.")
    look(tab, "panel-context-open")
    check_both(tab)
    tab.ask("say: One more.")
    expect(piece(tab, "Messages").locator("summary")).to_contain_text("Messages (42)")
    expect(piece(tab, "Messages")).to_contain_text("42 messages")  # what was open stays open
    expect(panel(tab)).to_contain_text("So far")
    tab.answers.last.locator(".facts").click()
    expect(tab.answers.last).to_contain_text("The conversation so far:")


def test_how_full_the_model_is(tab: ChatPage, live_product: LiveProduct) -> None:
    key = live_product.seed("Nearly full", history(40))
    tab.open(f"/c/{key}")
    told = tab.page.evaluate("async (path) => (await fetch(path)).json()", f"/api/v1/instances/{key}/context")
    known = {"context_tokens": 4_000, "usable_tokens": 3_000, "model": f"somebody/{LONG}"}
    tab.page.route("**/instances/*/context", lambda route: route.fulfill(json={**told, **known}))
    toggle(tab).click()
    expect(panel(tab).locator(".is-tight")).to_contain_text("of 4,000 tokens")
    expect(panel(tab)).to_contain_text("Beyond 3,000 tokens older messages are summarised automatically.")
    expect(panel(tab).get_by_role("img")).to_have_attribute("aria-label", re.compile("Messages .* what the model can"))
    look(tab, "panel-full")


@pytest.mark.smoke
def test_hands_of_the_panel(tab: ChatPage, open_tab: OpenTab) -> None:
    toggle(tab).click()
    expect(tab.page.get_by_role("tab", name="Context")).to_be_focused()
    for name in ("Memory", "Overview"):
        tab.page.keyboard.press("ArrowRight")
        expect(tab.page.get_by_role("tab", name=name)).to_be_focused()
    tab.page.reload()
    expect(panel(tab)).to_be_visible()
    expect(tab.page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    expect(tab.input).to_be_focused()
    tab.page.get_by_role("tab", name="Overview").press("Escape")
    expect(panel(tab)).to_be_hidden()
    expect(toggle(tab)).to_be_focused()
    phone = open_tab("/?panel=memory", shape=PHONE)
    expect(panel(phone)).to_contain_text("Nothing is remembered about you yet.")
    assert phone.page.evaluate("document.querySelector('.sidebar').inert")
    phone.page.get_by_role("tab", name="Memory").press("Escape")
    expect(phone.page.locator("#user-menu")).to_be_focused()
    assert not phone.page.evaluate("document.querySelector('.sidebar').inert")


def block(tab: ChatPage, label: str) -> Locator:
    return (
        panel(tab)
        .get_by_role("article")
        .filter(has=tab.page.get_by_role("heading", name=label.capitalize(), exact=True))
    )


def test_what_is_remembered_is_seen_and_changed(keeper: ChatPage, open_tab: OpenTab) -> None:
    keeper.ask(remember("memory", "Likes tea."))
    keeper.ask(remember("notes", f"Water first. {LONG}"))
    keeper.ask(remember("guides", "Warm the pot."))
    toggle(keeper).click()
    show_view(keeper, "Memory")
    memory = block(keeper, "memory")
    expect(memory).to_contain_text("Likes tea.")
    expect(block(keeper, "guides").get_by_role("listitem")).to_have_count(1)
    block(keeper, "guides").get_by_role("listitem").locator("summary").click()
    memory.get_by_text("History").click()
    expect(memory).to_contain_text("The model wrote")
    look(keeper, "panel-memory")
    check_both(keeper)
    memory.get_by_role("button", name="Edit memory").click()
    field = memory.get_by_role("textbox", name="Text of memory")
    field.fill("word " * 400)
    memory.get_by_role("button", name="Save").click()
    expect(memory.get_by_role("alert")).to_contain_text("memory")  # it does not fit: said, and nothing lost
    look(keeper, "panel-memory-refused")
    field.fill("Likes coffee.")
    memory.get_by_role("button", name="Save").click()
    expect(memory.locator(".block-body")).to_have_text("Likes coffee.")
    expect(memory.get_by_role("button", name="Edit memory")).to_be_focused()
    expect(memory.locator(".changes li").first).to_contain_text("You wrote")
    elsewhere = open_tab("/c/new?agent=keeper", context=keeper.page.context)  # the panel is open there too
    expect(elsewhere.page.locator(".block", has_text="Likes coffee.")).to_be_visible()
    memory.locator(".changes li").last.get_by_role("button").click()
    expect(memory.locator(".block-body")).to_have_text("Likes tea.")
    memory.get_by_role("button", name="Delete memory").click()
    keeper.page.get_by_role("checkbox").check()
    look(keeper, "panel-memory-delete")
    keeper.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(memory.locator(".block-body")).to_have_text("Empty")
    expect(memory).not_to_contain_text("Likes tea.")


def test_documents_are_added_changed_and_set_again(keeper: ChatPage) -> None:
    keeper.ask("say: Hello.")
    toggle(keeper).click()
    show_view(keeper, "Memory")
    guides = block(keeper, "guides")
    add = guides.get_by_role("button", name="Add an entry to guides")
    add.click()
    look(keeper, "panel-entry-new")
    check_both(keeper)
    name, text = guides.get_by_label("Name that the model uses"), guides.get_by_label("Text", exact=True)
    expect(name).to_be_focused()
    name.fill("tea")
    text.fill("word " * 100_001)
    guides.get_by_role("button", name="Save").click()
    expect(guides.get_by_role("alert")).to_contain_text("at most 500000 characters")  # what was typed stays
    text.fill("Warm the pot.")
    guides.get_by_role("button", name="Save").click()
    expect(guides.locator("summary", has_text="tea")).to_be_visible()
    expect(add).to_be_focused()
    guides.locator("summary", has_text="tea").click()
    guides.get_by_role("button", name="Edit tea").click()
    guides.get_by_label("Text of tea").fill("Warm the cups.")
    guides.get_by_role("button", name="Save").click()
    entry = guides.locator(".entry-body")
    expect(entry.locator("> .block-text")).to_have_text("Warm the cups.")
    entry.get_by_text("History").click()
    expect(entry.locator(".changes li")).to_have_count(2)
    look(keeper, "panel-entry-history")
    check_both(keeper)
    entry.locator(".changes li").last.get_by_role("button").click()
    expect(entry.locator("> .block-text")).to_have_text("Warm the pot.")
    keeper.page.reload()
    guides.locator("summary", has_text="tea").click()
    expect(entry.locator("> .block-text")).to_have_text("Warm the pot.")


def test_a_document_that_is_read_stays_open_when_the_model_writes_another(keeper: ChatPage) -> None:
    keeper.ask("say: Hello.")
    toggle(keeper).click()
    show_view(keeper, "Memory")
    guides = block(keeper, "guides")
    guides.get_by_role("button", name="Add an entry to guides").click()
    guides.get_by_label("Name that the model uses").fill("tea")
    guides.get_by_label("Text", exact=True).fill("Warm the pot.")
    guides.get_by_role("button", name="Save").click()
    tea = guides.locator(".entry > summary", has_text="tea")
    tea.click()
    expect(guides.locator(".entry-body > .block-text")).to_have_text("Warm the pot.")
    milk = {"label": "guides", "metadata": {"title": "milk"}, "content": "Last."}
    keeper.input.fill(f"call tool set_context {json.dumps(milk)}\nsay: Noted.")
    keeper.input.press("Enter")
    tea.focus()
    expect(guides.locator("summary", has_text="milk")).to_be_visible()
    expect(guides.locator(".entry-body > .block-text")).to_have_text("Warm the pot.")
    expect(tea).to_be_focused()


def test_the_panel_follows_to_another_history_and_another_branch(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=shelves")
    tab.ask(remember("notes", "Water first."))
    toggle(tab).click()
    expect(piece(tab, "Messages").locator("summary")).to_contain_text("Messages (2)")
    tab.ask("say: One more.")
    expect(piece(tab, "Messages").locator("summary")).to_contain_text("Messages (4)")
    show_view(tab, "Memory")
    expect(block(tab, "notes")).to_contain_text("Water first.")
    tab.page.locator("#histories").click()
    tab.page.get_by_role("button", name="New history").click()
    tab.page.get_by_role("dialog").get_by_role("textbox").fill("Second")
    tab.page.keyboard.press("Enter")
    expect(block(tab, "notes")).to_contain_text("Empty")
    show_view(tab, "Context")
    expect(piece(tab, "Messages").locator("summary")).to_contain_text("Messages (0)")
    tab.page.locator("#histories").click()
    tab.page.locator(".history-name", has_text="Untitled").click()
    expect(piece(tab, "Messages").locator("summary")).to_contain_text("Messages (4)")
