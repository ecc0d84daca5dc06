"""One browser tab with the published hooks, driven through `window.harness` of the page."""

import json
import time
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, WebSocket
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.clients.dom_page import DomPage, DomSocket

Json = dict[str, Any]

REST = "harness.chat && ['ready', 'error'].includes(harness.chat.status) && !harness.chat.isServerStreaming"


class Tab:
    """A page that was opened.

    `frames`: (direction, text) of every frame, `=` for a new connection; `sockets`: each connection attempt.
    """

    def __init__(self, page: Page | DomPage, label: str) -> None:
        self.page = page
        self.label = label
        self.frames: list[tuple[str, str]] = []
        self.sockets: list[str] = []
        self.errors: list[str] = []
        page.on("websocket", self._watch)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _watch(self, socket: WebSocket | DomSocket) -> None:
        self.sockets.append(socket.url)
        self.frames.append(("=", socket.url))
        socket.on("framesent", lambda text: self.frames.append((">", str(text))))
        socket.on("framereceived", lambda text: self.frames.append(("<", str(text))))

    def open(self, base: str, *, is_waiting: bool = True, **query: str) -> "Tab":
        """Go to the page of the clients and wait until the server has said who it is."""
        self.page.goto(f"{base}?{urlencode(query)}")
        if is_waiting:
            self._wait_ready()
        return self

    def open_within(self, url: str, script: str, **query: str) -> "Tab":
        """Go to another page and run the clients within it, as one of its own scripts."""
        self.page.goto(f"{url}?{urlencode(query)}")
        self.page.evaluate("() => { document.body.innerHTML = '<div id=root></div>'; }")
        self.page.evaluate(f"() => {{ {script} }}")
        self._wait_ready()
        return self

    def _wait_ready(self) -> None:
        self.wait("harness.chat && harness.events.some(event => event.kind === 'ready')", what="ready")
        self.wait("!harness.isProbing || harness.events.some(event => event.kind === 'probed')", what="probed")

    # What a person does

    def send(self, text: str, message_id: str | None = None) -> None:
        """Send a message, or replace an earlier one by it."""
        self.page.evaluate(
            "([text, messageId]) => { harness.chat.sendMessage(messageId ? {text, messageId} : {text}); }",
            [text, message_id],
        )

    def do(self, code: str) -> None:
        """Call something of the hook, for instance `harness.chat.stop()`, without waiting for it."""
        self.page.evaluate(f"() => {{ {code}; }}")

    def reload(self) -> None:
        """Load the page again."""
        self.page.reload()
        self.wait("harness.chat", what="the reloaded page")

    # What a person sees

    @property
    def messages(self) -> list[Json]:
        """The hook's messages now."""
        found: list[Json] = self.page.evaluate("() => JSON.parse(JSON.stringify(harness.chat?.messages ?? []))")
        return found

    @property
    def status(self) -> str:
        """The hook's status now."""
        return str(self.page.evaluate("() => harness.chat.status"))

    @property
    def error(self) -> str | None:
        """The text of the hook's error now."""
        found: str | None = self.page.evaluate("() => harness.chat.error?.message ?? null")
        return found

    @property
    def seen(self) -> list[Json]:
        """What each render since the page was loaded showed."""
        found: list[Json] = self.page.evaluate("() => harness.seen")
        return found

    def statuses(self, key: str = "status") -> list[Any]:
        """The sequence of statuses, without repeats; `key`: also `isServerStreaming` or `error`."""
        found: list[Any] = []
        for seen in self.seen:
            if not found or found[-1] != seen[key]:
                found.append(seen[key])
        return found

    def events(self, kind: str) -> list[Json]:
        """What happened to the agent, of one kind."""
        found: list[Json] = self.page.evaluate("kind => harness.events.filter(event => event.kind === kind)", kind)
        return found

    def received(self, kind: str) -> list[Json]:
        """Frames of one type that the server sent."""
        return [frame for frame in self.all_received() if frame["type"] == kind]

    def kinds(self) -> list[str]:
        """Types of all frames that the server sent."""
        self.page.wait_for_timeout(0)  # lets the driver deliver its events
        return [frame["type"] for frame in self.all_received()]

    def by_socket(self) -> list[list[tuple[str, Json]]]:
        """The frames of each connection, parsed; `>` was sent, `<` received."""
        sockets: list[list[tuple[str, Json]]] = []
        for direction, text in self.frames:
            if direction == "=":
                sockets.append([])
            else:
                sockets[-1].append((direction, json.loads(text)))
        return sockets

    def all_received(self) -> list[Json]:
        """Every frame that the server sent."""
        return [json.loads(text) for direction, text in self.frames if direction == "<"]

    # Waiting

    def wait(self, condition: str, *, seconds: float = 20, what: str = "") -> None:
        """Wait for a condition of JavaScript; fails with what the tab shows instead."""
        is_so = f"() => Boolean(globalThis.harness && ({condition}))"
        try:
            self.page.wait_for_function(is_so, polling=20, timeout=seconds * 1000)
        except (TimeoutError, PlaywrightTimeout):
            raise AssertionError(f"{self.label}: {what or condition} did not come.\n{self.dump()}") from None

    def wait_text(self, characters: int) -> None:
        """Wait until the last message is an answer of this length at least."""
        self.wait(
            "harness.seen.at(-1)?.messages.at(-1)?.role === 'assistant' && "
            f"harness.seen.at(-1).messages.at(-1).text.length >= {characters}",
            what=f"{characters} characters of an answer",
        )

    def wait_sent(self, kind: str) -> None:
        """Wait until the page has sent a frame of this type."""
        deadline = time.monotonic() + 20
        while not any(f'"{kind}"' in text for sign, text in self.frames if sign == ">"):
            assert time.monotonic() < deadline, f"{self.label}: a {kind} was not sent.\n{self.dump()}"
            self.page.wait_for_timeout(25)

    def wait_rest(self, *, seconds: float = 30) -> None:
        """Wait until nothing is under way in this tab."""
        self.wait(REST, seconds=seconds, what="rest")

    def dump(self) -> str:
        """What the tab shows and the last frames, for people who read a failure."""
        shown = self.page.evaluate("() => globalThis.harness ? [harness.seen.at(-1), harness.events] : null")
        frames = "\n".join(f"{direction} {text[:300]}" for direction, text in self.frames[-40:])
        return f"{self.label}: {shown}\nerrors: {self.errors}\n{frames}"


def text_of(message: Json) -> str:
    """All text of a message."""
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")
