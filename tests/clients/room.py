"""A conversation with its tabs: opens them, asks, and checks what every tab showed and shows against two oracles.

The oracles: the stored transcript, as anybody may fetch it, and the provider's log of what the model said.
"""

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urljoin

from playwright.sync_api import Page, WebSocketRoute

from tests.acceptance.product import Product, wait_for
from tests.clients.oracle import answer_of, has_ended
from tests.clients.tab import REST, Json, Tab, text_of

Hops = tuple[tuple[str, str], ...]
"""The sub-agents on the way, each its agent and its name."""

STEADY_SECONDS = 0.3
"""At rest means: still the same after this time."""


class Room:
    """One instance of an agent, with a name of its own."""

    def __init__(
        self,
        product: Product,
        name: str,
        new_tab: Callable[[str], Tab],
        base: str,
        *,
        agent: str = "assistant",
        sub: Hops = (),
        script: str = "app.js",
    ) -> None:
        self.product = product
        self.name = name
        self.sub = sub
        self.agent = agent
        self.tabs: list[Tab] = []
        self.markers: list[str] = []
        self._new_tab = new_tab
        self._base = base
        self._script = script

    # Doing

    def open(
        self,
        label: str = "",
        *,
        port: int = 0,
        is_waiting: bool = True,
        liar: Callable[[WebSocketRoute], None] | None = None,
        page: str = "",
        **query: str,
    ) -> Tab:
        """Open a tab, straight to the web server, through something that listens on `port`, or through a liar.

        `page`: another page than the room's own.
        """
        host = f"127.0.0.1:{port or self.product.webs[0].port}"
        asked = {"host": host, "name": quote(self.name, safe=""), "token": self.product.token("alice"), **query}
        asked.setdefault("agent", self.agent)
        if self.sub:
            asked.setdefault("sub", json.dumps([{"agent": agent, "name": name} for agent, name in self.sub]))
        tab = self._new_tab(label or f"tab {len(self.tabs) + 1}")
        self.tabs.append(tab)
        if liar is not None:
            assert isinstance(tab.page, Page), "liars need a browser"
            tab.page.route_web_socket("**", liar)
        return tab.open(urljoin(self._base, page), is_waiting=is_waiting, **asked)

    def open_two(self) -> tuple[Tab, Tab]:
        """A tab that acts and one that only looks."""
        return self.open("first"), self.open("observer")

    def open_same_origin(self, label: str) -> Tab:
        """Open a tab whose page has the product's own origin, a cookie and no token."""
        tab = self._new_tab(label)
        self.tabs.append(tab)
        assert isinstance(tab.page, Page), "cookies need a browser"
        name, _, value = self.product.sign_in("alice").partition("=")
        tab.page.context.add_cookies([{"name": name, "value": value, "url": self.product.url("/")}])
        with urllib.request.urlopen(urljoin(self._base, self._script), timeout=10) as answer:
            script = answer.read().decode()
        return tab.open_within(self.product.url("/health/live"), script, name=quote(self.name, safe=""))

    def open_after_the_turn(self, label: str) -> Tab:
        """Open a tab once the model has ended its last answer and the turn is settled."""
        self.wait_turn_settled()
        return self.open(label)

    def wait_turn_settled(self) -> None:
        """Wait until the model has ended its last answer and the turn has had its last transaction."""
        wait_for(lambda: has_ended(self.product.provider_log, self.markers[-1]), seconds=20, what="the answer's end")
        wait_for(lambda: not self.open_turns(), seconds=20, what="the turn's end")

    def open_turns(self) -> int:
        """How many turns the server has not ended. No client hears that it was asked."""
        count: int = self.product.call("tests.clients.beside:open_turns", self.name)
        return count

    def close(self, tab: Tab) -> None:
        """Close a tab; it is checked no more."""
        self.tabs.remove(tab)
        tab.page.close()

    def ask(self, tab: Tab, script: str, message_id: str | None = None) -> str:
        """Send a script for the model; returns the text as sent. Every one has a marker of its own."""
        marker = f"{self.name}-{len(self.markers)}"
        self.markers.append(marker)
        text = f"{script}\nmarker: {marker}"
        tab.send(text, message_id)
        return text

    def ask_and_rest(self, tab: Tab, script: str) -> str:
        """Send a script and wait for the end of its turn in that tab."""
        before = len(tab.events("turn-end"))
        text = self.ask(tab, script)
        self._wait_turn_end(tab, before)
        return text

    def do_and_rest(self, tab: Tab, what: str) -> None:
        """Do what begins a turn and wait for its end in that tab."""
        before = len(tab.events("turn-end"))
        tab.do(what)
        self._wait_turn_end(tab, before)

    def _wait_turn_end(self, tab: Tab, before: int) -> None:
        ended = f"harness.events.filter(e => e.kind === 'turn-end').length > {before} && {REST}"
        tab.wait(ended, what="the turn's end")

    # Oracles

    def stored(self) -> list[Json]:
        """The transcript as the server gives it to anybody who asks."""
        path = "/sub/".join(f"{agent}/{quote(name, safe='')}" for agent, name in ((self.agent, self.name), *self.sub))
        url = self.product.url(f"/agents/{path}/get-messages?token={self.product.token('alice')}")
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: list[Json] = json.loads(answer.read())
        return found

    def answers(self) -> list[str]:
        """What the model said to each script of this room."""
        return [answer_of(self.product.provider_log, marker) for marker in self.markers]

    # Checks

    def rest(self, *, seconds: float = 30, clearer: Tab | None = None) -> list[Json]:
        """Wait for rest, then hold every tab to the oracles; returns the stored transcript.

        A tab that clears in mid-stream may show a chunk that was under way to it, until the next frame wipes it.
        """
        for tab in self.tabs:
            tab.wait_rest(seconds=seconds)
        stored = self._wait_steady(time.monotonic() + min(seconds, 5))
        for tab in self.tabs:
            assert outline(tab.messages) == outline(stored), f"{tab.label} did not stay as it was.\n{tab.dump()}"
        answers = self.answers()
        for message in stored:
            if message["role"] == "assistant":
                assert_said(text_of(message), answers, "the stored transcript")
        for tab in self.tabs:
            assert not tab.errors, tab.errors
            assert not tab.events("crash"), tab.events("crash")
            for frames in tab.by_socket():
                check_frames(frames, tab.label)
            try:
                check_renders(tab.seen, answers, tab.label, may_show_ghost=tab is clearer)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{tab.dump()}") from None
        return stored

    def _wait_steady(self, deadline: float) -> list[Json]:
        """Wait until all agree and the server has nothing new after a while.

        A tab that has got nothing of a turn yet is at rest, and agrees with a transcript that lacks its answer.
        """
        while True:
            stored = self._wait_equal(deadline)
            self.tabs[0].page.wait_for_timeout(STEADY_SECONDS * 1000)  # no client says that nothing more will change
            if outline(self.stored()) == outline(stored):
                return stored

    def _wait_equal(self, deadline: float) -> list[Json]:
        while True:
            stored = self.stored()
            unequal = [tab for tab in self.tabs if outline(tab.messages) != outline(stored)]
            if not unequal:
                return stored
            tab = unequal[0]
            assert time.monotonic() < deadline, (
                f"{tab.label} differs from the stored transcript.\nstored {outline(stored)}\n"
                f"shown  {outline(tab.messages)}\n{tab.dump()}"
            )
            tab.page.wait_for_timeout(50)


