"""The settings of a person: an address for each section, by keyboard and by mouse, wide and narrow."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def sections(page: Page) -> list[str]:
    """The names of all sections, as the column has them."""
    names = [link.get_attribute("data-section") for link in page.locator(".settings-list a").all()]
    assert None not in names
    return [name for name in names if name]


@pytest.mark.smoke
def test_each_section_has_an_address(tab: ChatPage) -> None:
    page = tab.page
    page.locator("#user-menu").press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    expect(page.get_by_role("menuitem").first).to_have_text("Settings")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{tab.base_url}/settings")
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    expect(page.locator("#search")).to_be_visible()
    expect(page.get_by_role("heading", name="You", level=2)).to_be_focused()
    for name in sections(page):
        page.locator(f".settings-list [data-section={name}]").press("Enter")
        expect(page).to_have_url(f"{tab.base_url}/settings/{name}")
        expect(page.locator(f".settings-list [data-section={name}]")).to_have_attribute("aria-current", "page")
        heading = page.locator(".settings-section > h2")
        expect(heading).to_be_focused()
        expect(page).to_have_title(f"{heading.inner_text()} · Settings · Think")
        tab.settle()
        check(page)
        look(tab, f"settings-{name}")
    page.go_back()
    expect(page).not_to_have_url(f"{tab.base_url}/settings/{sections(page)[-1]}")
    page.go_forward()
    expect(page).to_have_url(f"{tab.base_url}/settings/{sections(page)[-1]}")
    tab.open("/settings/nothing")
    expect(page.get_by_role("alert")).to_contain_text("There’s no section “nothing”")


def test_sections_are_a_list_on_phones(open_tab: OpenTab) -> None:
    tab = open_tab("/settings", shape=PHONE)
    page = tab.page
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    names = sections(page)
    page.locator(f".settings-list [data-section={names[0]}]").tap()
    expect(page.get_by_role("heading", name="You", level=1)).to_be_focused()
    expect(page.locator(".settings-list")).to_have_count(0)
    check(page)
    page.get_by_role("link", name="All settings").tap()
    expect(page).to_have_url(f"{tab.base_url}/settings")
    expect(page.locator(".settings-list a")).to_have_count(len(names))
    check(page)
    page.get_by_role("link", name="All conversations").tap()
    expect(page.locator("#search")).to_be_visible()
