"""Whatever happens to a page in mid-answer: at the end it holds, byte for byte, what an undisturbed run gave.

The provider gives the same answer in two conversations. One runs in peace; then the stored text and the rendered nodes
of the other, which is slow enough to be met in the middle on a busy machine, must equal its own.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.reading import history

OpenTab = Callable[..., ChatPage]
ANSWER = (
    "# What was asked\n\nA first paragraph with *em*, **strong**, `code`, a [link](https://example.com/?a=1&b=2),  \n"
    "a hard break, é and é (two ways), 👩‍👩‍👧‍👦, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 and zero\u200bwidth.\n\nمرحبا بالعالم\n\n"
    "- one\n- two\n  - nested\n\n1. first\n2. second\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| <b>x</b> | `y` |\n\n"
    "```python\ndef f(x):\n    return '''<b>'''  # four spaces\n\n\nprint(f(1))\n```\n\n> a quote that\n> goes on\n\n"
    "The end has several sentences, so that there is something left to stream. Here is one more. And this is the last."
)
_MOVED = """() => {
    window.moved = [];
    const elementOf = (node) => node instanceof Element ? node : node?.parentElement;
    new PerformanceObserver((list) => {
        for (const { node } of list.getEntries().flatMap((entry) => entry.sources)) {
            if (elementOf(node)?.closest(".stage")) window.moved.push(elementOf(node).outerHTML.slice(0, 80));
        }
    }).observe({ type: "layout-shift" });
}"""
LONG = "rate 9/s\nsay: " + ANSWER.replace("\n", "\\n")
_HELD = """async () => {
    const id = location.pathname.split("/").pop();
    const page = await (await fetch(`/api/v1/instances/${id}/messages`)).json();
    const texts = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text);
    const shown = [...document.querySelectorAll(".message.is-assistant")].at(-1);
    return JSON.stringify({
        stored: page.items.filter((item) => item.role === "assistant").map(texts).at(-1),
        shown: [...shown.querySelectorAll(":scope > .message-body > .md")].map((element) => element.innerHTML),
    });
}"""


@dataclass(frozen=True)
class Held:
    """The last answer of a conversation: what the server stored, what the page shows."""

    stored: list[str]
    shown: list[str]


def held(tab: ChatPage) -> Held:
    return Held(**json.loads(tab.page.evaluate(_HELD)))


def begin(tab: ChatPage, text: str = LONG, *, seen: str = "first paragraph") -> None:
    """Ask in a new conversation and wait until the answer is under way."""
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.messages).to_have_count(0)
    tab.write(text)
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(seen, timeout=20_000)


def undisturbed(tab: ChatPage, text: str) -> Held:
    """The answer in peace."""
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.messages).to_have_count(0)
    tab.ask(text)
    return held(tab)


@pytest.fixture
def calm(tab: ChatPage) -> Held:
    """What an undisturbed run gives: the very text of the script."""
    found = undisturbed(tab, LONG.replace("rate 9/s", "rate 60/s"))
    assert found.stored == [ANSWER]
    return found


@pytest.mark.smoke
def test_reload_in_mid_answer(tab: ChatPage, calm: Held) -> None:
    begin(tab)
    tab.page.reload()
    expect(tab.page.locator(".message.is-live .md")).to_contain_text("first paragraph")
    tab.rest()
    assert held(tab) == calm


def test_second_tab_in_mid_answer(tab: ChatPage, calm: Held, open_tab: OpenTab) -> None:
    begin(tab)
    second = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    expect(second.page.locator(".message.is-live .md")).to_contain_text("first paragraph")
    second.rest()
    tab.rest()
    assert held(second) == calm
    assert held(tab) == calm


def test_offline_and_back(tab: ChatPage, calm: Held, page_line: CuttingProxy) -> None:
    begin(tab)
    page_line.go_offline()
    expect(tab.page.locator("#connection")).to_contain_text("Connection lost", timeout=20_000)
    page_line.go_online()
    expect(tab.page.locator("#connection")).to_be_hidden(timeout=30_000)
    tab.rest()
    assert held(tab) == calm


def test_a_word_about_the_line_moves_nothing_that_is_read(
    tab: ChatPage, page_line: CuttingProxy, live_product: LiveProduct
) -> None:
    """It comes and goes by itself, on a slow machine while the page opens."""
    tab.open("/c/" + live_product.seed("Short", history(2)))
    tab.page.evaluate(_MOVED)
    page_line.go_offline()
    expect(tab.page.locator("#connection")).to_be_visible(timeout=20_000)
    page_line.go_online()
    expect(tab.page.locator("#connection")).to_be_hidden(timeout=30_000)
    assert tab.page.evaluate("window.moved") == []


def test_offline_until_the_answer_is_over(
    tab: ChatPage, calm: Held, page_line: CuttingProxy, live_product: LiveProduct
) -> None:
    begin(tab)
    page_line.go_offline()
    live_product.wait_until_idle()
    page_line.go_online()
    expect(tab.page.locator("#connection")).to_be_hidden(timeout=30_000)
    tab.rest()
    assert held(tab) == calm


def test_stop_from_the_other_tab(tab: ChatPage, calm: Held, open_tab: OpenTab) -> None:
    begin(tab)
    second = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    expect(second.page.locator(".message.is-live .md")).to_contain_text("first paragraph")
    second.stop_button.click()
    second.rest()
    tab.rest()
    stopped = held(tab)
    assert held(second) == stopped
    (text,) = stopped.stored
    assert 20 < len(text.encode()) < len(ANSWER.encode())
    assert ANSWER.startswith(text)
    tab.page.reload()
    assert held(tab) == stopped
    # The whole answer is one press away, in the tab that did not stop it too.
    second.answers.last.get_by_role("button", name="Answer again").click()
    expect(second.page.locator(".sibling-count")).to_have_text("2 / 2", timeout=20_000)
    expect(tab.page.locator(".sibling-count")).to_have_text("2 / 2", timeout=20_000)
    second.rest()
    tab.rest()
    assert held(second) == calm
    assert held(tab) == calm


PAUSED = "rate 40/s\nsay: A first paragraph of an answer, \nwait 9 s\nsay: and what came after the pause."


def test_worker_killed_in_mid_answer(tab: ChatPage, live_product: LiveProduct) -> None:
    calm = undisturbed(tab, PAUSED)
    begin(tab, PAUSED, seen="of an answer,")
    live_product.kill_workers()
    status = tab.page.locator("#status")
    expect(status).to_contain_text(re.compile(r"Nothing new for \d+ s"), timeout=60_000)
    look(tab, "silent")
    expect(status).to_have_text("Picking up after an interruption. Nothing is lost.", timeout=60_000)
    look(tab, "recovering")
    expect(tab.stop_button).to_be_hidden(timeout=60_000)
    tab.rest()
    assert "Resuming after an interruption." in tab.spoken()
    assert held(tab) == calm
    assert re.search(r"first paragraph.*after the pause", calm.stored[0])
    expect(tab.answers.last.locator(".seam")).to_have_text(re.compile(r"^Interrupted, and resumed at \d{1,2}:\d\d$"))
    expect(status).to_be_hidden()
