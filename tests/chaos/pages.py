"""Headless Chromium tabs of the web UI, used as a person uses them, for chaos runs.

A person who does not get through tries again: a page that does not load is loaded again. What a page holds at rest is
read from the document, message by message.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Locator, Page, async_playwright, expect
from playwright.async_api import Error as BrowserError

from tests.chaos.waiting import wait_until
from tests.chromium import FLAGS

OPEN_TRIES = 12
CLICK_MS = 4_000
UNFOLD_SECONDS = 10.0
_IS_AT_REST = "() => !document.querySelector('#stop, #messages .is-live, #messages .is-pending')"
_IDS = "() => [...document.querySelectorAll('#messages > .message')].map((item) => item.dataset.id)"
_UNFOLD = """() => {
  const folds = [...document.querySelectorAll('#messages details.fold')].filter((fold) => !fold.hidden);
  for (const fold of folds) fold.open = true;
  return folds.every((fold) => fold.querySelector('.fold-body').hasChildNodes());
}"""
"""Open what is folded. True when all of it is drawn: a body is made once it is open, and may hold lines itself."""

_MESSAGES = """() => {
  const textOf = (element) => element ? element.textContent : null;
  const section = (element) => [textOf(element.querySelector('h3')), textOf(element.querySelector('pre'))];
  const call = (element) => ({
    kind: 'tool',
    name: textOf(element.querySelector('.tool-name')),
    title: textOf(element.querySelector('.fold-label')),
    state: element.querySelector('details').dataset.state,
    sections: [...element.querySelectorAll('.tool-section')].map(section),
  });
  const parts = (element) => {
    if (element.hidden) return [];
    if (element.matches('.md, .plain')) return [{kind: 'text', text: textOf(element)}];
    if (element.matches('.reasoning')) return [{kind: 'reasoning', text: textOf(element.querySelector('.fold-body'))}];
    if (element.matches('.tool-call')) return [call(element)];
    if (element.matches('.tool-run')) return [...element.querySelectorAll('.tool-call')].map(call);
    if (element.matches('.seam')) return [{kind: 'seam'}];
    return [{kind: 'unknown', html: element.outerHTML}];
  };
  return [...document.querySelectorAll('#messages > .message')].map((item) => ({
    id: item.dataset.id,
    role: item.classList.contains('is-user') ? 'user' : 'assistant',
    parts: [...item.querySelector('.message-body').children].flatMap(parts),
  }));
}"""


@asynccontextmanager
async def chromium(path: str) -> AsyncIterator[Browser]:
    """A browser for one run."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


class PageTab:
    """One tab in one conversation."""

    def __init__(self, number: int, room: str, page: Page, url: str) -> None:
        self.number = number
        self.room = room
        self.errors: list[str] = []
        self._page = page
        self._url = url
        page.set_default_timeout(CLICK_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    @classmethod
    async def open(cls, browser: Browser, number: int, room: str, base: str, path: str, cookie: str) -> "PageTab":
        """Sign in and go there."""
        context = await browser.new_context(timezone_id="UTC", locale="en-GB", service_workers="block")
        name, _, value = cookie.partition("=")
        await context.add_cookies([{"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}])
        tab = cls(number, room, await context.new_page(), base + path)
        await tab.load()
        return tab

    @property
    def _field(self) -> Locator:
        return self._page.get_by_role("textbox", name="Message")

    async def load(self) -> None:
        """Load, or load again, until the page is alive."""
        for _ in range(OPEN_TRIES):
            try:
                await self._page.goto(self._url, timeout=20_000, wait_until="domcontentloaded")
                await self._page.wait_for_selector("html[data-ready]", state="attached", timeout=10_000)
                return
            except BrowserError:
                await asyncio.sleep(1)  # a person tries again: the server that was killed comes back in its time
        raise AssertionError(f"{self._url} does not load")

    async def write(self, text: str) -> None:
        """Send a message with the keyboard."""
        await self._field.fill(text)
        await self._field.press("Enter")

    async def regenerate(self) -> bool:
        """Have the last answer given again. False when there was nothing to click."""
        return await self._click(self._page.locator(".message.is-assistant").last, "Answer again")

    async def edit_last(self, text: str) -> bool:
        """Say something else in the place of the last message of one's own."""
        if not await self._click(self._page.locator(".message.is-user").last, "Edit this message"):
            return False
        # The former words are in the field a moment after the click; to write before that is to write beside them.
        await expect(self._field).not_to_have_value("", timeout=CLICK_MS)
        await self.write(text)
        return True

    async def stop(self) -> bool:
        """Press the stop button. False when it was not there."""
        try:
            await self._page.locator("#stop").click(timeout=CLICK_MS)
        except BrowserError:
            return False
        return True

    async def show_all(self) -> None:
        """Scroll up to the beginning."""
        older = self._page.locator("#older")

        async def has_all() -> bool:
            if await older.is_visible():
                await older.click()
            return not await older.is_visible()

        if not await wait_until(has_all, seconds=30, pause=0.2):
            self.errors.append(f"page {self.number} does not show the beginning")

    async def ids(self) -> list[str]:
        """Ids of what is shown; nothing while something is under way."""
        found: list[str] = await self._page.evaluate(_IDS) if await self._page.evaluate(_IS_AT_REST) else []
        return found

    async def view(self, leaf: int | None) -> dict[str, Any]:
        """What the page shows while the path to this leaf is shown, with everything unfolded."""
        if not await wait_until(self._is_unfolded, seconds=UNFOLD_SECONDS):
            self.errors.append(f"page {self.number} does not open what is folded")
        held = {"place": f"page {self.number}", "kind": "page", "room": self.room, "leaf": leaf}
        is_at_rest = await self._page.evaluate(_IS_AT_REST)
        return {**held, "is_at_rest": is_at_rest, "messages": await self._page.evaluate(_MESSAGES)}

    async def run(self, code: str, argument: object) -> None:
        """Run code in the page: what no person does."""
        await self._page.evaluate(code, argument)

    async def _is_unfolded(self) -> bool:
        return bool(await self._page.evaluate(_UNFOLD))

    async def _click(self, message: Locator, name: str) -> bool:
        try:
            await message.hover()
            await message.get_by_role("button", name=name).click()
        except BrowserError:
            return False
        return True
