"""One conversation in many places at once: whatever is loaded anew, all of them show the same, as it happens."""

from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.feed.state_client import page_script
from tests.browser.chat_page import ChatPage
from tests.browser.looks import SIZES

OpenTab = Callable[..., ChatPage]
STATE_TAB = "/state-tab"
LINES = "[...document.querySelectorAll('p')].map((line) => line.textContent)"


def open_state_tab(context: BrowserContext, base_url: str, instance_id: str) -> Page:
    """A page of the same site that shows a conversation by the published State Protocol client and TanStack DB."""
    page = context.new_page()
    page.route(
        f"**{STATE_TAB}",
        lambda route: route.fulfill(
            content_type="text/html", body="<!doctype html><meta charset=utf-8><title>State</title><body></body>"
        ),
    )
    page.goto(f"{base_url}{STATE_TAB}")
    page.add_script_tag(content=page_script(), type="module")
    page.wait_for_function("() => Boolean(globalThis.follow)")
    page.evaluate("(url) => void globalThis.follow(url)", f"{base_url}/v1/stream/conversations/{instance_id}")
    return page


def wait_for_lines(tabs: list[Page], wanted: list[str]) -> None:
    for tab in tabs:
        tab.wait_for_function(f"(wanted) => JSON.stringify({LINES}) === JSON.stringify(wanted)", arg=wanted)


def test_reloads_two_tabs_a_live_answer_and_subscribers(
    open_tab: OpenTab, new_context: Callable[..., BrowserContext]
) -> None:
    """A page that asks and is loaded anew in mid-answer, one that looks on, and two subscribers of the change feed."""
    context = new_context()
    asking = open_tab("/c/new", context)
    asking.write("say: Begun.")
    expect(asking.answers.last).to_contain_text("Begun.")
    path = asking.page.url.removeprefix(asking.base_url)
    watching = open_tab(path, context)
    subscribers = [open_state_tab(context, asking.base_url, path.rpartition("/")[2]) for _ in range(2)]
    begun = ["user: say: Begun.", "assistant: Begun."]
    wait_for_lines(subscribers, begun)

    words = " ".join(f"word{number}" for number in range(60))
    question = f"rate 15/s\nsay: {words}"
    asking.write(question)
    for tab in (asking, watching):
        expect(tab.answers.last).to_contain_text("word5 ")
    asking.page.reload()
    assert "word59" not in watching.answers.last.inner_text()  # it goes on while the page is loaded
    for tab in (asking, watching):
        expect(tab.answers.last).to_contain_text("word59")
        assert tab.answers.last.inner_text().split().count("word30") == 1
    wait_for_lines(subscribers, [*begun, f"user: {question}", f"assistant: {words}"])
    for page in (watching.page, subscribers[0]):
        page.set_viewport_size(SIZES["phone"])

    watching.page.evaluate(
        """async (id) => {
            const token = document.querySelector('meta[name="csrf-token"]').content;
            await fetch(`/api/v1/instances/${id}/clear`, { method: "POST", headers: { "x-csrftoken": token } });
        }""",
        path.rpartition("/")[2],
    )
    wait_for_lines(subscribers, [])
    asking.write("say: Anew.")
    for tab in (asking, watching):
        expect(tab.answers).to_have_count(1)
        expect(tab.answers.last).to_contain_text("Anew.")
    wait_for_lines(subscribers, ["user: say: Anew.", "assistant: Anew."])
