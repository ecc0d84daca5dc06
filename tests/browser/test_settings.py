"""The settings of a person: an address for each section, by keyboard and by mouse, wide and narrow."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def sections(page: Page) -> list[str]:
    """The names of all sections, as the column has them."""
    names = [link.get_attribute("data-section") for link in page.locator(".settings-list a").all()]
    assert None not in names
    return [name for name in names if name]


def saved(field: Locator) -> Locator:
    """What stands beside a field that was saved."""
    return field.locator("xpath=ancestor::*[contains(@class, 'settings-field')]").get_by_text("Saved", exact=True)


@pytest.mark.smoke
def test_each_section_has_an_address(tab: ChatPage) -> None:
    page = tab.page
    page.locator("#user-menu").press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    expect(page.get_by_role("menuitem").first).to_have_text("Settings")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{tab.base_url}/settings")
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    expect(page.locator("#search")).to_be_visible()
    expect(page.get_by_role("heading", name="You", level=2)).to_be_focused()
    names = sections(page)
    assert names[:5] == ["you", "instructions", "memory", "prompts", "rules"]
    page.locator(".settings-list a").first.focus()
    page.keyboard.press("End")
    expect(page.locator(".settings-list a").last).to_be_focused()
    for name in names:
        page.locator(f".settings-list [data-section={name}]").press("Enter")
        expect(page).to_have_url(f"{tab.base_url}/settings/{name}")
        expect(page.locator(f".settings-list [data-section={name}]")).to_have_attribute("aria-current", "page")
        heading = page.locator(".settings-section > h2")
        expect(heading).to_be_focused()
        expect(page).to_have_title(f"{heading.inner_text()} · Settings · Think")
        tab.settle()
        check(page)
        look(tab, f"settings-{name}")
    page.go_back()
    expect(page).to_have_url(f"{tab.base_url}/settings/{names[-2]}")
    page.go_forward()
    expect(page).to_have_url(f"{tab.base_url}/settings/{names[-1]}")
    tab.open("/settings/nothing")
    expect(page.get_by_role("alert")).to_contain_text("There’s no section “nothing”")


def test_what_is_chosen_counts_at_once_and_in_other_tabs(tab: ChatPage, open_tab: OpenTab) -> None:
    page, html = tab.page, tab.page.locator("html")
    other = open_tab("/settings/you", context=page.context)
    tab.open("/settings/you")
    name = page.get_by_label("Name", exact=True)
    name.fill("Ada")
    name.press("Enter")
    expect(saved(name)).to_be_visible()
    expect(page.locator("#user-menu")).to_have_text("Ada")
    page.get_by_role("radio", name="Dark").check()
    page.get_by_role("radio", name="Larger").check()
    expect(html).to_have_attribute("data-theme", "dark")
    expect(html).to_have_attribute("data-text", "larger")
    expect(other.page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(other.page.locator("html")).to_have_attribute("data-text", "larger")
    zone = page.get_by_label("Time zone", exact=True)
    zone.select_option("Asia/Tokyo")
    expect(saved(zone)).to_be_visible()
    asked: list[str | None] = []
    page.on("request", lambda request: asked.append(request.header_value("x-time-zone")))
    page.locator(".settings-list [data-section=memory]").click()
    tab.until(lambda: "Asia/Tokyo" in asked)
    tab.open("/settings/you")
    look(tab, "settings-you-larger")
    expect(page.locator("#user-menu")).to_have_text("Ada")
    expect(html).to_have_attribute("data-text", "larger")
    expect(page.get_by_label("Time zone", exact=True)).to_have_value("Asia/Tokyo")
    page.get_by_label("Language").select_option("ar-xb")
    expect(html).to_have_attribute("dir", "rtl")
    tab.open("/c/new")
    expect(html).to_have_attribute("dir", "rtl")


def test_instructions_are_in_the_next_request_and_memory_is_begun(tab: ChatPage) -> None:
    page = tab.page
    tab.open("/settings/instructions")
    about = page.get_by_label("About you")
    about.fill("word " * 1_000)
    expect(page.locator("#settings-about-me-count")).to_have_text("1,300 of 1,000 tokens")
    about.blur()
    expect(page.locator("#settings-about-me-error")).to_contain_text("Up to 1000 fit")
    check(page)
    about.fill("I bake bread.")
    about.blur()
    expect(saved(about)).to_be_visible()
    page.get_by_role("radio", name="Only these agents").check()
    page.get_by_role("checkbox", name="Desk").check()
    expect(page.locator("#settings-readers-error")).to_be_empty()
    look(tab, "settings-instructions-filled")
    page.get_by_role("radio", name="All agents").check()
    tab.open("/c/new")
    tab.ask("say: Hello.")
    page.get_by_role("button", name="Context, memory, files and tools").click()
    page.get_by_role("tab", name="About").click()
    page.get_by_role("tab", name="Context").click()
    piece = page.locator(".context-piece[data-key=person]")
    piece.locator("summary").click()
    expect(piece).to_contain_text("I bake bread.")
    piece.get_by_role("link", name="Change in settings").click()
    expect(page).to_have_url(f"{tab.base_url}/settings/instructions")
    expect(about).to_have_value("I bake bread.")
    page.locator(".settings-list [data-section=memory]").click()
    page.get_by_role("button", name="Write Memory").click()
    page.get_by_label("Text of Memory").fill("Lives in Vienna.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".block-text")).to_have_text("Lives in Vienna.")
    check(page)
    look(tab, "settings-memory-filled")


def test_a_rule_is_read_in_words_and_ended(tab: ChatPage) -> None:
    page = tab.page
    tab.open("/settings/rules")
    expect(page.locator("#settings-rules")).to_contain_text("You have no rules yet.")
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_role("radio", name="Runs").check()
    page.get_by_label("Tool", exact=True).fill("bash")
    page.get_by_label("Which calls").fill("git status *")
    page.get_by_role("button", name="Add the rule").press("Enter")
    rule = page.locator(".settings-rows > li")
    expect(rule).to_contain_text("Runs without asking you: bash, for calls like “git status *”")
    expect(rule).to_contain_text("In all conversations")
    check(page)
    look(tab, "settings-rules-filled")
    rule.get_by_role("button").press("Enter")
    expect(rule).to_have_count(0)
    expect(page.locator("#settings-rules")).to_be_focused()
    assert "The rule has ended." in tab.spoken()


def test_sections_are_a_list_on_phones(open_tab: OpenTab) -> None:
    tab = open_tab("/settings", shape=PHONE)
    page = tab.page
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    names = sections(page)
    check(page)
    page.locator(f".settings-list [data-section={names[0]}]").tap()
    expect(page.get_by_role("heading", name="You", level=2)).to_be_focused()
    expect(page.locator(".settings-list")).to_have_count(0)
    check(page)
    page.get_by_role("link", name="All settings").tap()
    expect(page).to_have_url(f"{tab.base_url}/settings")
    expect(page.locator(".settings-list a")).to_have_count(len(names))
    page.get_by_role("link", name="All conversations").tap()
    expect(page.locator("#search")).to_be_visible()
