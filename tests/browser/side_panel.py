"""The panel beside a conversation, in its colour schemes and with words that are too long for it."""

from playwright.sync_api import Locator

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import SCHEMES

TOGGLE = "Context, memory, files and tools"
GROUPS = {
    "Files": ("Files",),
    "Work": ("Schedules", "Background"),
    "About": ("Context", "Memory", "Overview", "Tools"),
}
LONG = "verylongwordwithoutanyspace" * 12


def toggle(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("button", name=TOGGLE, exact=True)


def panel(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("complementary", name=TOGGLE)


def piece(tab: ChatPage, name: str) -> Locator:
    return panel(tab).locator("details.context-piece", has=tab.page.locator("summary", has_text=name))


def check_both(tab: ChatPage) -> None:
    for scheme in SCHEMES:
        tab.page.emulate_media(color_scheme=scheme)
        check(tab.page)


def show_view(tab: ChatPage, name: str) -> None:
    """Go to a view of the open panel, by way of its group."""
    group = next(each for each, names in GROUPS.items() if name in names)
    panel(tab).get_by_role("tab", name=group).first.click()
    if len(GROUPS[group]) > 1:
        panel(tab).get_by_role("tab", name=name).last.click()


def tools(tab: ChatPage) -> Locator:
    if not panel(tab).is_visible():
        toggle(tab).click()
    show_view(tab, "Tools")
    return tab.page.get_by_role("tabpanel", name="Tools")
