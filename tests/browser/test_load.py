"""Long conversations and long answers: the page stays quick. Figures are printed, what is asserted is structure."""

import time
from typing import Any

from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.main_thread import WATCH, metrics
from tests.browser.reading import history


def test_four_hundred_messages_and_fifteen_hundred_chunks(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Long", history(400))
    tab.open(f"/c/{key}")

    def has_all() -> bool:
        tab.page.evaluate("document.getElementById('scroller').scrollTop = 0")
        return tab.messages.count() == 400

    tab.until(has_all)
    tab.page.evaluate("document.getElementById('to-end').click()")
    tab.page.evaluate(WATCH)
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU of the thread, not of busy neighbours
    before, began = metrics(session), time.monotonic()
    tab.write("rate 200/s\nstream 1500 words")
    expect(tab.page.locator(".message.is-live")).to_be_visible(timeout=20_000)
    expect(tab.stop_button).to_be_hidden(timeout=60_000)
    share = (metrics(session)["TaskDuration"] - before["TaskDuration"]) / (time.monotonic() - began)
    long_tasks, longest, touched = tab.page.evaluate("[busy, longest, touched]")
    print(f"main thread busy {share:.0%}, long tasks {long_tasks:.0f} ms in all, longest {longest:.0f} ms")  # noqa: T201 - the figure is the report
    assert touched == 0, "a message that is not being written was changed while another one streamed"
    assert len(tab.text_of_last().split()) == 1500
