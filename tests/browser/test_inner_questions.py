"""Questions about calls that code makes: cards in the conversation, at the call that runs the code."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.looks import look

CALLS = re.compile(r"/instances/[^/]+/calls$")
OpenTab = Callable[..., ChatPage]


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """The file that the tools write to."""
    return tmp_path / "paper"


def code(body: str) -> str:
    """Words that have the scripted model run this code."""
    return f"call tool execute {json.dumps({'code': f'async () => {{ {body} }}'})} id=one\nsay: Done: {{result}}."


def signing(*papers: Path) -> str:
    calls = ", ".join(f"tools.sign({{path: {json.dumps(str(paper))}}})" for paper in papers)
    return code(f"return await Promise.all([{calls}])")


def question(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("group", name="Approve")


def signed(paper: Path) -> int:
    return len(paper.read_text().splitlines()) if paper.exists() else 0


@pytest.mark.smoke
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_call_of_code_is_approved_at_the_call_that_runs_the_code(
    open_tab: OpenTab, shape: dict[str, Any], paper: Path
) -> None:
    tab = open_tab("/c/new?agent=scrivener", shape=shape)
    tab.write(signing(paper))
    card = question(tab)
    expect(card).to_contain_text(str(paper))
    expect(tab.answers.last.locator(".question")).to_have_count(1)
    expect(tab.page.locator("#status")).to_be_hidden()  # the card says it
    expect(tab.page.locator("details.tool .fold-note")).to_have_text("Waiting for approval")
    check(tab.page)
    look(tab, f"inner-question-{shape['viewport']['width']}")
    assert signed(paper) == 0
    tab.page.reload()
    card.get_by_role("button", name="Allow once").click()
    expect(tab.answers.last).to_contain_text("signed")
    expect(card).to_have_count(0)
    expect(tab.page.locator("#status")).to_be_hidden()
    assert signed(paper) == 1


def test_the_other_tab_declines_and_the_code_hears_of_it(open_tab: OpenTab, paper: Path) -> None:
    tab = open_tab("/c/new?agent=scrivener")
    path = json.dumps(str(paper))
    tab.write(code(f"try {{ return await tools.sign({{path: {path}}}) }} catch (error) {{ return 'caught' }}"))
    expect(question(tab)).to_be_visible()
    other = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    question(other).get_by_role("button", name="Decline").click()
    for each in (tab, other):
        expect(each.answers.last).to_contain_text("caught")
        expect(question(each)).to_have_count(0)
    assert signed(paper) == 0


def test_a_question_that_cannot_be_read_says_so_and_can_be_read_again(open_tab: OpenTab, paper: Path) -> None:
    tab = open_tab("/c/new?agent=scrivener")
    answer = {"detail": "The calls rest.", "code": "x"}
    tab.page.route(CALLS, lambda route: route.fulfill(status=503, json=answer))
    tab.write(signing(paper))
    expect(tab.answers.last.get_by_role("alert")).to_contain_text("The calls rest.")
    tab.page.unroute(CALLS)
    tab.answers.last.get_by_role("button", name="Try again").click()
    expect(question(tab)).to_be_visible()


def test_several_questions_of_one_run_are_decided_one_by_one(open_tab: OpenTab, tmp_path: Path) -> None:
    papers = [tmp_path / "first", tmp_path / "second"]
    tab = open_tab("/c/new?agent=scrivener")
    tab.write(signing(*papers))
    expect(question(tab)).to_have_count(2)
    look(tab, "inner-questions")
    question(tab).first.get_by_role("button", name="Allow once").click()
    expect(question(tab)).to_have_count(1)
    expect(question(tab)).to_contain_text(str(papers[1]))
    question(tab).get_by_role("button", name="Allow once").click()
    expect(tab.answers.last).to_contain_text("Done: ")
    expect(question(tab)).to_have_count(0)
    assert [signed(paper) for paper in papers] == [1, 1]


def test_a_question_stays_in_sight_where_many_calls_are_folded(open_tab: OpenTab, tmp_path: Path) -> None:
    tab = open_tab("/c/new?agent=scrivener")
    jots = [f"call tool jot {json.dumps({'path': str(tmp_path / 'jots')})}\n" for _ in range(5)]
    tab.write("".join(jots) + signing(tmp_path / "paper"))
    expect(tab.page.locator("details.tool-run")).to_contain_text("6 tool calls")
    expect(question(tab)).to_be_visible()
    tab.page.locator("details.tool-run > summary").click()
    expect(tab.page.locator("details.tool")).to_have_count(6)
    expect(question(tab)).to_have_count(1)
    question(tab).get_by_role("button", name="Allow once").click()
    expect(tab.answers.last).to_contain_text("Done: ")
    assert signed(tmp_path / "paper") == 1
