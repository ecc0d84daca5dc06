"""A model that is asked again, in the page: why, in how many seconds, and how often, live and after a reload."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

pytestmark = pytest.mark.smoke

TOLD = re.compile(r"^The model is rate-limited\. Trying again in \d+ s \(attempt 2 of 3\)\.$")


def test_the_page_counts_down_to_the_next_attempt(open_tab: Callable[..., ChatPage]) -> None:
    tab = open_tab("/c/new")
    tab.write("error 429 retry-after 50 times 1\nsay: At last.")
    status = tab.page.locator(".status")
    expect(status).to_have_text(TOLD)
    told = status.inner_text()
    expect(status).not_to_have_text(told)  # it counts
    expect(status).to_have_text(TOLD)
    tab.page.reload()
    expect(status).to_have_text(TOLD)
    mark = tab.page.locator(".row .mark.is-retrying")
    expect(mark).to_have_text(re.compile(r"^Asks its model again at \d+:\d+"))
    look(tab, "retrying")
    tab.stop_button.click()
    expect(status).to_be_hidden()
    expect(mark).to_have_count(0)
