"""Tabs with the published React clients (`tests/clients/app.tsx`) in a chaos run, used as a person uses them.

A person whose message did not arrive says it again, and one whose tab is stuck loads it again. Every frame is kept as
it came, connection by connection, and what the hook has is read at rest.
"""

import json
import time
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, Page, WebSocket
from playwright.async_api import Error as BrowserError

from tests.chaos.lines import new_connection, note
from tests.chaos.waiting import wait_until

JSONObject = dict[str, Any]
READY_SECONDS = 8.0
OPEN_TRIES = 12
_REST = "harness.chat && ['ready', 'error'].includes(harness.chat.status) && !harness.chat.isServerStreaming"
_READY = f"{_REST} && harness.agent.readyState === 1"
_MESSAGES = "JSON.parse(JSON.stringify(harness.chat.messages))"


class PublishedTab:
    """One tab in one conversation. `line`: which bundle, `sdk7` or `sdk6`."""

    def __init__(self, line: str, room: str, page: Page, url: str) -> None:
        self.line = line
        self.room = room
        self.errors: list[str] = []
        self.connections: list[JSONObject] = []
        self._page = page
        self._url = url
        page.set_default_timeout(8_000)
        page.on("pageerror", lambda error: self.errors.append(f"{line}: {error}"))
        page.on("websocket", self._watch)

    @classmethod
    async def open(cls, browser: Browser, line: str, room: str, base: str, **query: str) -> "PublishedTab":
        """Open the page of a line and wait until it is connected."""
        page = await (await browser.new_context()).new_page()
        tab = cls(line, room, page, f"{base}/{line}/?{urlencode({'name': room, **query})}")
        await tab.load()
        return tab

    async def load(self) -> None:
        """Load, or load again, until the hook is there and connected."""
        for _ in range(OPEN_TRIES):
            self._all_closed()
            try:
                await self._page.goto(self._url, wait_until="domcontentloaded")
            except BrowserError:
                continue
            if await wait_until(lambda: self._holds(_READY), seconds=READY_SECONDS):
                return
        raise AssertionError(f"{self._url} does not load")

    async def be_ready(self) -> None:
        """Wait until one can write; a tab that does not come back by itself is loaded again."""
        if not await wait_until(lambda: self._holds(_READY), seconds=READY_SECONDS):
            await self.load()

    # What a person does

    async def write(self, text: str) -> None:
        """Send a message."""
        await self._page.evaluate("text => { harness.chat.sendMessage({text}); }", text)

    async def edit_last(self, text: str) -> bool:
        """Say something else in the place of the last message of one's own. False when there is none."""
        users = [message["id"] for message in await self._messages() if message["role"] == "user"]
        if users:
            code = "([text, messageId]) => { harness.chat.sendMessage({text, messageId}); }"
            await self._page.evaluate(code, [text, users[-1]])
        return bool(users)

    async def regenerate(self) -> bool:
        """Have the last answer given again. False when there is none."""
        has_answer = any(message["role"] == "assistant" for message in await self._messages())
        if has_answer:
            await self._page.evaluate("() => { harness.chat.regenerate(); }")
        return has_answer

    async def stop(self) -> bool:
        """Press stop. True: the button is always there."""
        await self._page.evaluate("() => { harness.chat.stop(); }")
        return True

    # What is kept for the oracle

    def dump(self) -> JSONObject:
        """What this client got, connection by connection."""
        return {"client": self.line, "room": self.room, "connections": self.connections, "sent": [], "ended": []}

    async def ids(self) -> list[str]:
        """Ids of what the hook has; nothing while something is under way."""
        return [message["id"] for message in await self._messages()] if await self._holds(_REST) else []

    async def view(self, leaf: int | None) -> JSONObject:
        """What the hook has while the path to this leaf is shown."""
        held = {"place": self.line, "kind": "published", "room": self.room, "leaf": leaf}
        return {**held, "is_at_rest": await self._holds(_REST), "messages": await self._messages()}

    def chunks(self) -> int:
        """How many chunks came so far."""
        return sum(frame["kind"] == "chunk" for line in self.connections for frame in line["frames"])

    async def _messages(self) -> list[JSONObject]:
        found: list[JSONObject] = await self._page.evaluate(f"() => globalThis.harness?.chat ? {_MESSAGES} : []")
        return found

    async def _holds(self, condition: str) -> bool:
        try:
            return bool(await self._page.evaluate(f"() => Boolean(globalThis.harness && ({condition}))"))
        except BrowserError:
            return False

    def _watch(self, socket: WebSocket) -> None:
        connection = new_connection()
        self._all_closed()
        self.connections.append(connection)
        socket.on("framereceived", lambda text: _take(connection, str(text)))
        socket.on("close", lambda _: _close(connection))

    def _all_closed(self) -> None:
        for connection in self.connections:
            _close(connection)


def _take(connection: JSONObject, text: str) -> None:
    frame = json.loads(text)
    if frame["type"] == "cf_agent_use_chat_response":
        connection["frames"].append(note(frame))
    elif frame["type"] == "cf_agent_identity":
        connection["opened"] = time.time()


def _close(connection: JSONObject) -> None:
    connection["closed"] = connection["closed"] or time.time()
