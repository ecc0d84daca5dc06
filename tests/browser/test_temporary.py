"""Temporary conversations: begun by a switch, marked, in no list; kept, or gone at once."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

STORED = re.compile(r"/c/ins_")


@pytest.mark.smoke
def test_one_is_begun_kept_and_another_is_gone_at_once(tab: ChatPage) -> None:
    page = tab.page
    switch = page.get_by_role("button", name="Temporary", exact=True)
    mark, rows = page.locator("#place"), page.locator("#conversations .row-title")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.click()
    expect(mark).to_contain_text("in no list, search or memory")
    look(tab, "temporary-new")
    tab.ask("Between us\nsay: Nobody reads this.")
    expect(page).to_have_url(STORED)
    expect(switch).to_have_count(0)
    look(tab, "temporary")
    check(page)
    page.reload()
    expect(tab.messages).to_have_count(2)
    expect(mark).to_contain_text("in no list, search or memory")
    expect(rows).to_have_count(0)
    mark.get_by_role("button", name="Keep this conversation").click()
    expect(mark).to_have_count(0)
    expect(rows).to_have_text(["Between us"])

    page.get_by_role("link", name="New", exact=True).click()
    switch.click()
    tab.ask("Also between us\nsay: Gone soon.")
    address = page.url
    mark.get_by_role("button", name="Delete now").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(tab.messages).to_have_count(0)
    assert page.request.get(address).status == 404
    assert page.request.get(f"{tab.base_url}/api/v1/deleted").json() == []
    expect(rows).to_have_text(["Between us"])
