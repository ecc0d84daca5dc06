"""Ways on: forks, versions of answers, several histories; what is pinned, put away, taken out and brought in."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Download, expect

from tests.browser.accessibility import check
from tests.browser.branches import TREES, ids, text
from tests.browser.chat_page import ChatPage, choose_more
from tests.browser.looks import SIZES, look
from tests.browser.reading import history

OpenTab = Callable[..., ChatPage]


def more(tab: ChatPage, name: str) -> None:
    """Choose from the menu of the open conversation."""
    tab.page.get_by_role("button", name="More for this conversation").click()
    tab.page.get_by_role("menuitem", name=name).click()


@pytest.mark.smoke
def test_fork_goes_on_alone_and_leads_back(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Plans", history(30))
    tab.open(f"/c/{key}")
    choose_more(tab, tab.page.locator('[data-id="m11"]'), "Fork from here")
    place = tab.page.locator("#place")
    expect(place).to_contain_text("Forked from Plans")
    expect(tab.page.locator("#title")).to_have_text("Fork: Plans")
    expect(tab.messages).to_have_count(12)
    assert ids(tab) == [f"m{number}" for number in range(12)]
    tab.ask("say: Alone.")
    tab.page.reload()
    expect(place).to_contain_text("Forked from Plans")
    look(tab, "fork")
    place.get_by_role("link", name="Plans").click()
    expect(tab.page.locator(".is-found")).to_have_attribute("data-id", "m11")
    expect(tab.messages).to_have_count(30)
    expect(place).to_be_hidden()
    tab.page.go_back()
    expect(tab.messages).to_have_count(14)


@pytest.mark.smoke
def test_edited_answer_is_another_version_chosen_or_not(tab: ChatPage, live_product: Any) -> None:
    tab.open("/c/" + live_product.seed("Plans", history(6)))
    answer = tab.page.locator('[data-id="m1"]')
    choose_more(tab, answer, "Edit this answer")
    field = tab.page.get_by_role("textbox", name="Answer")
    expect(field).to_be_focused()
    check(tab.page)
    look(tab, "edit-answer")
    field.fill("Never mind.")
    tab.page.keyboard.press("Escape")
    expect(answer.locator(".sibling-count")).to_have_count(0)
    choose_more(tab, answer, "Edit this answer")
    field.fill("A **better** answer.")
    tab.page.get_by_role("button", name="Save as a version").click()
    expect(answer.locator(".sibling-count")).to_have_text("1 / 2")
    assert len(ids(tab)) == 6  # what is shown stays
    choose_more(tab, answer, "Edit this answer")
    field.fill("The best answer.")
    tab.page.get_by_role("button", name="Save and continue from here").click()
    expect(tab.answers.last.locator(".sibling-count")).to_have_text("3 / 3")
    expect(tab.messages).to_have_count(2)
    tab.ask("say: From here.")
    tab.answers.first.get_by_role("button", name="Previous version").click()
    expect(tab.answers.first.locator("strong")).to_have_text("better")
    tab.answers.first.get_by_role("button", name="Previous version").click()
    expect(tab.messages).to_have_count(6)  # all that followed is where it was
    choose_more(tab, tab.answers.last, "Edit this answer")
    expect(tab.page.get_by_role("button", name="Save as a version")).to_have_count(
        0
    )  # nothing follows: one way to save
    field.fill("The last word.")
    tab.page.get_by_role("button", name="Save", exact=True).click()
    expect(tab.answers.last.locator(".md")).to_have_text("The last word.")


def test_pinned_first_archived_away_and_restored(tab: ChatPage, live_product: Any) -> None:
    for title in ("Plans", "Jam"):
        key = live_product.seed(title, history(2))
    tab.open(f"/c/{key}")
    rows = tab.page.locator("#conversations")
    tab.page.get_by_role("button", name="More for “Plans”").click()
    tab.page.get_by_role("menuitem", name="Pin").click()
    expect(rows.locator("section").first).to_have_text(re.compile("^PinnedPlans"))
    tab.page.reload()
    grouped = rows.locator("section:not(#projects)")
    expect(grouped).to_have_text([re.compile("^PinnedPlans"), re.compile("^TodayJam")])
    more(tab, "Archive")
    expect(tab.page.locator("#place")).to_contain_text("This conversation is archived.")
    expect(rows.locator(".row-title")).to_have_text(["Plans"])
    tab.page.locator("#user-menu").click()
    check(tab.page)
    tab.page.get_by_role("menuitem", name="Archived conversations").click()
    expect(rows.locator(".row-title")).to_have_text(["Jam"])
    look(tab, "archive")
    tab.page.get_by_role("button", name="More for “Jam”").click()
    tab.page.get_by_role("menuitem", name="Restore").click()
    expect(tab.page.locator("#no-conversations")).to_have_text("Nothing is archived.")
    expect(tab.page.locator("#place")).to_be_hidden()
    tab.page.get_by_role("button", name="All conversations").click()
    expect(rows.locator(".row-title")).to_have_text(["Plans", "Jam"])


def exported(tab: ChatPage, form: str) -> Download:
    more(tab, "Export…")
    tab.page.get_by_role("radio", name=form).check()
    check(tab.page)
    look(tab, "export")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("link", name="Export", exact=True).click()
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    return saved.value


def test_all_conversations_are_exported_from_the_menu(tab: ChatPage, live_product: Any) -> None:
    for title in ("Plans", "Jam"):
        live_product.seed(title, history(2))
    tab.open("/")
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Export all conversations").click()
    tab.page.get_by_role("radio", name="For Open WebUI").check()
    look(tab, "export-all")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("link", name="Export", exact=True).click()
    assert saved.value.suggested_filename == "conversations-open-webui.json"
    assert {record["title"] for record in json.loads(saved.value.path().read_text())} == {"Plans", "Jam"}


def test_exported_conversation_comes_back_with_its_branches(tab: ChatPage, live_product: Any, tmp_path: Path) -> None:
    key = live_product.seed("Plans", history(6))
    live_product.hand.call(f"{TREES}:branch", key, "m0", [text("b1", "assistant", "Another version.")])
    tab.open(f"/c/{key}")
    assert "Message 5." in exported(tab, "To read (Markdown)").path().read_text()
    for product in ("For Open WebUI", "For LibreChat"):
        assert "Another version." in exported(tab, product).path().read_text()
    exported(tab, "For this product").save_as(tmp_path / "plans.jsonl")
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Import conversations").click()
    dialog = tab.page.get_by_role("dialog", name="Import conversations")
    dialog.get_by_label("Choose a file").set_input_files(tmp_path / "plans.jsonl")
    expect(dialog).to_contain_text("“plans”, 7 messages")
    expect(dialog.get_by_role("combobox")).to_have_value("assistant")
    expect(tab.page.locator("#conversations .row")).to_have_count(1)  # nothing is imported yet
    look(tab, "import-own")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog).to_contain_text("Imported 7 messages.")
    dialog.get_by_role("button", name="Open the conversation").click()
    expect(tab.page.locator("#conversations .row")).to_have_count(2)
    tab.settle()
    assert not tab.page.url.endswith(key)
    expect(tab.messages).to_have_count(6)
    expect(tab.answers.first.locator(".sibling-count")).to_have_text("1 / 2")
    (tmp_path / "broken.jsonl").write_text("this is none\n")
    tab.page.locator("#user-menu").click()
    tab.page.get_by_role("menuitem", name="Import conversations").click()
    dialog.get_by_label("Choose a file").set_input_files(tmp_path / "broken.jsonl")
    expect(dialog.get_by_role("alert")).to_be_visible()  # of no product, by its content
    dialog.get_by_role("button", name="Close").click()
    expect(tab.page.locator("#conversations .row")).to_have_count(2)


def test_histories_are_chosen_in_the_head_and_other_tabs_follow(
    tab: ChatPage, open_tab: OpenTab, live_product: Any
) -> None:
    key = live_product.seed("Notes", history(4), agent="notebook")
    tab.open(f"/c/{key}")
    other = open_tab(f"/c/{key}", context=tab.page.context)
    tab.page.bring_to_front()  # what is behind is painted once a second
    button, name = tab.page.locator("#histories"), other.page.locator("#histories")
    expect(button).to_have_text("Untitled history")
    button.click()
    tab.page.get_by_role("button", name="New history").click()
    expect(tab.page.get_by_role("textbox", name="Name")).to_be_focused()
    tab.page.keyboard.type("Second thoughts")
    tab.page.keyboard.press("Enter")
    expect(name).to_have_text("Second thoughts")
    expect(other.messages).to_have_count(0)
    tab.ask("say: Something else.")
    expect(other.answers.last.locator(".md")).to_have_text("Something else.")
    button.click()
    expect(tab.page.locator(".history-name[aria-current]")).to_be_focused()
    check(tab.page)
    look(tab, "histories")
    tab.page.locator(".history-name", has_text="Untitled").click()
    expect(other.messages).to_have_count(4)
    expect(name).to_have_text("Untitled history")
    tab.page.locator("#search").fill("something")
    tab.page.locator("#hits a", has_text="in another history").first.click()
    place = tab.page.locator("#place")
    expect(place).to_contain_text("You’re reading another history")
    expect(tab.messages).to_have_count(2)
    assert other.messages.count() == 4  # only looked at
    place.get_by_role("button", name="Switch to it").click()
    expect(other.messages).to_have_count(2)
    tab.page.set_viewport_size(SIZES["phone"])
    button.click()
    tab.page.get_by_role("button", name="Rename “Second thoughts”").click()
    expect(tab.page.get_by_role("textbox", name="Name")).to_be_focused()
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.type("Third")
    tab.page.keyboard.press("Enter")
    expect(button).to_have_text("Third")
    button.click()
    tab.page.get_by_role("button", name="Delete “Third”").click()
    tab.page.get_by_role("button", name="Delete", exact=True).click()
    expect(button).to_have_text("No history")
    expect(name).to_have_text("No history")
    expect(other.messages).to_have_count(0)
