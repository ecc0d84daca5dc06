"""The list of conversations: found, named, removed, marked; reachable by keyboard; its own screen on a phone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests import archives
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

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
    expect(tab.page.locator("#conversations h2:not(#projects-title)")).to_have_text("Today")
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
    every = tab.page.locator("#conversations .row")
    expect(every).to_have_count(60)
    for before, shown in ((60, 120), (120, 180), (180, 240), (240, 270)):
        tab.page.get_by_role("button", name="Show more").click()
        expect(every).to_have_count(shown)
        # The focus scrolls: a click that comes before it may be let go beside the button.
        expect(every.nth(before).get_by_role("link")).to_be_focused()
    expect(tab.page.get_by_role("button", name="Show more")).to_be_hidden()
    everything = rows(tab)
    assert sorted(everything) == sorted(f"Number {number}" for number in range(270))
    with tab.page.expect_response("**/instances?**"):  # the look that the page takes now and then
        tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.page.wait_for_timeout(300)  # that the page has read the answer shows nowhere; it draws at once
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
def test_a_deleted_conversation_comes_back_or_goes_for_good(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    address = tab.page.url
    rows = tab.page.locator("#conversations .row")

    def delete() -> None:
        tab.page.get_by_role("button", name="More for “Alpha”").click()
        tab.page.get_by_role("menuitem", name="Delete").click()
        expect(rows).to_have_count(0)
        assert tab.page.request.get(address).status == 404

    delete()
    expect(tab.page).to_have_url(re.compile(r"/c/new$"))
    look(tab, "deleted-notice")
    tab.page.get_by_role("button", name="Undo").click()
    expect(tab.page).to_have_url(address)
    expect(tab.answers).to_have_text(re.compile("a\\."))
    delete()
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Deleted conversations").click()
    items = tab.page.get_by_role("list", name="Deleted conversations").get_by_role("listitem")
    expect(items).to_have_count(1)
    check(tab.page)
    look(tab, "settings-deleted")
    items.get_by_role("button", name="Restore Alpha").click()
    expect(items).to_have_count(0)
    expect(rows).to_have_count(1)
    delete()  # from the list, while the section is open
    items.get_by_role("button", name="Delete Alpha for good").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(tab.page.get_by_text("Nothing is deleted.")).to_be_visible()
    tab.open("/settings/deleted")
    expect(tab.page.get_by_text("Nothing is deleted.")).to_be_visible()


def test_an_answer_that_a_deletion_stopped_is_asked_for_again(tab: ChatPage) -> None:
    tab.write("Alpha\nsay: Begun.\nrate 5/s\nstream 300 words")
    expect(tab.answers.last).to_contain_text("Begun.")
    tab.write("Beta\nsay: b.")
    expect(tab.page.get_by_text("Don’t send")).to_be_visible()
    tab.page.get_by_role("button", name="More for “Alpha”").click()
    tab.page.get_by_role("menuitem", name="Delete").click()
    tab.page.get_by_role("button", name="Undo").click()
    expect(tab.answers.last).to_contain_text("Begun.")
    status = tab.page.locator("#status")
    expect(status).to_contain_text("This answer was stopped when the conversation was deleted.")
    check(tab.page)
    look(tab, "stopped-by-deletion")
    status.get_by_role("button", name="Answer now").click()
    expect(tab.answers).to_have_count(2)
    expect(tab.answers.last.locator(".md")).to_contain_text("b.")
    tab.settle()
    expect(status).to_be_hidden()


def test_several_are_selected_and_archived_exported_deleted(tab: ChatPage) -> None:
    for name in ("Alpha", "Beta", "Gamma", "Delta"):
        tab.open("/c/new")
        tab.ask(f"{name}\nsay: a.")
    rows = tab.page.locator("#conversations .row")
    bar = tab.page.get_by_role("toolbar", name="Selected conversations")
    tab.page.get_by_role("link", name="Delta").focus()
    tab.page.keyboard.press("x")
    tab.page.get_by_role("link", name="Beta").click(modifiers=["Shift"])
    expect(bar.get_by_role("status")).to_have_text("3 selected")
    check(tab.page)
    look(tab, "selection")
    tab.page.get_by_role("link", name="Gamma").click()  # no longer
    bar.get_by_role("button", name="Export the selected…").click()
    dialog = tab.page.get_by_role("dialog")
    address = dialog.get_by_role("link", name="Export").get_attribute("href")
    assert address is not None
    assert address.count("id=ins_") == 2
    assert tab.page.request.get(tab.base_url + address).status == 200
    dialog.get_by_role("button", name="Cancel").click()
    bar.get_by_role("button", name="Archive the selected").click()
    expect(rows).to_have_count(2)
    expect(bar).to_have_count(0)
    tab.page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(4)
    tab.page.get_by_role("button", name="More for “Alpha”").click()
    tab.page.get_by_role("menuitem", name="Select").click()
    tab.page.get_by_role("link", name="Delta").click(modifiers=["Shift"])
    expect(bar.get_by_role("status")).to_have_text("4 selected")
    bar.get_by_role("button", name="Delete the selected").click()
    expect(rows).to_have_count(0)
    expect(tab.page).to_have_url(re.compile(r"/c/new$"))
    tab.page.locator(".notice", has_text="were deleted").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(4)


def test_running_conversation_is_marked_while_one_reads_another(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.get_by_role("link", name="New", exact=True).click()
    tab.write("Beta\nrate 10/s\nstream 60 words")
    expect(tab.page.locator("#conversations .row", has_text="Beta").locator(".is-running")).to_be_visible()
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.page.locator("#title")).to_have_text("Alpha")
    expect(tab.page.locator("#conversations .row", has_text="Beta").locator(".is-running")).to_be_visible()
    assert "is-live" not in (tab.messages.last.get_attribute("class") or "")
    tab.page.get_by_role("link", name="Beta").click()
    expect(tab.answers.last.locator(".md")).to_contain_text("59", timeout=20_000)
    assert len(tab.text_of_last().split()) == 60  # nothing is lost to who comes back


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


@pytest.mark.smoke
def test_marks_say_how_a_conversation_stands(tab: ChatPage, open_tab: OpenTab) -> None:
    page = tab.page
    tab.write("Broken\nerror 400")
    expect(page.locator(".status.is-error")).to_be_visible(timeout=20_000)
    page.get_by_role("link", name="New", exact=True).click()
    tab.write("Slow\nrate 20/s\nstream 60 words")
    page.locator(".message.is-live").wait_for()
    rows_of = page.locator("#conversations .row")
    expect(rows_of.filter(has_text="Broken").locator(".mark.is-failed")).to_have_text("Last answer failed")
    expect(rows_of.filter(has_text="Slow").locator(".mark.is-running")).to_have_text("Answering")
    page.get_by_role("link", name="New", exact=True).click()
    expect(rows_of.filter(has_text="Slow").locator(".mark.is-unread")).to_have_text("Unread", timeout=30_000)
    expect(page.get_by_role("link", name="Broken , Assistant Last answer failed")).to_be_visible()
    check(page)
    look(tab, "list-marks")


def test_marks_change_while_one_reads_another(tab: ChatPage, open_tab: OpenTab) -> None:
    tab.ask("Reading\nsay: r.")
    other = open_tab("/c/new?agent=desk", context=tab.page.context)
    other.write('Paying\ncall tool pay {"amount": 3}\nsay: Paid.')
    mark = tab.page.locator("#conversations .row", has_text="Paying").locator(".mark.is-waiting")
    expect(mark).to_have_text("1 approval waiting")
    expect(tab.page.locator("#approvals-link")).to_contain_text("1 approval waiting")
    other.page.get_by_role("button", name="Allow once").click()
    other.rest()
    expect(mark).to_have_count(0)
    expect(tab.page.locator("#approvals-link")).to_have_count(0)


def test_list_is_put_away_and_comes_back(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    page.get_by_role("button", name="Hide conversations").click()
    expect(page.locator(".sidebar")).to_be_hidden()
    check(page)
    look(tab, "list-hidden")
    page.reload()
    expect(page.locator(".sidebar")).to_be_hidden()
    page.locator(".main-head").get_by_role("link", name="New conversation").click()
    expect(page).to_have_url(re.compile(r"/c/new$"))
    page.keyboard.press("Control+b")
    expect(page.locator(".sidebar")).to_be_visible()
    page.get_by_role("button", name="Hide conversations").click()
    page.keyboard.press("Control+k")  # leads to the search wherever it is
    expect(page.locator("#search")).to_be_focused()


def test_tablet_lays_the_list_over_the_conversation(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    page.set_viewport_size({"width": 768, "height": 1024})
    expect(page.locator(".sidebar")).to_be_hidden()  # a window that becomes narrower goes on showing what is read
    page.set_viewport_size({"width": 1280, "height": 860})
    expect(page.locator(".sidebar")).to_be_visible()
    page.set_viewport_size({"width": 768, "height": 1024})
    page.reload()
    expect(page.locator(".sidebar")).to_be_hidden()
    page.get_by_role("button", name="Show conversations").click()
    expect(page.locator(".sidebar")).to_be_visible()
    expect(page.locator("#search")).to_be_focused()
    check(page)
    page.keyboard.press("Escape")
    expect(page.locator(".sidebar")).to_be_hidden()
    expect(page.get_by_role("button", name="Show conversations")).to_be_focused()
    page.get_by_role("button", name="Show conversations").click()
    page.mouse.click(700, 500)  # beside it
    expect(page.locator(".sidebar")).to_be_hidden()
    page.get_by_role("button", name="Show conversations").click()
    page.locator("#conversations").get_by_role("link", name="Alpha").click()
    expect(page.locator(".sidebar")).to_be_hidden()


def test_menu_of_the_person(tab: ChatPage) -> None:
    page = tab.page
    menu = page.get_by_role("button", name="Menu for person")
    menu.press("Enter")
    expect(page.get_by_role("menuitem", name="Settings")).to_be_focused()
    check(page)
    page.get_by_role("menuitemradio", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("menuitemradio", name="Dark")).to_have_attribute("aria-checked", "true")
    check(page)
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    menu.click()
    page.get_by_role("menuitem", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    menu.click()
    page.get_by_role("menuitem", name="What’s remembered about you").click()
    expect(page.get_by_role("heading", name="Memory", level=2)).to_be_focused()
    menu.click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page).to_have_url(re.compile("sign-"))


def test_archive_keeps_the_focus_in_the_list(tab: ChatPage) -> None:
    page = tab.page
    for title in ("Alpha", "Beta", "Gamma"):
        tab.open("/c/new")
        tab.ask(f"{title}\nsay: {title}.")
    page.get_by_role("button", name="More for “Beta”").press("Enter")
    page.get_by_role("menuitem", name="Archive").press("Enter")
    expect(page.locator("#conversations").get_by_role("link", name="Alpha")).to_be_focused()
    page.locator("#notices").get_by_role("button", name="Undo").click()
    expect(page.locator("#conversations .row")).to_have_count(3)


def test_failing_list_says_so_and_tries_again(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    page = tab.page
    page.route("**/api/v1/instances?*", lambda route: route.fulfill(status=500, json={"detail": "Not now."}))
    page.get_by_role("button", name="Menu for person").click()
    page.get_by_role("menuitem", name="Archived conversations").click()
    expect(page.locator(".sidebar").get_by_role("alert")).to_contain_text("Conversations couldn’t be loaded.")
    expect(page.locator("#archive-head").get_by_role("button")).to_be_focused()
    check(page)
    look(tab, "list-failed")
    page.unroute("**/api/v1/instances?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#no-conversations")).to_have_text("Nothing is archived.")


def test_loading_list_shows_its_shape(tab: ChatPage) -> None:
    page = tab.page
    tab.hold("**/api/v1/instances?*")
    page.get_by_role("button", name="Menu for person").click()
    page.get_by_role("menuitem", name="Archived conversations").click()
    expect(page.locator(".sidebar .skeleton")).to_contain_text("Loading…")
    check(page)
    look(tab, "list-loading")


def test_five_thousand_conversations_stay_quick(tab: ChatPage, live_product: LiveProduct) -> None:
    live_product.call("make_many", live_product.user_id, 5_000)
    tab.open("/")
    more = tab.page.get_by_role("button", name="Show more")
    for _ in range(9):
        more.press("Enter")
        tab.until(lambda: tab.page.evaluate("document.activeElement.matches('#conversations a')"))
    shown = tab.page.locator("#conversations .row").count()
    assert shown >= 600
    tab.page.keyboard.press("End")
    tab.page.keyboard.press("ArrowUp")
    assert tab.page.evaluate("document.activeElement.matches('.rows a')")
    took = tab.page.evaluate(
        """async () => {
            const start = performance.now();
            document.querySelector('#conversations a').click();
            await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
            return performance.now() - start;
        }"""
    )
    assert took < 500, took
    tab.page.locator("#search").fill("Number 4999")
    expect(tab.page.locator("#conversations .row-title")).to_have_text(["Number 4999"])


def test_what_is_unreadable_of_an_archive_leaves_its_buttons_in_view(tab: ChatPage, tmp_path: Path) -> None:
    broken = [archives.gpt_conversation(f"b{number}", [], "", title="Unbroken" * 12) for number in range(40)]
    (tmp_path / "export.zip").write_bytes(archives.zipped({"conversations.json": [archives.gpt_trip(), *broken]}))
    tab.open("/")
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Import conversations").click()
    dialog = tab.page.get_by_role("dialog", name="Import conversations")
    dialog.get_by_label("Choose a file").set_input_files(tmp_path / "export.zip")
    expect(dialog).to_contain_text("1 conversation, 40 cannot be read")
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_in_viewport()
    dialog.get_by_text("Not readable", exact=True).click()
    expect(dialog.get_by_role("listitem")).to_have_count(40)
    assert dialog.evaluate("each => each.scrollWidth - each.clientWidth") == 0
    check(tab.page)
    look(tab, "import-unreadable")


@pytest.mark.smoke
def test_an_archive_of_another_product_is_looked_at_and_imported(tab: ChatPage, tmp_path: Path) -> None:
    tab.open("/")
    (tmp_path / "export.zip").write_bytes(archives.chatgpt_zip())
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Import conversations").click()
    dialog = tab.page.get_by_role("dialog", name="Import conversations")
    expect(dialog).to_contain_text("at most 1,024 MB")
    dialog.get_by_label("Choose a file").set_input_files(tmp_path / "export.zip")
    expect(dialog).to_contain_text("2 conversations, 1 cannot be read")
    expect(dialog).to_contain_text("Nothing: It has no messages.")
    check(tab.page)
    look(tab, "import-preview")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog).to_contain_text("2 conversations were added, 1 cannot be read")
    dialog.get_by_text("Not shown", exact=True).click()
    look(tab, "import-report")
    dialog.get_by_role("button", name="Close").click()
    tab.page.get_by_role("link", name="Trip").click()
    expect(tab.messages).to_have_count(2)
    expect(tab.answers.first.locator(".sibling-count")).to_have_text("2 / 2")
    expect(tab.messages.first).to_contain_text("Where is this?")
    look(tab, "import-conversation")
