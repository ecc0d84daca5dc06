"""The chat page as a person uses it, for tests: what one does and what one sees, by names and roles."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Route, expect

STILL = """() => new Promise((done) => {
    const scroller = document.getElementById("scroller");
    let [last, same, looks] = ["", 0, 0];
    const look = () => {
        const now = [scroller.scrollTop, scroller.scrollHeight, scroller.clientHeight, scroller.clientWidth].join();
        same = now === last ? same + 1 : 0;
        last = now;
        looks += 1;
        if (same >= 6 || looks > 600) done(same >= 6);
        else requestAnimationFrame(look);
    };
    look();
})"""


class ChatPage:
    """One open tab."""

    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.held: list[list[Route]] = []
        self.holds_back = False  # the test keeps from the page what it waits for: it does not come to rest
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note_console)
        page.on("request", self._note_request)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.base_url, self.base_url.replace("http", "ws"), "data:", "blob:")):
            self.foreign.append(request.url)

    def hold(self, pattern: str) -> list[Route]:
        """Keep requests back: they are in the list until the test answers them. At its end those left are aborted."""
        held: list[Route] = []
        self.held.append(held)
        self.page.route(pattern, lambda route: held.append(route))
        return held

    def let_go(self) -> None:
        """Abort what the test held and did not answer: Playwright waits for it in a task that outlives the page."""
        for route in itertools.chain.from_iterable(self.held):
            with contextlib.suppress(Error):  # it was answered, or its page is gone
                route.abort()

    def open(self, path: str = "/c/new") -> "ChatPage":
        """Go to an address and wait until the page is alive and has what it asks for as it opens."""
        self.page.goto(self.base_url + path)
        self.page.wait_for_selector("html[data-ready]", state="attached")
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until nothing that the page knows of is pending, but for an answer that is being written."""
        if self.holds_back:
            return
        self.page.wait_for_selector("html:not([data-state=busy])", state="attached", timeout=30_000)

    @property
    def input(self) -> Locator:
        """The message field."""
        return self.page.get_by_role("textbox", name="Message")

    @property
    def messages(self) -> Locator:
        """All messages."""
        return self.page.locator("#messages > .message")

    @property
    def answers(self) -> Locator:
        """All answers."""
        return self.page.locator(".message.is-assistant")

    def kinds(self) -> list[str]:
        """Who said each message, in their order."""
        return ["user" if "is-user" in (m.get_attribute("class") or "") else "answer" for m in self.messages.all()]

    @property
    def stop_button(self) -> Locator:
        """The stop button; it is there while something runs."""
        return self.page.locator("#stop")

    def write(self, text: str) -> None:
        """Send a message with the keyboard."""
        self.input.fill(text, timeout=120_000)  # what is long takes a busy machine long to lay out
        self.input.press("Enter")
        if self.input.input_value():  # on a phone the key breaks the line
            self.page.get_by_role("button", name="Send").click()

    def replace(self, text: str) -> None:
        """Send another text in place of the one that is being edited."""
        expect(self.page.locator("#edit-bar")).to_be_visible()
        # The field gets its text first and the cursor in the next frame: what is typed in between goes to the end.
        self.page.evaluate(
            "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go))))"
        )
        self.input.fill(text)
        self.input.press("Enter")

    def ask(self, text: str) -> Locator:
        """Send a message and wait for the end of its answer; returns the last answer."""
        before = self.answers.count()
        self.write(text)
        expect(self.answers).to_have_count(before + 1, timeout=20_000)
        self.rest()
        return self.answers.last

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until something that the test itself keeps is so."""
        for _ in range(400):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("not within 20 s")

    def still(self) -> None:
        """Wait until what is read neither moves nor grows, for a tenth of a second's frames."""
        assert self.page.evaluate(STILL), "it moves all the time"

    def rest(self) -> None:
        """Wait until nothing that the page knows of is pending, and what has come is drawn."""
        expect(self.stop_button).to_be_hidden(timeout=30_000)
        expect(self.page.locator(".message.is-live")).to_have_count(0, timeout=20_000)
        expect(self.page.locator(".message.is-pending")).to_have_count(0, timeout=20_000)
        if not self.holds_back:
            self.page.wait_for_selector("html[data-state=rest]", state="attached", timeout=30_000)

    def text_of_last(self) -> str:
        """Text of the last answer as rendered."""
        return self.answers.last.locator(".md").inner_text()

    def spoken(self) -> str:
        """What the live region holds."""
        return self.page.locator("#live").inner_text()


def choose_more(tab: ChatPage, message: Locator, entry: str) -> None:
    """Choose from the menu under an answer."""
    message.get_by_role("button", name="More for this message").click()
    tab.page.get_by_role("menuitem", name=entry).click()


def id_of(tab: ChatPage) -> str:
    """The id of the conversation that is shown."""
    return tab.page.url.removeprefix(tab.base_url).split("?")[0].removeprefix("/c/")