def outline(messages: list[Json]) -> list[tuple[Any, ...]]:
    """What must be equal everywhere: ids, roles, texts, reasoning, tool calls with their states and results."""
    return [(message["id"], message["role"], *filter(None, map(_part, message["parts"]))) for message in messages]


def _part(part: Json) -> tuple[str, ...] | None:
    kind = part["type"]
    if kind in {"text", "reasoning"}:
        return (kind, part["text"])
    if "toolCallId" in part:
        what = [part.get(key) for key in ("toolCallId", "state", "input", "output", "errorText")]
        return (kind, json.dumps(what, sort_keys=True))
    return None


def assert_said(text: str, answers: list[str], where: str) -> None:
    """The text is the beginning of something that the model said: nothing lost, doubled or mixed."""
    assert any(answer.startswith(text) for answer in answers), f"{where} shows what was never said: {text!r}"


def check_frames(frames: list[tuple[str, Json]], label: str) -> None:
    """Offsets without gaps, nothing of a turn after its `done`, and the transcript before it (wire protocol 5.1)."""
    next_offset: dict[str, int] = {}
    has_transcript: set[str] = set()  # since the last chunk of the request
    ended: set[str] = set()
    was_cleared = False
    for direction, frame in frames:
        was_cleared = was_cleared or frame["type"] == "cf_agent_chat_clear"
        if direction == ">":
            continue
        if frame["type"] == "cf_agent_chat_messages":
            has_transcript |= next_offset.keys()
        if frame["type"] != "cf_agent_use_chat_response":
            continue
        request = frame["id"]
        if frame["done"]:
            assert request not in ended or frame.get("replay"), f"{label} got a second end of {request}"
            is_complete = request in has_transcript or request not in next_offset or frame.get("error")
            assert is_complete or was_cleared, f"{label} got no transcript before the end of {request}"
            ended.add(request)
        elif "seq" in frame:
            assert request not in ended, f"{label} got a chunk of {request} after its end"
            expected = 0 if frame["seq"] == 0 and frame.get("replay") else next_offset.get(request, 0)
            assert frame["seq"] == expected, f"{label} got chunk {frame['seq']} of {request} instead of {expected}"
            next_offset[request] = expected + 1
            has_transcript.discard(request)


def check_renders(seen: list[Json], answers: list[str], label: str, *, may_show_ghost: bool = False) -> None:
    """At no moment was a text shown twice or damaged, an id twice, or an answer without its question."""
    for moment in seen:
        messages = moment["messages"]
        twice = [key for key, count in Counter(message["id"] for message in messages).items() if count > 1]
        assert not twice, f"{label} showed two messages with the id {twice}: {messages}"
        said = [message["text"] for message in messages if message["role"] == "assistant"]
        for text in said:
            assert_said(text, answers, label)
        long = [text for text in said if len(text) > 20]
        assert len(set(long)) == len(long), f"{label} showed the same answer twice: {messages}"
        spoken = sum(bool(text) for text in said)  # an answer of calls alone is followed by the rest of it
        has_questions = may_show_ghost or spoken <= len(messages) - len(said)
        assert has_questions, f"{label} showed an answer without its question: {messages}"
