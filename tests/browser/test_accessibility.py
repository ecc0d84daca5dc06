"""axe finds nothing on the pages people see most, in light and dark, wide and narrow."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage, id_of
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.parts import call, message

OpenTab = Callable[..., ChatPage]
SECTIONS = [
    *("you", "instructions", "memory", "prompts", "rules", "keys", "tools"),
    *("notifications", "tokens", "sessions", "links", "deleted", "usage", "data"),
]
RICH = (
    "Show me everything\nreason 10 words\n"
    'call tool current_time {"time_zone": "UTC"}\n'
    "say: # Title\\n\\nText with `code`, [link](https://example.com).\\n\\n"
    "```python\\ndef f():\\n    return 1  # note\\n```\\n\\n"
    "| a | b |\\n|---|--:|\\n| 1 | 2 |\\n\\n> quote\\n\\n![pic](https://evil.example/p.png)\\n\\n- item"
)


@pytest.mark.smoke("phone-dark")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_conversation(open_tab: OpenTab, scheme: str, shape: dict[str, object]) -> None:
    tab = open_tab(shape=shape, color_scheme=scheme)
    tab.ask(RICH)
    for summary in tab.page.locator("#messages summary").all():
        summary.click()
    if shape is PHONE:
        tab.answers.last.get_by_role("button", name="More for this message").click()
        tab.page.get_by_role("menuitem", name="Answer again", exact=True).click()
    else:
        tab.answers.last.get_by_role("button", name="Answer again").click()
    tab.page.wait_for_selector(".sibling-count", timeout=20_000)
    tab.rest()
    check(tab.page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_error_queue_and_running(open_tab: OpenTab, scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    tab.write("error 400")
    tab.page.wait_for_selector(".status.is-error", timeout=30_000)
    check(tab.page)
    tab.open("/c/new")
    tab.write("rate 10/s\nstream 100 words")
    tab.page.wait_for_selector(".message.is-live .md")
    tab.write("next\nsay: n.")
    tab.page.wait_for_selector(".message.is-pending")
    check(tab.page)
    tab.stop_button.click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rare_states(open_tab: OpenTab, live_product: LiveProduct, scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    calls = [call(number) for number in range(6)]
    tab.open(
        "/c/"
        + live_product.seed("Calls", [message("u", "user", "Go"), {**message("a", "assistant", ""), "parts": calls}])
    )
    for summary in tab.page.locator("#messages summary").all():
        summary.click()
    check(tab.page)
    tab.open("/c/" + live_product.seed("Old", [message("u2", "user", "line\n" * 60)], agent="retired-agent"))
    expect(tab.page.locator("#read-only")).to_be_visible()
    check(tab.page)
    tab.open("/c/new")
    tab.ask("say: Hello.").locator(".facts").click()
    check(tab.page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_list(open_tab: OpenTab, scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    check(tab.page)
    tab.ask("Alpha\nsay: a.")
    phone = open_tab("/", context=None, shape=PHONE, color_scheme=scheme)
    check(phone.page)
    phone.page.get_by_role("button", name="More for “Alpha”").click()
    check(phone.page)
    phone.page.get_by_role("menuitem", name="Rename").click()
    check(phone.page)


@pytest.mark.parametrize(("shape", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_places_around_a_conversation(open_tab: OpenTab, shape: dict[str, object], scheme: str) -> None:
    tab = open_tab(shape=shape, color_scheme=scheme)
    tab.ask("Alpha\nsay: a.")
    key = id_of(tab)
    for panel in ("context", "files", "memory", "overview", "schedules", "background", "tools"):
        tab.open(f"/c/{key}?panel={panel}")
        check(tab.page)
    for section in SECTIONS:
        tab.open(f"/settings/{section}")
        check(tab.page)
    tab.open("/work")
    check(tab.page)
    for entry in ("List the questions", "Branches", "Share with people", "Share…", "Move to project…", "Rename"):
        tab.open(f"/c/{key}")
        tab.page.locator("#conversation-more").click()
        tab.page.get_by_role("menuitem", name=entry, exact=True).click()
        expect(tab.page.get_by_role("dialog")).to_be_visible()
        tab.settle()
        check(tab.page)


@pytest.mark.smoke("light")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sign_in(open_tab: OpenTab, scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    tab.page.context.clear_cookies()
    tab.page.goto(f"{tab.base_url}/sign-in/")
    check(tab.page)
