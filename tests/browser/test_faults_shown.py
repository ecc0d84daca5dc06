"""What people read when something is in the way: the line, a limit, the end of a session; and who wrote an answer."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage, choose_more
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_line_about_the_connection_covers_no_message(
    new_context: Callable[..., BrowserContext], open_tab: OpenTab, page_line: CuttingProxy, shape: dict[str, Any]
) -> None:
    context = new_context(shape)
    tab = open_tab("/c/new", context=context)
    tab.ask("say: Begin.")
    first = tab.page.locator(".message").first
    before = first.bounding_box()
    context.set_offline(True)
    page_line.go_offline()
    bar = tab.page.locator("#connection")
    expect(bar).to_contain_text("offline")
    below, after = bar.bounding_box(), first.bounding_box()
    assert before == after
    assert below is not None
    assert after is not None
    assert below["y"] + below["height"] <= after["y"]
    look(tab, f"line-away-{'phone' if shape is PHONE else 'desktop'}")
    context.set_offline(False)


def test_a_limit_is_said_as_a_limit(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    refused = {"detail": "You are sending too fast. Wait a minute, then try again.", "code": "quota_exceeded"}
    tab.page.route("**/turns", lambda route: route.fulfill(status=429, json=refused))
    tab.write("One too many")
    expect(tab.page.locator(".message.is-pending")).to_contain_text(
        "You are sending too fast. Wait a minute, then try again. This one goes out in"
    )
    expect(tab.page.locator("#connection")).to_be_hidden()


def test_a_page_whose_session_has_ended_offers_to_sign_in(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    tab.page.route("**/turns", lambda route: route.fulfill(status=401, json={"detail": "You are not signed in."}))
    tab.write("Too late")
    bar = tab.page.locator("#connection")
    expect(bar).to_contain_text("signed out")
    expect(bar.get_by_role("button", name="Sign in again")).to_be_visible()


def test_a_slash_offers_commands_with_what_they_do(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    tab.input.fill("/")
    offer = tab.page.locator("#commands").get_by_role("button").first
    expect(offer).to_contain_text("Summarise older messages")
    offer.click()
    expect(tab.input).to_have_value("/compact ")


def test_an_answer_that_its_owner_wrote_says_so(tab: ChatPage) -> None:
    tab.ask("say: From the model.")
    expect(tab.answers.last.locator(".written-by")).to_have_count(0)
    choose_more(tab, tab.answers.last, "Edit this answer")
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("From me.")
    dialog.get_by_role("button", name="Save").last.click()
    expect(tab.answers.last.locator(".md")).to_have_text("From me.")
    expect(tab.answers.last.locator(".written-by")).to_contain_text("Edited by you")


def test_the_arrow_leads_from_the_search_to_what_was_found(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    tab.page.evaluate("""() => {
        const link = document.createElement("a");
        Object.assign(link, { id: "approvals-link", href: "#" });
        document.querySelector(".rows").prepend(link);
    }""")
    tab.page.locator("#search").press("ArrowDown")
    assert tab.page.evaluate("document.activeElement.closest('.conversations, #conversations, ul, ol') !== null")


def test_a_memory_can_be_begun(tab: ChatPage) -> None:
    tab.page.goto(f"{tab.base_url}/c/new?panel=memory")
    panel = tab.page.locator("#panel-memory")
    expect(panel).to_contain_text("Nothing is remembered about you yet.")
    panel.get_by_role("button", name="Write memory").click()
    panel.get_by_role("textbox").fill("Likes tea.")
    panel.get_by_role("button", name="Save").click()
    expect(panel).to_contain_text("Likes tea.")
