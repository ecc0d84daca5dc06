"""The sections of the settings about a person's account, each by its main path."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.servers_panel import add

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


def test_a_key_of_ones_own_is_stored_tried_and_removed(open_tab: OpenTab) -> None:
    tab = open_tab("/settings/keys")
    page = tab.page
    row = page.get_by_role("listitem").filter(has_text="openai")
    expect(row).to_contain_text("No key of yours")
    row.get_by_role("button", name="Add a key for openai").click()
    expect(page.get_by_label("Key for openai")).to_be_focused()
    page.get_by_label("Key for openai").fill("sk-of-a-person-1234")
    check(page)
    look(tab, "keys-form")
    page.get_by_role("button", name="Store key").click()
    expect(row).to_contain_text("Your key ends in 1234.")
    row.get_by_role("button", name="Try the key for openai").click()
    expect(row.get_by_role("status")).to_contain_text("The provider accepted this key")
    assert "sk-of-a-person" not in page.content()
    check(page)
    look(tab, "keys-one")
    row.get_by_role("button", name="Remove the key for openai").click()
    confirm(page, "Remove")
    expect(row).to_contain_text("No key of yours")


def test_everything_is_taken_along_and_the_account_deleted(
    open_tab: OpenTab, live_product: LiveProduct, tmp_path: Path
) -> None:
    tab = open_tab("/c/new")
    page = tab.page
    tab.ask("say: Keep this.")
    tab.open("/settings/data")
    expect(page.get_by_text("1 conversation with all its messages")).to_be_visible()
    check(page)
    look(tab, "data")
    page.get_by_role("button", name="Make the zip").click()
    expect(page.get_by_text("Your zip is ready")).to_be_visible()
    look(tab, "data-ready")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    saved.value.save_as(tmp_path / "everything.zip")
    with zipfile.ZipFile(tmp_path / "everything.zip") as archive:
        [history] = [name for name in archive.namelist() if name.endswith(".jsonl")]
        assert b"Keep this." in archive.read(history)
    password = "pass-for-the-end"
    name = live_product.hand.call("tests.acceptance.people:give_password", live_product.user_id, password)
    sign_in(tab, name, password)
    tab.open("/settings/data")
    page.get_by_role("button", name="Delete my account…").click()
    page.get_by_label("Your password").fill("guessed")
    page.get_by_role("button", name="Delete my account", exact=True).click()
    look(tab, "data-sure")
    confirm(page, "Delete my account")
    expect(page.get_by_role("alert")).to_contain_text("your password is wrong")
    page.get_by_label("Your password").fill(password)
    page.get_by_role("button", name="Delete my account", exact=True).click()
    confirm(page, "Delete my account")
    page.wait_for_url("**/sign-in/**")
    tab.errors.clear()  # the browser notes the refusals
    tab.until(lambda: not live_product.hand.call("tests.acceptance.people:is_there", name))


def sign_in(tab: ChatPage, name: str, password: str) -> None:
    """Sign in with the form."""
    tab.page.goto(f"{tab.base_url}/sign-in/")
    tab.page.get_by_label("Name").fill(name)
    tab.page.get_by_label("Password").fill(password)
    tab.page.get_by_role("button", name="Sign in").click()
    tab.page.wait_for_url(lambda url: "/sign-in/" not in url)


def test_what_conversations_are_connected_to_is_seen_and_removed_at_one_place(tab: ChatPage, odd_address: str) -> None:
    page = tab.page
    tab.ask("say: Hello.")
    tab.open("/settings/tools")
    expect(page.get_by_text("No server is connected.")).to_be_visible()
    page.locator("#conversations a").first.click()
    shown = add(tab, "weather", odd_address)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    tab.open("/settings/tools")
    row = page.get_by_role("listitem").filter(has_text="weather")
    expect(row.get_by_role("status")).to_have_text("Ready")
    expect(row.get_by_role("link", name="In say: Hello.")).to_be_visible()
    check(page)
    look(tab, "tools-one")
    row.get_by_role("button", name="Remove: weather").click()
    confirm(page, "Remove")
    expect(row).to_have_count(0)
