"""Summaries in the transcript: asked for, by themselves, read, changed, undone, failed."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.reading import history
from tests.browser.side_panel import check_both, panel, piece, toggle

OpenTab = Callable[..., ChatPage]
ASKED = "Keep the names.\nwait 2 s\nsay: They spoke of **tea**.\\n\\n- one\\n- two"


def line(tab: ChatPage) -> Locator:
    return tab.page.locator(".summary-line")


def test_a_summary_that_was_asked_for(tab: ChatPage, open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab.open("/c/" + live_product.seed("Long ago", history(40)))
    other = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    tab.page.bring_to_front()  # what is behind is painted when there is time: it has no headings yet for axe
    tab.input.fill("/co")
    offer = tab.page.locator("#commands").get_by_role("button")
    expect(offer).to_contain_text("/compact")
    look(tab, "command")
    tab.input.press("Enter")
    expect(tab.input).to_have_value("/compact ")
    expect(offer).to_have_count(0)
    tab.input.fill(f"/compact {ASKED}")
    tab.input.press("Enter")
    expect(tab.input).to_have_value("")
    expect(tab.page.locator("#status")).to_contain_text("Summarising older messages", timeout=20_000)
    for page in (tab, other):
        expect(line(page).locator(".fold-label")).to_contain_text("Summary of", timeout=20_000)
    expect(tab.messages).to_have_count(40)  # nothing that was said is gone
    assert "Older messages were summarised." in tab.spoken()
    line(tab).locator("summary").click()
    expect(line(tab).locator(".summary-text li")).to_have_count(2)
    expect(line(tab)).to_contain_text("The model reads this text instead of the messages above.")
    look(tab, "summary")
    toggle(tab).click()
    piece(tab, "Summary").locator("summary").click()
    expect(panel(tab)).to_contain_text("They spoke of **tea**.")
    look(tab, "panel-summary")
    check_both(tab)

    line(tab).get_by_role("button", name="Edit summary").click()
    tab.page.get_by_role("textbox", name="What the model reads instead of the messages").fill("They spoke of coffee.")
    line(tab).get_by_role("button", name="Save").click()
    expect(line(tab).locator(".summary-text")).to_have_text("They spoke of coffee.")
    expect(line(other).locator(".fold-note")).to_contain_text("edited")
    expect(piece(tab, "Summary")).to_contain_text("They spoke of coffee.")
    tab.page.reload()
    expect(line(tab).locator(".fold-note")).to_contain_text("edited")
    line(tab).locator("summary").click()
    line(tab).get_by_role("button", name="Undo").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    for page in (tab, other):
        expect(line(page)).to_have_count(0)


@pytest.mark.smoke
def test_one_that_fails_and_one_with_nothing_to_do(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("say: Hello.")
    tab.write("/compact")
    expect(tab.page.locator("#status")).to_contain_text("There’s nothing to summarise yet.", timeout=20_000)
    tab.open("/c/" + live_product.seed("Long ago", history(40)))
    tab.write("/compact\nerror 401")
    error = tab.page.locator(".status.is-error")
    expect(error).to_contain_text("Couldn’t summarise older messages:", timeout=20_000)
    look(tab, "summary-failed")
    error.get_by_role("button", name="Dismiss").click()
    expect(error).to_be_hidden()
    expect(line(tab)).to_have_count(0)


@pytest.mark.smoke
def test_a_title_comes_by_itself_to_every_tab(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=keeper")
    tab.ask("How do I make tea?\nsay: Making Good Tea")
    other = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    for page in (tab, other):
        expect(page.page.locator("#title")).to_have_text("Making Good Tea", timeout=20_000)
        expect(page.page.locator(".row-title")).to_have_text("Making Good Tea")


def test_one_that_comes_by_itself(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open("/c/" + live_product.seed("Long ago", history(60), agent="keeper"))
    tab.ask("say: Hello.")
    expect(line(tab)).to_contain_text("automatic", timeout=20_000)


def test_a_command_is_answered_where_it_was_given(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open("/c/" + live_product.seed("Long ago", history(40)))
    status = tab.page.locator("#status")
    tab.write("/compact Briefly.\nsay: They spoke of tea.")
    expect(status).to_contain_text("Older messages were summarised.", timeout=20_000)
    expect(status).to_be_in_viewport()
    look(tab, "summarised")
    status.get_by_role("button", name="Show the summary").click()
    expect(line(tab)).to_be_focused()
    expect(line(tab)).to_be_in_viewport()
    expect(status).not_to_be_in_viewport()
    status.get_by_role("button", name="Dismiss").press("Enter")
    expect(status).to_be_hidden()
    expect(tab.page.locator("#scroller")).to_be_focused()


def test_who_reads_further_up_is_told_by_a_notice(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open("/c/" + live_product.seed("Long ago", history(40)))
    tab.write("/compact Briefly.\nwait 1 s\nsay: They spoke of tea.")
    tab.page.mouse.move(700, 400)
    tab.page.mouse.wheel(0, -2000)
    expect(tab.page.locator("#to-end")).to_be_visible()
    expect(tab.page.locator("#notices")).to_contain_text("Older messages were summarised.", timeout=20_000)
