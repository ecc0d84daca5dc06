"""Headless Chromium tabs of the web UI, used as a person uses them, for chaos runs.

A person who does not get through tries again: a page that does not load is loaded again. What a page holds at rest is
read from the document, message by message.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import Error as BrowserError

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPEN_TRIES = 12
CLICK_MS = 4_000
_MESSAGES = """() => [...document.querySelectorAll('#messages > .message')].map((item) => ({
  id: item.dataset.id,
  texts: [...item.querySelectorAll(':scope > .message-body > .md, :scope > .message-body > .plain')]
    .map((element) => element.textContent),
}))"""


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
        context = await browser.new_context(timezone_id="UTC", locale="en-GB")
        name, _, value = cookie.partition("=")
        await context.add_cookies([{"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}])
        tab = cls(number, room, await context.new_page(), base + path)
        await tab.load()
        return tab

    async def load(self) -> None:
        """Load, or load again, until the page is alive."""
        for _ in range(OPEN_TRIES):
            try:
                await self._page.goto(self._url, timeout=20_000, wait_until="domcontentloaded")
                await self._page.wait_for_selector("html[data-ready]", state="attached", timeout=10_000)
                return
            except BrowserError:
                await asyncio.sleep(1)
        raise AssertionError(f"{self._url} does not load")

    async def write(self, text: str) -> None:
        """Send a message with the keyboard."""
        field = self._page.get_by_role("textbox", name="Message")
        await field.fill(text)
        await field.press("Enter")

    async def regenerate(self) -> bool:
        """Have the last answer given again. False when there was nothing to click."""
        return await self._click(self._page.locator(".message.is-assistant").last, "Answer again")

    async def edit_last(self, text: str) -> bool:
        """Say something else in the place of the last message of one's own."""
        if not await self._click(self._page.locator(".message.is-user").last, "Edit this message"):
            return False
        await self.write(text)
        return True

    async def stop(self) -> bool:
        """Press the stop button. False when it was not there."""
        try:
            await self._page.locator("#stop").click(timeout=CLICK_MS)
        except BrowserError:
            return False
        return True

    async def dump(self) -> dict[str, Any]:
        """What the page shows at rest."""
        return {"tab": self.number, "room": self.room, "messages": await self._page.evaluate(_MESSAGES)}

    async def _click(self, message: Any, name: str) -> bool:
        try:
            await message.hover()
            await message.get_by_role("button", name=name).click()
        except BrowserError:
            return False
        return True
