"""The sections of the settings about a person's account, each by its main path."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def confirm(page: Page, name: str) -> None:
    """Answer the question before something that cannot be undone."""
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def api(page: Page, secret: str, path: str) -> int:
    """The status of a request of a program with a token."""
    status: int = page.request.get(path, headers={"Authorization": f"Bearer {secret}"}).status
    return status


@pytest.mark.smoke
def test_a_token_is_made_shown_once_and_revoked(open_tab: OpenTab) -> None:
    tab = open_tab("/settings/tokens")
    page = tab.page
    expect(page.get_by_text("None so far. A program that wants access asks you")).to_be_visible()
    look(tab, "tokens-none")
    page.get_by_role("button", name="New token").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Backup script")
    page.get_by_label("Works for").select_option("30 days")
    page.get_by_label("Only run tools as one executor").check()
    check(page)
    look(tab, "tokens-form")
    page.get_by_label("Do everything that I may").check()
    page.get_by_role("button", name="Make token").click()
    secret = page.locator(".account-code").inner_text()
    check(page)
    look(tab, "tokens-secret")
    url = f"{tab.base_url}/api/v1/instances"
    assert api(page, secret, url) == 200
    page.get_by_role("button", name="I’ve stored it").click()
    expect(page.get_by_role("button", name="New token")).to_be_focused()
    tab.open("/settings/tokens")
    row = page.get_by_role("listitem").filter(has_text="Backup script")
    expect(row).to_contain_text("Last used")
    expect(page.locator(".account-code")).to_have_count(0)
    look(tab, "tokens-one")
    row.get_by_role("button", name="Revoke Backup script").click()
    confirm(page, "Revoke")
    expect(row).to_have_count(0)
    assert api(page, secret, url) == 401


def test_another_browser_is_signed_out_at_once(
    open_tab: OpenTab, new_context: Callable[..., BrowserContext], live_product: LiveProduct
) -> None:
    tab = open_tab("/settings/sessions")
    page = tab.page
    here = page.get_by_role("listitem").filter(has_text="This browser")
    expect(here).to_contain_text("Chrome on Linux")
    expect(page.get_by_role("button", name="Sign out all other browsers")).to_have_count(0)
    other = new_context()
    key = live_product.hand.call("tests.acceptance.people:another_session", live_product.user_id)
    cookies: list[Any] = [{**each, "value": key} for each in other.cookies() if each.get("httpOnly")]
    other.clear_cookies()
    other.add_cookies(cookies)
    there = open_tab("/c/new", other)
    tab.open("/settings/sessions")
    expect(page.locator(".account-row")).to_have_count(2)
    check(page)
    look(tab, "sessions-two")
    page.get_by_role("button", name="Sign out all other browsers").click()
    confirm(page, "Sign out all other browsers")
    expect(page.locator(".account-row")).to_have_count(1)
    expect(here).to_be_visible()
    expect(there.page.get_by_text("You’ve been signed out").first).to_be_visible()
    there.errors.clear()  # the browser notes the refusals
