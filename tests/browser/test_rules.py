"""Rules about calls at the level of people: allowed once and for all, listed, ended; declined with words; choices."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


@pytest.fixture
def porter_tab(open_tab: OpenTab) -> ChatPage:
    """A tab with an empty conversation of the agent whose commands ask."""
    return open_tab("/c/new?agent=porter")


def run(*commands: str) -> str:
    calls = [f"call tool terminal {json.dumps({'command': command})}" for command in commands]
    return "\n".join([*calls, "say: {results}."])


def cards(tab: ChatPage) -> Locator:
    return tab.page.locator(".question")


@pytest.mark.smoke
def test_a_command_is_allowed_for_always_listed_and_ended(porter_tab: ChatPage) -> None:
    tab, page = porter_tab, porter_tab.page
    tab.ask(run("git status", "git status -s", "git push --force origin a-branch-with-a-very-long-name/" + "x" * 120))
    expect(cards(tab)).to_have_count(3)
    always = cards(tab).first.get_by_role("button", name="Always allow git status *")
    look(tab, "rules-cards")
    always.click()
    expect(cards(tab).first).to_contain_text("From now on git status * runs without asking you.")
    check(page)
    look(tab, "rules-always")
    cards(tab).first.get_by_role("button", name="In this conversation").click()
    expect(cards(tab)).to_have_count(1)  # the like of it went along, the other one still asks
    cards(tab).get_by_role("button", name="Say why…").click()
    cards(tab).get_by_label("What should the agent know, or do instead?").fill("Never force a push.")
    look(tab, "rules-why")
    cards(tab).locator("form").get_by_role("button", name="Decline").click()
    expect(tab.answers.last).to_contain_text("ran git status -s")
    expect(tab.answers.last).to_contain_text("Never force a push.")
    tab.ask(run("git status -v"))
    expect(tab.answers.last).to_contain_text("ran git status -v")
    page.locator("details.tool").last.locator("summary").click()
    expect(page.locator("details.tool").last).to_contain_text("by the rule “allow bash: git status *”")
    page.goto(f"{page.url.split('?')[0]}?panel=tools")
    rules = page.get_by_role("region", name="Rules")
    expect(rules.get_by_role("listitem")).to_have_text(["bash: git status *Yours, in this conversationRuns"])
    check(page)
    look(tab, "rules-list")
    rules.get_by_role("button", name="bash: git status *").click()
    look(tab, "rules-form")
    page.get_by_label("Which calls").fill("git status -v")
    page.get_by_role("button", name="Save", exact=True).click()
    rules.get_by_role("button", name="bash: git status -v").click()
    page.get_by_role("button", name="End this rule").click()
    expect(rules).to_contain_text("No rules yet.")
    rules.get_by_role("button", name="Turn on plan mode").click()
    expect(page.locator("#plan")).to_contain_text("Plan mode")
    look(tab, "rules-plan")
    page.locator("#plan").get_by_role("button", name="Leave plan mode").click()
    expect(page.locator("#plan")).to_have_count(0)
    tab.ask(run("git status -v"))
    expect(cards(tab)).to_have_count(1)


def test_a_question_with_choices_is_a_form(porter_tab: ChatPage) -> None:
    questions = [
        {
            "header": "Place",
            "question": "Where shall I deploy it?",
            "options": [{"label": "Staging", "description": "Nobody sees it yet."}, {"label": "Production"}],
            "custom": False,
        },
        {
            "question": "What shall be told to whom?",
            "options": [{"label": "Team"}, {"label": "Guests"}],
            "multiple": True,
        },
        {"question": "Why?"},
    ]
    tab = porter_tab
    tab.ask(f"call tool ask_user {json.dumps({'questions': questions})}\nsay: {{results}}.")
    form = tab.page.locator("form.choices")
    form.get_by_role("button", name="Answer", exact=True).click()
    expect(form.get_by_text("Choose or write an answer.")).to_have_count(3)
    form.get_by_role("radio", name="Staging").check()
    form.get_by_role("checkbox", name="Team").check()
    form.get_by_label("Something else").fill("Neighbours")
    form.get_by_label("In your own words").fill("It is ready.")
    check(tab.page)
    look(tab, "rules-choices")
    form.get_by_role("button", name="Answer", exact=True).click()
    for text in ("Staging", "Team", "Neighbours", "It is ready."):
        expect(tab.answers.last).to_contain_text(text)
