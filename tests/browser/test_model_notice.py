"""Which model answers is said; the small one is called small, a missing one is explained. The page's embedded facts are
changed on their way, since one server has one model."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.boot import with_model
from tests.browser.chat_page import ChatPage


def test_small_model_states_that_it_is_small_until_dismissed(tab: ChatPage) -> None:
    small = {"name": "smollm2-360m", "kind": "local", "is_small": True, "hint": "Set OPENAI_BASE_URL."}
    with_model(tab, small)
    banner = tab.page.locator("#banner")
    expect(banner).to_contain_text("smollm2-360m is answering: a small model")
    banner.get_by_text("Connect a better one").click()
    expect(banner).to_contain_text("Set OPENAI_BASE_URL.")
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner).to_be_hidden()
    tab.open("/c/new")
    expect(banner).to_be_hidden()


@pytest.mark.smoke
def test_missing_model_is_explained_and_cannot_be_dismissed(tab: ChatPage) -> None:
    with_model(tab, {"name": "", "kind": "none", "is_small": False, "hint": "Set OPENAI_API_KEY."})
    banner = tab.page.locator("#banner")
    expect(banner).to_contain_text("No model is connected")
    expect(banner).to_contain_text("Set OPENAI_API_KEY.")
    expect(banner.get_by_role("button")).to_have_count(0)
    expect(tab.page.locator("#model-name")).to_have_text("No model")


def test_good_model_needs_no_words(tab: ChatPage, open_tab: Callable[..., ChatPage]) -> None:
    expect(tab.page.locator("#banner")).to_be_hidden()
    expect(tab.page.locator("#model-name")).to_contain_text("scripted")
