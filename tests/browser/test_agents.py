"""Choosing an agent, and seeing who answers: beside New, in the head, in the list and in the title of the window."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import check
from tests.browser.boot import change_boot
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def keep_agents(*names: str) -> Callable[[dict[str, Any]], None]:
    """A change that leaves only these agents."""

    def change(boot: dict[str, Any]) -> None:
        boot["agents"] = [agent for agent in boot["agents"] if agent["name"] in names]

    return change


def agents_button(page: Page) -> Any:
    """The arrow beside New."""
    return page.locator("#choose-agent")


def options(page: Page) -> Any:
    """The agents that are offered."""
    return page.get_by_role("dialog", name="Choose an agent").locator("[data-option]")


@pytest.mark.smoke
def test_agent_is_chosen_by_keyboard_and_named_everywhere(tab: ChatPage) -> None:
    page = tab.page
    agents_button(page).focus()
    page.keyboard.press("Enter")
    field = page.get_by_role("searchbox", name="Search agents")
    expect(field).to_be_focused()
    check(page)
    page.keyboard.type("returns")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/c/new\?agent=clerk$"))
    expect(page.locator("#agent-name")).to_have_text("Agent: Returns clerk")
    expect(page).to_have_title("New conversation · Returns clerk · Think")
    expect(tab.input).to_be_focused()
    tab.ask("A parcel\nsay: It is on its way.")
    expect(page.locator("#conversations .row-agent")).to_have_text("Returns clerk")
    expect(page).to_have_title("A parcel · Returns clerk · Think")
    check(page)
    look(tab, "agent-named")


def test_an_agent_that_works_for_others_is_not_offered_and_is_named_where_it_answers(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=helper")
    expect(tab.page.locator("#agent-name")).to_have_text("Agent: Helper of others")
    tab.ask("A word\nsay: Of help.")
    expect(tab.page.locator("#conversations .row-agent")).to_have_text("Helper of others")
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.page.locator("#agent-name")).not_to_contain_text("Helper of others")
    agents_button(tab.page).click()
    tab.page.get_by_role("searchbox", name="Search agents").fill("helper of")
    expect(options(tab.page)).to_have_count(0)
    look(tab, "agent-not-offered")


def test_new_begins_with_the_agent_used_last(tab: ChatPage, open_tab: OpenTab) -> None:
    tab.open("/c/new?agent=clerk")
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.page.locator("#agent-name")).to_contain_text("Returns clerk")
    other = open_tab(context=tab.page.context)
    expect(other.page.locator("#agent-name")).to_contain_text("Returns clerk")
    agents_button(other.page).click()
    expect(options(other.page).and_(other.page.locator("[aria-current]"))).to_contain_text("Returns clerk")


def test_few_agents_need_no_search_and_are_found_by_their_letters(tab: ChatPage) -> None:
    page = tab.page
    change_boot(tab, keep_agents("assistant", "board", "keeper"))
    tab.open("/c/new")
    agents_button(page).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Search agents")).to_have_count(0)
    expect(options(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(options(page).nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(options(page).nth(2)).to_be_focused()
    page.keyboard.type("bo")
    expect(options(page).nth(1)).to_be_focused()
    check(page)
    page.keyboard.press("Escape")
    expect(agents_button(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(options(page).nth(0)).to_be_focused()
    page.keyboard.type("k")
    page.keyboard.press("Enter")
    expect(page.locator("#agent-name")).to_contain_text("Keeper")


def test_only_agent_needs_no_choice(tab: ChatPage, live_product: LiveProduct) -> None:
    change_boot(tab, keep_agents("assistant"), "**/c/*")
    tab.open("/c/new")
    expect(agents_button(tab.page)).to_have_count(0)
    expect(tab.page.locator("#agent-name")).to_have_text("Agent: Assistant")
    expect(tab.page).to_have_title("New conversation · Think")
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}
    tab.open("/c/" + live_product.seed("Alpha", [message]))
    expect(tab.page.locator("#conversations .row-title")).to_have_text("Alpha")
    expect(tab.page).to_have_title("Alpha · Think")
    expect(tab.page.locator(".row-agent")).to_have_count(0)


def test_head_chooses_while_nothing_is_written(open_tab: OpenTab) -> None:
    phone = open_tab(shape=PHONE)
    head = phone.page.locator(".main-head")
    head.get_by_role("button", name="Assistant").click()
    check(phone.page)
    options(phone.page).filter(has_text="Returns clerk").click()
    expect(head.locator("#agent-name")).to_contain_text("Returns clerk")
    phone.ask("A parcel\nsay: Here.")
    expect(head.get_by_role("button", name="Returns clerk")).to_have_count(0)
    expect(head.locator("#agent-name")).to_contain_text("Returns clerk")


def test_search_among_agents_says_what_it_found(tab: ChatPage) -> None:
    agents_button(tab.page).click()
    expect(tab.page.get_by_role("searchbox", name="Search agents")).to_be_focused()
    tab.page.keyboard.type("waiter")
    expect(options(tab.page)).to_have_count(2)
    expect(tab.page.get_by_role("dialog").get_by_role("status")).to_have_text("2 agents")
    tab.page.keyboard.press("ArrowDown")
    expect(options(tab.page).first).to_be_focused()
    tab.page.get_by_role("searchbox", name="Search agents").fill("unknown name")
    expect(tab.page.get_by_text("No agent matches.")).to_be_visible()
    check(tab.page)


def test_picture_and_letters_stand_for_an_agent(tab: ChatPage) -> None:
    icon = tab.page.locator("link[rel=icon]").get_attribute("href")

    def change(boot: dict[str, Any]) -> None:
        pictured, lettered = boot["agents"][:2]
        pictured.update(title="Pictured", icon="", icon_url=icon)
        lettered.update(title="Support Desk", icon="")
        boot["agents"] = [pictured, lettered]

    change_boot(tab, change)
    tab.open("/c/new")
    loaded = "image => image.complete && image.naturalWidth > 0"
    assert tab.page.locator(".main-head img.agent-mark").evaluate(loaded)
    agents_button(tab.page).click()
    expect(options(tab.page).nth(1).locator(".agent-mark")).to_have_text("SD")
    check(tab.page)


def test_unknown_agent_of_an_address_is_not_begun(tab: ChatPage) -> None:
    tab.open("/c/new?agent=unknown")
    expect(tab.page.locator("#agent-name")).to_have_text("Agent: Assistant")
