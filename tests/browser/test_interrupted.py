"""Answers whose worker or model is lost, in the page: a person resumes it in place, and another model takes over."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
SLOW = "rate 40/s\nsay: A first paragraph of an answer, \nwait 9 s\nsay: and what came after the pause."


def mark(tab: ChatPage) -> None:
    """Leave something in the document that a reload would take away."""
    tab.page.evaluate("() => { window.markedByTest = true }")


def is_the_same_document(tab: ChatPage) -> bool:
    return bool(tab.page.evaluate("() => window.markedByTest === true"))


@pytest.mark.smoke
def test_a_paused_answer_is_resumed_in_place_in_every_tab(open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab = open_tab("/c/new?agent=hesitant")
    tab.write(SLOW)
    expect(tab.page.locator(".message.is-live .md")).to_contain_text("of an answer,")
    second = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    expect(second.page.locator(".message.is-live .md")).to_contain_text("of an answer,")
    mark(tab)
    mark(second)
    live_product.kill_workers()
    resume = tab.page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible(timeout=60_000)
    look(tab, "paused")
    tab.input.fill("A draft that stays")
    requests: list[str] = []
    tab.page.on("request", lambda request: requests.append(request.resource_type))
    resume.click()
    expect(resume).to_have_count(0)
    expect(tab.input).to_be_focused()
    for each in (tab, second):
        expect(each.stop_button).to_be_visible()
    look(tab, "resuming")
    for each in (tab, second):
        expect(each.answers.last).to_contain_text("after the pause.", timeout=60_000)
        each.rest()
        expect(each.page.locator("#status")).to_be_hidden()
        expect(each.answers.last.locator(".seam")).to_have_text(re.compile(r"^Interrupted, and resumed at"))
        assert is_the_same_document(each)
        assert each.answers.count() == 1
    assert tab.input.input_value() == "A draft that stays"
    assert "document" not in requests
    look(tab, "resumed")
    shown = tab.text_of_last()
    tab.page.reload()
    expect(tab.answers.last).to_contain_text("after the pause.")
    assert tab.text_of_last() == shown == second.text_of_last()


def test_what_cannot_be_resumed_any_more_is_said(open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab = open_tab("/c/new?agent=hesitant")
    tab.write(SLOW)
    expect(tab.page.locator(".message.is-live .md")).to_contain_text("of an answer,")
    live_product.kill_workers()
    resume = tab.page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible(timeout=60_000)
    tab.page.route("**/resume", lambda route: route.fulfill(status=500, body="{}"))
    resume.click()
    expect(tab.page.locator("#notices")).to_contain_text(re.compile(r"\S"))
    expect(resume).to_be_visible()
    tab.page.unroute("**/resume")
    resume.click()
    expect(tab.answers.last).to_contain_text("after the pause.", timeout=60_000)


FAILS = "rate 40/s\nerror in stream after 4 code insufficient_quota times 1\nsay: It begins with this, \n"


@pytest.mark.smoke
def test_another_model_takes_over_in_mid_answer(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=backed")
    tab.write(f"{FAILS}wait 9 s\nsay: and it ends with that.")
    status = tab.page.locator("#status")
    expect(status).to_contain_text("gpt-4o, in place of openai/gpt-5, is thinking")
    expect(tab.answers.last).to_contain_text("It begins")
    look(tab, "failover")
    tab.page.reload()
    expect(status).to_contain_text("gpt-4o, in place of openai/gpt-5, is thinking")
    expect(tab.answers.last).to_contain_text("It begins with this,and it ends with that.")
    tab.rest()
    expect(status).to_be_hidden()
