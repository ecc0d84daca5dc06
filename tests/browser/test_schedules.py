"""Schedules on the page: a person makes one, sees when it runs next, tests it, changes and deletes it (B4)."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.browser.side_panel import LONG, check_both, panel, show_view, toggle


def schedules(tab: ChatPage) -> Locator:
    if not panel(tab).is_visible():
        toggle(tab).click()
    show_view(tab, "Schedules")
    return tab.page.get_by_role("tabpanel", name="Schedules")


def add(shown: Locator, prompt: str, title: str = "") -> None:
    """Fill the form with a prompt at nine each day, and send it."""
    shown.get_by_role("button", name="Add a schedule").click()
    shown.get_by_label("What the agent is asked").fill(prompt)
    shown.get_by_label("Name, if you like").fill(title)
    expect(shown.locator(".schedule-times > li")).to_have_count(5)
    shown.get_by_role("button", name="Add", exact=True).click()
    expect(shown.get_by_role("status")).to_have_text("Active")


@pytest.mark.smoke
def test_schedule_is_made_tested_paused_edited_and_deleted(tab: ChatPage) -> None:
    tab.ask("say: Hello.")
    shown = schedules(tab)
    expect(shown).to_contain_text("No schedules yet.")
    look(tab, "schedules-empty")
    check_both(tab)
    shown.get_by_role("button", name="Add a schedule").click()
    expect(shown.locator(".schedule-times > li")).to_have_count(5)
    look(tab, "schedules-form")
    check_both(tab)
    shown.get_by_label("How often").select_option("By a cron text")
    shown.get_by_label("Cron text").fill("61 * * * *")
    expect(shown.locator(".schedule-preview")).to_contain_text("no cron text")
    shown.get_by_role("button", name="Cancel").click()
    add(shown, "say: Good morning.", "Morning")
    expect(shown).to_contain_text("Every day at 09:00")
    shown.get_by_role("button", name="Run now").click()
    expect(tab.answers.last.locator(".md").last).to_contain_text("Good morning.")
    expect(shown.locator(".schedule-runs")).to_contain_text("Completed")
    expect(tab.page.get_by_text("Asked by a schedule")).to_have_count(1)
    look(tab, "schedules-item")
    check_both(tab)
    shown.get_by_role("button", name="Pause").click()
    expect(shown.get_by_role("status")).to_have_text("Paused")
    shown.get_by_role("button", name="Edit").click()
    shown.get_by_label("How often").select_option("Every so often")
    shown.get_by_label("Every", exact=True).fill("2")
    shown.get_by_role("button", name="Save").click()
    expect(shown.get_by_role("status")).to_have_text("Paused")
    shown.get_by_role("button", name="Resume").click()
    expect(shown.get_by_role("status")).to_have_text("Active")
    expect(shown.locator(".schedule-times > li")).to_have_count(5)
    shown.get_by_role("button", name="All schedules").click()
    expect(shown.get_by_role("button", name="Morning")).to_be_focused()
    expect(shown.get_by_role("button", name="Morning")).to_contain_text("next in")
    shown.get_by_role("button", name="Morning").click()
    shown.get_by_role("button", name="Delete").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(shown).to_contain_text("No schedules yet.")
    tab.rest()


def test_long_and_many_schedules_fit(tab: ChatPage) -> None:
    tab.ask("say: Hello.")
    shown = schedules(tab)
    add(shown, f"say: {LONG} {LONG}", "")
    look(tab, "schedules-long-item")
    shown.get_by_role("button", name="All schedules").click()
    for number in range(3):
        add(shown, f"say: number {number}", f"Number {number} {LONG[:60]}")
        shown.get_by_role("button", name="All schedules").click()
    expect(shown.locator(".tools-row")).to_have_count(4)
    look(tab, "schedules-list")
    check_both(tab)
    tab.rest()


def test_what_is_written_in_the_form_outlives_the_view(tab: ChatPage) -> None:
    tab.ask("say: Hello.")
    shown = schedules(tab)
    shown.get_by_role("button", name="Add a schedule").click()
    shown.get_by_label("What the agent is asked").fill("say: not yet")
    show_view(tab, "Memory")
    shown = schedules(tab)
    expect(shown.get_by_label("What the agent is asked")).to_have_value("say: not yet")
    tab.rest()
