"""Answers side by side, and the map of where a conversation forks."""

import re
from typing import Any

from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.branches import TREES, ids, text
from tests.browser.chat_page import ChatPage, choose_more
from tests.browser.looks import look
from tests.browser.reading import history

TABLE = "A **short** answer:\n\n| fruit | days |\n|---|---|\n| plum | 2 |\n\n1. Wash.\n2. Wait."


def test_two_answers_side_by_side_and_one_to_go_on_from(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Plans", history(6))
    live_product.hand.call(f"{TREES}:branch", key, "m0", [text("b1", "assistant", TABLE)])
    tab.open(f"/c/{key}")
    choose_more(tab, tab.page.locator('[data-id="m1"]'), "Compare answers")
    dialog = tab.page.get_by_role("dialog", name="Compare answers")
    sides = dialog.locator(".compare-side")  # a table may be a region, too
    expect(sides).to_have_count(2)
    expect(sides.nth(0)).to_contain_text("Message 1.")
    expect(sides.nth(0)).to_contain_text("Shown now")
    expect(sides.nth(1).get_by_role("table")).to_contain_text("plum")  # drawn as in the conversation
    expect(dialog.get_by_role("combobox")).to_have_count(0)
    check(tab.page)
    look(tab, "compare-answers")
    sides.nth(1).get_by_role("button", name="Use this one").click()
    expect(dialog).to_have_count(0)
    expect(tab.answers.first.locator("strong")).to_have_text("short")
    expect(tab.answers.first.locator(".sibling-count")).to_have_text("2 / 2")
    tab.page.reload()
    expect(tab.messages).to_have_count(2)  # it is what the conversation shows
    tab.answers.first.get_by_role("button", name="Answer again").click()
    expect(tab.answers.first.locator(".sibling-count")).to_have_text("3 / 3")
    tab.settle()
    choose_more(tab, tab.answers.first, "Compare answers")
    expect(sides.nth(0).get_by_role("heading").first).to_have_text("Answer 2 of 3")
    sides.nth(0).get_by_role("combobox").select_option("Answer 1 of 3")
    expect(sides.nth(0)).to_contain_text("Message 1.")
    look(tab, "compare-three")
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(tab.answers.first.locator(".sibling-count")).to_have_text("3 / 3")


def test_map_of_branches_by_keyboard_and_by_click(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Plans", history(12))
    other = [text("b1", "assistant", "Or by train?"), text("b2", "user", "Yes."), text("b3", "assistant", "Then so.")]
    live_product.hand.call(f"{TREES}:branch", key, "m2", other)
    live_product.hand.call(f"{TREES}:branch", key, "b2", [text("d1", "assistant", "Then otherwise.")])
    tab.open(f"/c/{key}")
    tab.page.get_by_role("button", name="More for this conversation").click()
    tab.page.get_by_role("menuitem", name="Branches").click()
    tree = tab.page.get_by_role("tree", name="Branches")
    rows = tree.get_by_role("treeitem")
    expect(rows).to_have_count(10)
    assert rows.evaluate_all("all => all.map((row) => [row.dataset.id, row.ariaLevel, row.ariaExpanded])") == [
        ["m0", "1", None],
        ["m1", "1", None],
        ["m2", "1", "true"],
        ["m3", "2", "true"],
        ["m4", "3", None],
        ["m11", "3", None],
        ["b1", "2", "true"],
        ["b2", "3", "true"],
        ["b3", "4", None],
        ["d1", "4", None],
    ]
    expect(rows.nth(4)).to_have_text(re.compile("7 messages"))
    expect(tree.locator(".is-shown")).to_have_count(6)
    expect(rows.nth(5)).to_be_focused()
    check(tab.page)
    look(tab, "branch-map")
    for key_name, focused in (("ArrowDown", 6), ("ArrowLeft", 6)):
        tab.page.keyboard.press(key_name)
        expect(rows.nth(focused)).to_be_focused()
    expect(rows).to_have_count(7)
    expect(rows.nth(6)).to_have_attribute("aria-expanded", "false")
    for key_name, focused in (("ArrowRight", 6), ("ArrowRight", 7), ("End", 9), ("ArrowLeft", 7), ("ArrowDown", 8)):
        tab.page.keyboard.press(key_name)
        expect(rows.nth(focused)).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tree).to_have_count(0)
    expect(tab.page.locator(".is-found")).to_have_attribute("data-id", "b3")
    assert ids(tab) == ["m0", "m1", "m2", "b1", "b2", "b3"]
    tab.page.get_by_role("button", name="More for this conversation").click()
    tab.page.get_by_role("menuitem", name="Branches").click()
    tree.locator('[data-id="m4"]').click()
    expect(tab.page.locator(".is-found")).to_have_attribute("data-id", "m4")
    expect(tab.messages).to_have_count(12)
