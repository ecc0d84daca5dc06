"""The whole product from the keyboard: what has the focus, in which order, and how it is called."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat_page import ChatPage

OpenTab = Callable[..., ChatPage]
FOCUS = """() => {
    const element = document.activeElement;
    const name = element.getAttribute("aria-label") || element.innerText || element.getAttribute("placeholder") || "";
    return `${element.getAttribute("role") || element.tagName.toLowerCase()} ${name.trim().split("\\n")[0]}`.trim();
}"""
READING_ORDER = """() => {
    const spoken = [];
    const walk = (node) => {
        if (node.nodeType === Node.TEXT_NODE) {
            const text = node.data.trim();
            if (text) spoken.push(text);
            return;
        }
        if (node.nodeType !== Node.ELEMENT_NODE || node.hidden || node.inert) return;
        if (node.getAttribute("aria-hidden") === "true" || getComputedStyle(node).display === "none") return;
        if (/^(SCRIPT|STYLE|NOSCRIPT)$/.test(node.tagName)) return;
        const label = node.getAttribute("aria-label");
        if (label) spoken.push(label);
        if (label && node.matches("button, a, input, textarea")) return;
        node.childNodes.forEach(walk);
    };
    walk(document.body);
    return spoken;
}"""


def focused(page: Page) -> str:
    """Role and name of what has the focus."""
    return str(page.evaluate(FOCUS))


def tab_to(page: Page, wanted: str, *, key: str = "Tab", most: int = 60) -> None:
    """Press a key until the wanted thing has the focus."""
    passed = []
    for _ in range(most):
        if wanted in focused(page):
            return
        passed.append(focused(page))
        page.keyboard.press(key)
    raise AssertionError(f"{wanted} cannot be reached: {passed}")


def type_message(page: Page, text: str) -> None:
    """Write into what has the focus and send it."""
    for index, line in enumerate(text.split("\n")):
        if index:
            page.keyboard.press("Shift+Enter")
        page.keyboard.type(line)
    page.keyboard.press("Enter")


def test_first_visit_begins_at_the_message_field(tab: ChatPage) -> None:
    assert focused(tab.page) == "textarea Message"
    type_message(tab.page, "say: From the keys.")
    tab.rest()
    assert tab.text_of_last() == "From the keys."
    assert focused(tab.page) == "textarea Message", "the focus stays where one writes"


def test_skip_link_leads_to_the_field(tab: ChatPage) -> None:
    tab_to(tab.page, "a Skip to the message field", key="Shift+Tab")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Shift+Tab")
    assert "Message" in focused(tab.page)


@pytest.mark.smoke
def test_edit_branch_and_back(tab: ChatPage) -> None:
    type_message(tab.page, "say: First.")
    tab.rest()
    tab.page.keyboard.press("ArrowUp")
    expect(tab.page.locator("#edit-bar")).to_be_visible()
    expect(tab.input).to_have_value("say: First.")
    tab.page.keyboard.press("Control+a")
    type_message(tab.page, "say: Second.")
    tab.rest()
    assert tab.text_of_last() == "Second."
    tab_to(tab.page, "Previous version", key="Shift+Tab")
    tab.page.keyboard.press("Enter")
    expect(tab.answers.last).to_contain_text("First.")
    expect(tab.page.locator(".siblings button:focus")).to_have_count(1)  # the switch of the other version
    tab.page.keyboard.press("Enter")
    expect(tab.answers.last).to_contain_text("Second.")


@pytest.mark.smoke
def test_an_approval_is_given(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=desk")
    type_message(tab.page, 'call tool pay {"amount": 5}\nsay: Sent.')
    expect(tab.page.locator(".question")).to_be_visible(timeout=20_000)
    assert "approval" in tab.spoken(), "that the answer waits is said"
    tab_to(tab.page, "button Allow", key="Shift+Tab")
    tab.page.keyboard.press("Enter")
    tab.rest()
    expect(tab.answers.last).to_contain_text("Sent.")
    assert focused(tab.page) != "body ", "the focus is not lost with the button"


def test_search_and_back(tab: ChatPage) -> None:
    tab.ask("A heron on the roof\nsay: It stands still.")
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("searchbox", name="Search")).to_be_focused()
    tab.page.keyboard.type("heron")
    expect(tab.page.locator("#hits .hit")).to_have_count(1, timeout=20_000)
    for _ in range(4):
        tab.page.keyboard.press("ArrowDown")
        if tab.page.evaluate("document.activeElement.closest('#hits') !== null"):
            break
    assert "heron" in focused(tab.page)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".message", has_text="heron").first).to_be_focused()


def test_shortcuts_are_listed(tab: ChatPage) -> None:
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.keyboard.press("?")
    dialog = tab.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Search all conversations")
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_reading_order(tab: ChatPage) -> None:
    tab.ask("What is read first?\nsay: The list, then the question, then this.")
    order = "\n".join(tab.page.evaluate(READING_ORDER))
    places = [
        order.index(text)
        for text in (
            "Skip to the message field",
            "Conversations",
            "Search conversations",
            "What is read first?",
            "The list, then the question, then this.",
            "Message",
        )
    ]
    last = order.rindex("Send")
    assert places[:-1] == sorted(places[:-1]), order
    assert places[-2] < last, order
