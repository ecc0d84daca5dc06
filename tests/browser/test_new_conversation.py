"""New conversations: each tab begins its own, however it came to be, and what it sends arrives once."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage

OpenTab = Callable[..., ChatPage]
STORED = re.compile(r"/c/ins_")


def titles(tab: ChatPage) -> list[str]:
    """Titles in the list of conversations, in alphabetic order."""
    return sorted(tab.page.locator("#conversations .row-title").all_text_contents())


def test_two_tabs_begin_two_conversations(tab: ChatPage, open_tab: OpenTab) -> None:
    other = open_tab(context=tab.page.context)
    tab.ask("First tab\nsay: For the first.")
    other.ask("Second tab\nsay: For the second.")
    assert tab.page.url != other.page.url
    for each, text in ((tab, "First tab"), (other, "Second tab")):
        each.page.reload()
        expect(each.messages).to_have_count(2)
        expect(each.messages.first).to_contain_text(text)


def test_a_duplicated_tab_begins_its_own_conversation(tab: ChatPage) -> None:
    tab.page.evaluate("sessionStorage.setItem('of', 'the first tab')")
    with tab.page.expect_popup() as opened:
        tab.page.evaluate("window.open(location.href)")  # a copy of the tab's storage goes with it
    copy = ChatPage(opened.value, tab.base_url)
    copy.page.wait_for_selector("html[data-ready]", state="attached")
    assert copy.page.evaluate("sessionStorage.getItem('of')") == "the first tab"
    with_history(copy.page, tab.page.evaluate("history.state"))
    tab.ask("The original\nsay: One.")
    copy.ask("The copy\nsay: Two.")
    assert tab.page.url != copy.page.url
    expect(copy.messages).to_have_count(2)
    expect(copy.messages.first).to_contain_text("The copy")


def with_history(page: Page, state: object) -> None:
    """Load the page with the state of another tab's history entry, as "Duplicate tab" does."""
    page.evaluate("(state) => history.replaceState(state, '')", state)
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")


def test_a_copy_of_a_tab_that_is_sending_shows_and_sends_the_same_once(tab: ChatPage, open_tab: OpenTab) -> None:
    context = tab.page.context
    context.route("**/turns", lambda route: route.abort())
    tab.write("In both\nsay: Once.")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Will be sent")
    # The conversation has been made, so the copy opens it by its address and finds the message in the shared outbox.
    copy = open_tab(tab.page.url.removeprefix(tab.base_url), context=context, holds_back=True)
    expect(copy.page.locator(".message.is-pending")).to_contain_text("In both")
    context.unroute("**/turns")
    copy.holds_back = False
    for each in (tab, copy):
        each.rest()
        expect(each.messages).to_have_count(2, timeout=30_000)
    assert titles(tab) == ["In both"]


@pytest.mark.smoke
def test_a_reload_during_the_first_send_sends_once(tab: ChatPage) -> None:
    lost: list[object] = []

    def lose_the_answer(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch())  # the server has made the conversation, the browser does not know
        if route.request.method == "POST":
            route.abort()
        else:
            route.continue_()

    tab.page.route("**/api/v1/instances", lose_the_answer)
    tab.write("Only one\nsay: One answer.")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Will be sent")
    tab.page.reload()
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Only one")
    tab.page.unroute("**/api/v1/instances")
    tab.page.reload()
    expect(tab.page).to_have_url(STORED, timeout=20_000)
    expect(tab.answers.last.locator(".md")).to_have_text("One answer.", timeout=20_000)
    tab.rest()
    tab.page.reload()
    expect(tab.messages).to_have_count(2)
    assert titles(tab) == ["Only one"]


def test_back_and_forward_keep_new_conversations_apart(tab: ChatPage, page_line: CuttingProxy) -> None:
    page_line.go_offline()
    tab.write("Written first\nsay: One.")
    pending = tab.page.locator(".message.is-pending")
    expect(pending).to_contain_text("Written first")
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.messages).to_have_count(0)
    tab.write("Written second\nsay: Two.")
    expect(pending).to_contain_text("Written second")
    tab.page.go_back()
    expect(pending).to_contain_text("Written first")
    expect(tab.messages).to_have_count(1)
    page_line.go_online()
    expect(tab.answers.last.locator(".md")).to_have_text("One.", timeout=30_000)
    tab.rest()
    expect(tab.page).to_have_url(STORED)
    expect(tab.page.locator("#conversations .row-title")).to_have_count(2, timeout=30_000)
    assert titles(tab) == ["Written first", "Written second"]
    tab.page.go_forward()
    expect(tab.messages).to_have_count(0)  # the second is in the list; nothing begins in it by accident


def test_what_a_closed_tab_could_not_send_becomes_its_own_conversation(
    tab: ChatPage, open_tab: OpenTab, page_line: CuttingProxy
) -> None:
    page_line.go_offline()
    tab.write("From the closed tab\nsay: Found.")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("From the closed tab")
    context = tab.page.context
    tab.page.close()
    page_line.go_online()
    other = open_tab(context=context)
    expect(other.page.locator("#conversations .row-title")).to_have_text("From the closed tab", timeout=30_000)
    expect(other.messages).to_have_count(0)
    other.ask("Something else\nsay: Apart.")
    expect(other.messages).to_have_count(2)
    other.page.get_by_role("link", name="From the closed tab").click()
    expect(other.answers.last.locator(".md")).to_have_text("Found.", timeout=20_000)
    expect(other.messages).to_have_count(2)


def test_a_draft_comes_back_in_a_conversation_of_another_name(tab: ChatPage, open_tab: OpenTab) -> None:
    tab.input.fill("Half a thought")
    context = tab.page.context
    tab.page.reload()
    expect(tab.input).to_have_value("Half a thought")
    other = open_tab(context=context)
    expect(other.input).to_have_value("Half a thought")
    other.ask("Something else\nsay: Apart.")
    tab.ask("Half a thought\nsay: Whole.")
    assert tab.page.url != other.page.url
    assert tab.page.evaluate("Object.keys(localStorage).filter((key) => /unsent|outbox/.test(key))") == []


_SHIFT = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
}"""
_LOADED = "() => performance.getEntriesByType('resource').map(({ name }) => name)"
_QUIET = """() => new Promise((resolve) => {
    const isThere = () => performance.getEntriesByType("resource").some(({ name }) => name.includes("/views."));
    const look = () => isThere() ? resolve() : setTimeout(look, 50);
    look();
})"""
"""Until what is loaded once the page is quiet has come."""


def test_nothing_of_an_empty_conversation_comes_late(tab: ChatPage) -> None:
    page = tab.page
    page.add_init_script(f"({_SHIFT})()")
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate(_QUIET)
    tab.rest()
    assert not [name for name in page.evaluate(_LOADED) if "/offers" in name]
    assert page.evaluate("window.shift") <= 0.005
    page.get_by_text("What this agent can use").click()
    expect(page.locator(".offers")).to_contain_text("What it can use")
