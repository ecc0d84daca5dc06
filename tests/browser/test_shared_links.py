"""A conversation by a link: made, read by a stranger, continued by another person, and taken back."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


@pytest.fixture
def profile(new_context: Callable[..., BrowserContext], live_product: LiveProduct) -> Callable[..., BrowserContext]:
    """Make a browser profile of a stranger, or of a further person who has signed in."""

    def make(*, signs_in: bool = False, **options: str) -> BrowserContext:
        context = new_context(**options)
        context.clear_cookies()
        if signs_in:
            context.add_cookies(live_product.sign_in())  # type: ignore[arg-type]  # as `new_context` does
        return context

    return make


@pytest.mark.smoke
def test_a_link_is_made_read_continued_and_taken_back(
    open_tab: OpenTab, profile: Callable[..., BrowserContext]
) -> None:
    hers = open_tab("/c/new?agent=desk")
    hers.write("say: **Words** for everyone.")
    expect(hers.answers.last).to_contain_text("Words for everyone.")
    hers.settle()
    hers.page.locator("#conversation-more").click()
    hers.page.get_by_role("menuitem", name="Share…").click()
    dialog = hers.page.get_by_role("dialog")
    dialog.get_by_label("Works for").select_option("7")
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_label("Link", exact=True).input_value()
    expect(dialog.get_by_role("list", name="Links that work").get_by_role("listitem")).to_have_count(1)
    check(hers.page)
    look(hers, "share-links")
    dialog.get_by_role("button", name="Close").click()
    hers.write("say: Not for you.")
    expect(hers.answers.last).to_contain_text("Not for you.")

    path = link.removeprefix(hers.base_url)
    stranger = open_tab(path, profile())
    expect(stranger.answers).to_have_count(1)
    expect(stranger.answers.locator("strong")).to_have_text("Words")  # drawn as in the chat page
    expect(stranger.page.locator("body")).not_to_contain_text("Not for you.")
    expect(stranger.page.get_by_role("textbox")).to_have_count(0)
    expect(stranger.page.get_by_role("link", name="Sign in to continue in your own")).to_be_visible()
    check(stranger.page)
    look(stranger, "shared-page")
    abroad = open_tab(path, profile(locale="ar"))
    expect(abroad.page.locator("html")).to_have_attribute("dir", "rtl")
    expect(abroad.page.get_by_role("link", name="سجّل الدخول للمتابعة في محادثتك")).to_be_visible()
    abroad.page.close()

    his = open_tab(path, profile(signs_in=True))
    his.page.get_by_role("button", name="Continue in your own").click()
    his.page.wait_for_url("**/c/ins_*")
    expect(his.answers).to_have_count(1)
    his.write("say: My own.")
    expect(his.answers.last).to_contain_text("My own.")

    hers.open("/settings/links")
    links = hers.page.get_by_role("list", name="Links that work").get_by_role("listitem")
    expect(links).to_have_count(1)
    check(hers.page)
    look(hers, "settings-links")
    links.get_by_role("button", name="Take back").click()
    expect(links).to_have_count(0)
    reply = stranger.page.goto(link)
    assert reply is not None
    assert reply.status == 404
    expect(stranger.page.get_by_role("alert")).to_be_visible()
    stranger.errors.clear()  # the browser notes the refusal
