"""The list of conversations: found, named, removed, marked; reachable by keyboard; its own screen on a phone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.test_accessibility import check

OpenTab = Callable[..., ChatPage]


def rows(tab: ChatPage) -> list[str]:
    """Titles in the list, in order."""
    return tab.page.locator("#conversations .row-title").all_text_contents()


def test_empty_product_invites(tab: ChatPage) -> None:
    tab.open("/")
    expect(tab.page.locator("#no-conversations")).to_have_text("No conversations yet. Write a message to start one.")
    check(tab.page)
    look(tab, "empty-product")


def test_newest_activity_comes_first_under_its_day(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("link", name="New", exact=True).click()
    tab.ask("Beta\nsay: b.")
    expect(tab.page.locator("#conversations h2")).to_have_text("Today")
    assert rows(tab) == ["Beta", "Alpha"]
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.page.locator("#title")).to_have_text("Alpha")
    assert tab.text_of_last() == "a."


def test_back_button_goes_to_the_former_conversation(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("link", name="New", exact=True).click()
    tab.ask("Beta\nsay: b.")
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.page.locator("#title")).to_have_text("Alpha")
    tab.page.go_back()
    expect(tab.page.locator("#title")).to_have_text("Beta")
    expect(tab.answers.last.locator(".md")).to_have_text("b.")


def test_wide_screen_opens_the_last_conversation(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.open("/")
    expect(tab.page).to_have_url(re.compile(r"/c/ins_"))
    expect(tab.answers.last.locator(".md")).to_have_text("a.")


@pytest.mark.smoke
def test_search_finds_by_title_and_ctrl_k_leads_there(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("link", name="New", exact=True).click()
    tab.ask("Beta\nsay: b.")
    tab.input.press("Control+k")
    expect(tab.page.locator("#search")).to_be_focused()
    tab.page.keyboard.type("alp")
    expect(tab.page.locator("#conversations .row")).to_have_count(1)
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#title")).to_have_text("Alpha")
    tab.page.locator("#search").fill("nothing like it")
    expect(tab.page.locator("#no-conversations")).to_have_text("Nothing matches.")
    tab.page.locator("#search").press("Escape")
    expect(tab.page.locator("#conversations .row")).to_have_count(2)


def test_show_more_goes_on_to_the_end_and_keeps_what_it_showed(tab: ChatPage, live_product: LiveProduct) -> None:
    live_product.call("make_many", live_product.user_id, 270)
    tab.open("/")
    for shown in (60, 120, 180, 240):
        expect(tab.page.locator("#conversations .row")).to_have_count(shown)
        tab.page.get_by_role("button", name="Show more").click()
    expect(tab.page.locator("#conversations .row")).to_have_count(270)
    expect(tab.page.get_by_role("button", name="Show more")).to_be_hidden()
    everything = rows(tab)
    assert sorted(everything) == sorted(f"Number {number}" for number in range(270))
    with tab.page.expect_response("**/instances?**"):  # the look that the page takes now and then
        tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.page.wait_for_timeout(300)
    assert rows(tab) == everything
    expect(tab.page.get_by_role("button", name="Show more")).to_be_hidden()


def test_focus_in_the_list_survives_a_look_at_the_server(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("button", name="More for “Alpha”").focus()
    live_product.call("rename", live_product.user_id, "Beta")
    tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(tab.page.get_by_role("button", name="More for “Beta”")).to_be_focused()


@pytest.mark.smoke
def test_rename_with_the_menu(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("button", name="More for “Alpha”").click()
    tab.page.get_by_role("menuitem", name="Rename").click()
    expect(tab.page.get_by_role("textbox", name="Title")).to_be_focused()
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.type("Omega <b>")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#title")).to_have_text("Omega <b>")
    tab.page.reload()
    expect(tab.page.locator("#conversations .row-title")).to_have_text("Omega <b>")


@pytest.mark.smoke
def test_delete_asks_first_and_takes_everything(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    address = tab.page.url
    more = tab.page.get_by_role("button", name="More for “Alpha”")
    more.click()
    tab.page.get_by_role("menuitem", name="Delete").click()
    expect(tab.page.get_by_role("button", name="Cancel")).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#conversations .row")).to_have_count(1)
    more.click()
    tab.page.get_by_role("menuitem", name="Delete").click()
    tab.page.get_by_role("button", name="Delete").click()
    expect(tab.page.locator("#conversations .row")).to_have_count(0)
    expect(tab.page).to_have_url(re.compile(r"/c/new$"))
    assert tab.page.request.get(address).status == 404


def test_running_conversation_is_marked_while_one_reads_another(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("link", name="New", exact=True).click()
    tab.write("Beta\nrate 10/s\nstream 60 words")
    expect(tab.page.locator("#conversations .row", has_text="Beta").locator(".is-running")).to_be_visible()
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.page.locator("#title")).to_have_text("Alpha")
    expect(tab.page.locator("#conversations .row", has_text="Beta").locator(".is-running")).to_be_visible()
    assert "is-live" not in (tab.messages.last.get_attribute("class") or "")


@pytest.mark.smoke
def test_phone_shows_one_column_at_a_time(tab: ChatPage, open_tab: OpenTab) -> None:
    tab.ask("Alpha\nsay: a.")
    phone: ChatPage = open_tab("/", shape=PHONE)
    expect(phone.page.locator(".sidebar")).to_be_visible()
    expect(phone.page.locator(".main")).to_be_hidden()
    phone.page.get_by_role("link", name="Alpha").click()
    expect(phone.page.locator(".main")).to_be_visible()
    expect(phone.page.locator(".sidebar")).to_be_hidden()
    expect(phone.answers.last.locator(".md")).to_have_text("a.")
    phone.page.get_by_role("link", name="All conversations").click()
    expect(phone.page.locator(".sidebar")).to_be_visible()


def test_nothing_is_wider_than_a_phone(open_tab: OpenTab) -> None:
    phone = open_tab("/c/new", shape=PHONE)
    code = "x" * 300
    table = f"| a | b | c | d | e |\\n|-|-|-|-|-|\\n| {code} | b | c | d | e |"
    phone.ask(f"say: {'word' * 100}\\n\\n```\\n{code}\\n```\\n\\n{table}")
    width = phone.page.evaluate("document.scrollingElement.scrollWidth")
    inner = phone.page.evaluate(
        "document.getElementById('scroller').scrollWidth - document.getElementById('scroller').clientWidth"
    )
    assert width == 390
    assert inner == 0


def test_buttons_on_a_phone_are_large_enough_to_hit(open_tab: OpenTab) -> None:
    phone = open_tab("/c/new", shape=PHONE)
    phone.ask("say: Hello.")
    sizes = phone.page.eval_on_selector_all(
        "button, .main-head a",
        """els => els.filter(e => e.offsetParent)
            .map(e => [e.getAttribute('aria-label') || e.textContent, e.offsetWidth, e.offsetHeight])""",
    )
    small = [name for name, width, height in sizes if width < 44 or height < 40]
    assert sizes
    assert not [name for name in small if "Connect" not in name and name != "Dismiss"], small


@pytest.mark.smoke
def test_another_users_conversation_does_not_exist(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("Alpha\nsay: a.")
    address = tab.page.url
    tab.page.context.clear_cookies()
    assert "/sign-in/" in tab.page.request.get(address).url
    tab.page.context.add_cookies(live_product.sign_in())  # type: ignore[arg-type]  # plain dicts of a cookie's fields
    assert tab.page.request.get(address).status == 404
    tab.open("/")
    expect(tab.page.locator("#conversations .row")).to_have_count(0)


def test_titles_and_hits_hold_no_marks_of_markdown(tab: ChatPage) -> None:
    tab.ask("A **bold** plan for `code` and [a link](https://example.com)\nsay: Take the **blue bicycle** today.")
    assert rows(tab) == ["A bold plan for code and a link"]
    tab.page.get_by_role("searchbox").first.fill("bicycle")
    hit = tab.page.locator("#hits .hit").filter(has_text="Answer").locator(".hit-text")
    expect(hit).to_have_text("Take the blue bicycle today.")
    expect(hit.locator("mark")).to_have_text("bicycle")
