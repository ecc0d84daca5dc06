"""Servers of tools in the panel: adding one, and accepting its tools."""

from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.side_panel import tools


def add(tab: ChatPage, name: str, url: str) -> Locator:
    """Add a server in the panel; its view is shown."""
    shown = tools(tab)
    shown.get_by_role("button", name="Add a server").click()
    shown.get_by_role("textbox", name="Name", exact=True).fill(name)
    shown.get_by_role("textbox", name="Address").fill(url)
    shown.get_by_role("button", name="Add", exact=True).click()
    expect(shown.get_by_role("heading", name=name)).to_be_visible()
    return shown


def accept(shown: Locator) -> None:
    """Say that the tools of the server were looked at."""
    button = shown.get_by_role("button", name="Accept these tools")
    button.click()
    expect(button).to_have_count(0)


def paste(tab: ChatPage, text: str) -> Locator:
    """Paste a configuration in the panel, and look at what it would add."""
    shown = tools(tab)
    shown.get_by_role("button", name="Paste a configuration").click()
    shown.get_by_role("textbox", name="Configuration").fill(text)
    shown.get_by_role("button", name="Preview").click()
    expect(shown.get_by_role("button", name="Back to the text")).to_be_visible()
    return shown
