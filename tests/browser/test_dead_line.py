"""A line that takes everything, brings nothing and does not close: the page notices, nothing is lost or doubled."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage

OpenTab = Callable[..., ChatPage]
SOON_MS = 25_000


@pytest.mark.smoke
def test_a_message_over_a_dead_line_is_answered_once(tab: ChatPage, open_tab: OpenTab, page_line: CuttingProxy) -> None:
    tab.ask("say: Before.")
    assert page_line.fall_silent()
    tab.write("say: Heard.")
    expect(tab.answers.last.locator(".md")).to_have_text("Heard.", timeout=SOON_MS)
    assert tab.kinds() == ["user", "answer"] * 2
    other = open_tab(tab.page.url.removeprefix(tab.base_url))  # with connections of its own
    assert other.kinds() == ["user", "answer"] * 2


def test_an_answer_goes_on_where_its_line_died(tab: ChatPage, page_line: CuttingProxy) -> None:
    tab.write("rate 20/s\nstream 60 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text("3")
    page_line.fall_silent()
    expect(tab.page.locator(".message.is-live")).to_have_count(0, timeout=2 * SOON_MS)
    expect(tab.answers.last.locator(".md")).to_contain_text("59", timeout=SOON_MS)
    assert tab.kinds() == ["user", "answer"]


def test_a_tab_that_is_looked_at_again_looks_at_once(tab: ChatPage, open_tab: OpenTab, page_line: CuttingProxy) -> None:
    tab.ask("say: Before.")
    page_line.fall_silent()
    other = open_tab(tab.page.url.removeprefix(tab.base_url))
    other.ask("say: Meanwhile.")
    tab.page.evaluate("dispatchEvent(new Event('focus'))")
    expect(tab.answers.last.locator(".md")).to_have_text("Meanwhile.", timeout=SOON_MS)
