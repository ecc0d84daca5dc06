"""Agents at work for a conversation: cards under their calls, live, with what they say, ask and how they end."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
LOOKS = 'call tool look {"seconds": 6}'


def given(*tasks: str, tool: str = "find", then: str = "say: Written.") -> str:
    """Words that have the scripted model of an editor have finders do these things."""
    calls = [f"call tool {tool} {json.dumps({'task': task})}" for task in tasks]
    return "\n".join([*calls, then])


def cards(tab: ChatPage) -> Locator:
    return tab.page.locator(".run")


def open_editor(open_tab: OpenTab, **options: Any) -> ChatPage:
    return open_tab("/c/new?agent=editor", **options)


@pytest.mark.smoke("desktop")
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_card_shows_how_far_an_agent_is_and_opens_to_what_it_says(open_tab: OpenTab, shape: dict[str, Any]) -> None:
    tab = open_editor(open_tab, shape=shape)
    tab.write(given(f"say: Looking.\n{LOOKS}\nsay: I have **found** it."))
    card = cards(tab)
    expect(card.locator(".run-name")).to_have_text("Finder of things")
    expect(card.locator(".run-note")).to_contain_text("Working")
    expect(card.locator("progress")).to_have_attribute("value", "0.4")
    expect(card).to_contain_text("Reading the second of five sources")
    expect(card.locator(".run-milestones li")).to_have_text(["Sources found"])
    card.locator("summary").first.click()
    expect(card.locator(".run-body .md").first).to_have_text("Looking.")
    check(tab.page)
    look(tab, f"run-at-work-{shape['viewport']['width']}")
    expect(card.locator(".run-note")).to_contain_text("Done")
    expect(card.locator(".run-body strong")).to_have_text("found")
    expect(card.locator("progress")).to_have_count(0)
    expect(tab.answers.last).to_contain_text("Written.")
    tab.page.reload()
    expect(cards(tab).locator(".run-note")).to_contain_text("Done")
    expect(cards(tab).locator(".run-milestones li")).to_have_text(["Sources found"])


def test_two_tabs_and_a_cut_line_show_the_same_run_once(open_tab: OpenTab, page_line: CuttingProxy) -> None:
    tab = open_editor(open_tab)
    tab.write(given("stream 40 words at 10/s"))
    card = cards(tab)
    card.locator("summary").first.click()
    expect(card.locator(".run-body .md")).to_contain_text(" ")
    other = open_tab(re.sub(r"^.*?(/c/)", r"\1", tab.page.url), context=tab.page.context)
    cards(other).locator("summary").first.click()
    page_line.cut()
    for each in (tab, other):
        expect(cards(each).locator(".run-note")).to_contain_text("Done")
        expect(cards(each)).to_have_count(1)
    texts = [each.page.locator(".run-body .md").inner_text().split() for each in (tab, other)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 40


def test_what_an_agent_asks_is_answered_in_its_parents_conversation(open_tab: OpenTab) -> None:
    tab = open_editor(open_tab)
    tab.write(given('call tool pay_for {"amount": 5}\nsay: It is {result}.'))
    question = cards(tab).get_by_role("group", name="Approve")
    expect(question).to_contain_text("Pay 5?")
    expect(cards(tab).locator(".run-note")).to_contain_text("Asks something")
    check(tab.page)
    look(tab, "run-asks")
    tab.page.reload()
    question.get_by_role("button", name="Allow once").click()
    expect(cards(tab).locator(".run-note")).to_contain_text("Done")
    expect(question).to_have_count(0)
    cards(tab).locator("summary").first.click()
    expect(cards(tab).locator(".run-body")).to_contain_text("It is paid 5.")
    expect(tab.answers.last).to_contain_text("Written.")


def test_an_agent_is_stopped_and_the_answer_goes_on(open_tab: OpenTab) -> None:
    tab = open_editor(open_tab)
    tab.write(given("stream 400 words at 10/s", "say: The other."))
    expect(cards(tab)).to_have_count(2)
    first = cards(tab).first
    first.get_by_role("button", name="Stop").click()
    expect(first.locator(".run-note")).to_contain_text("Stopped")
    expect(cards(tab).last.locator(".run-note")).to_contain_text("Done")
    expect(tab.answers.last).to_contain_text("Written.")
    look(tab, "run-stopped")


def test_a_run_is_opened_as_a_conversation_with_a_way_back(open_tab: OpenTab) -> None:
    tab = open_editor(open_tab)
    tab.write(given("say: From below."))
    expect(tab.answers.last).to_contain_text("Written.")
    cards(tab).get_by_role("link", name="Open as conversation").click()
    expect(tab.answers.last).to_contain_text("From below.")
    expect(tab.page.locator("#parent")).to_contain_text("Part of")
    check(tab.page)
    look(tab, "run-as-conversation")
    tab.page.locator("#parent a").click()
    expect(tab.answers.last).to_contain_text("Written.")
    expect(cards(tab)).to_have_count(1)


def test_an_agent_in_the_background_works_on_after_the_answer(open_tab: OpenTab) -> None:
    tab = open_editor(open_tab)
    tab.write(given(f"{LOOKS}\nsay: Done later.", tool="find_later"))
    expect(tab.answers.last).to_contain_text("Written.")
    card = cards(tab)
    expect(card.locator(".run-note")).to_contain_text("Working")
    tab.page.reload()
    expect(card.locator(".run-note")).to_contain_text("Done")
    card.locator("summary").first.click()
    expect(card.locator(".run-body")).to_contain_text("Done later.")


def test_failed_empty_and_long_runs_are_shown(open_tab: OpenTab) -> None:
    tab = open_editor(open_tab)
    words = "unbreakable" * 60
    tab.write(given("error 401", f"say: {words}\\n\\n{'Many words. ' * 300}", "finish: stop"))
    expect(cards(tab)).to_have_count(3)
    expect(tab.answers.last).to_contain_text("Written.")
    expect(cards(tab).first.locator(".run-note")).to_contain_text("Failed")
    for at in range(3):
        cards(tab).nth(at).locator("summary").first.click()
    look(tab, "run-ends")
    check(tab.page)
