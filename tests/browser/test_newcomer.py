"""The first hour of a newcomer who looks after the site: everything is found by what the page shows, by no address."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct

PASSWORD = "a long enough passphrase"


def menu(tab: ChatPage, *names: str) -> None:
    """Choose an entry of the person's own menu, then a section of the settings where one is named."""
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name=names[0], exact=True).click()
    for name in names[1:]:
        section(tab, name).click()
        expect(tab.page.get_by_role("heading", name=name, level=2)).to_be_visible()


def section(tab: ChatPage, name: str) -> Locator:
    return tab.page.get_by_role("navigation", name="Settings").get_by_role("link", name=name, exact=True)


def share_and_take_back(tab: ChatPage, words: str) -> None:
    """Make a link, read it as a stranger, end it in the settings."""
    page = tab.page
    page.locator("#conversation-more").click()
    page.get_by_role("menuitem", name="Share…").click()
    page.get_by_role("dialog").get_by_role("button", name="Make a link").click()
    link = page.get_by_role("dialog").get_by_label("Link", exact=True).input_value()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    stranger = page.context.browser.new_context(service_workers="block")  # type: ignore[union-attr]  # it has one
    try:
        reader = stranger.new_page()
        reader.goto(link)
        expect(reader.locator("body")).to_contain_text(words)
        menu(tab, "Settings", "Shared links")
        page.get_by_role("list", name="Links that work").get_by_role("button", name="Take back").click()
        expect(page.get_by_role("list", name="Links that work")).to_have_count(0)
        reader.reload()
        expect(reader.locator("body")).not_to_contain_text(words)
        expect(reader.get_by_role("alert")).to_contain_text(re.compile("."))
    finally:
        stranger.close()


def test_a_newcomer_finds_everything_without_knowing_an_address(
    open_tab: Callable[..., ChatPage], live_product: LiveProduct
) -> None:
    tab = open_tab("/")
    page = tab.page
    name = page.locator("#user-menu").inner_text()
    live_product.call("make_staff", live_product.user_id)
    live_product.call("give_password", live_product.user_id, PASSWORD)

    page.context.clear_cookies()
    page.goto(tab.base_url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    tab.rest()

    menu(tab, "Administration")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.get_by_role("link", name="Think").first.click()
    tab.rest()

    menu(tab, "Settings", "Tokens and programs")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name", exact=True).fill("Backup script")
    page.get_by_role("button", name="Make token").click()
    expect(page.locator(".account-code")).not_to_be_empty()
    page.get_by_role("button", name="I’ve stored it").click()
    expect(page.get_by_role("listitem").filter(has_text="Backup script")).to_be_visible()

    section(tab, "You").click()
    page.get_by_label("Language").select_option(label="Deutsch")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("heading", name="Einstellungen", level=1)).to_be_visible()
    check(page)
    page.get_by_label("Sprache").select_option(label="English")
    expect(page.locator("html")).to_have_attribute("lang", "en")

    page.get_by_role("link", name="New", exact=True).or_(
        page.get_by_role("button", name="New", exact=True)
    ).first.click()
    tab.ask("Alpha\nsay: The first words.")
    address = page.url
    page.get_by_role("button", name="More for “Alpha”").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    expect(page).to_have_url(address)
    expect(tab.answers.last).to_contain_text("The first words.")
    share_and_take_back(tab, "The first words.")
