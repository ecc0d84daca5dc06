"""The ways in which a page talks to the server: which AI SDK, over which transport (docs/reference/clients.md).

Transports: `hook` (the agents' `useAgentChat`), `socket` (`useChat` over the published `WebSocketChatTransport`) and
`http` (`useChat` over its own `DefaultChatTransport`) and `sdk` (`useChat` over its own `WebSocketChatTransport`, which
AI SDK 6 does not have). The tab that looks on always has the hook.
"""

import pytest

from tests.clients.room import Room, outline
from tests.clients.tab import Json, Tab

BROKEN = "stream 60 words at 40/s\nerror in stream after 30 chunks code context_length_exceeded"
BUSY = "for (const end = Date.now() + 2000; Date.now() < end;);"
"""Keeps a page busy: frames that come meanwhile reach its clients at once."""

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])
HTTP = pytest.mark.parametrize(("line", "transport"), [("sdk7", "http"), ("sdk6", "http")])
SOCKET = pytest.mark.parametrize(("line", "transport"), [("sdk7", "socket"), ("sdk6", "socket")])
USE_CHAT = pytest.mark.parametrize(
    ("line", "transport"), [("sdk7", "http"), ("sdk6", "http"), ("sdk7", "socket"), ("sdk6", "socket"), ("sdk7", "sdk")]
)
EVERY_WAY = pytest.mark.parametrize(
    ("line", "transport"),
    [("sdk7", "hook"), ("sdk6", "hook"), ("sdk7", "http"), ("sdk6", "http"), ("sdk7", "socket"), ("sdk6", "socket")],
)
PAGE = {"hook": "index.html", "http": "use-chat.html", "socket": "use-chat.html"}


def enter(room: Room, transport: str, label: str = "first", **query: str | int) -> Tab:
    """Open a tab that talks over a transport."""
    return room.open(label, page=PAGE.get(transport, "use-chat.html"), transport=transport, **query)  # type: ignore[arg-type]  # `port`


def look_on(room: Room) -> Tab:
    """Open a tab that only looks on: it has the hook and learns of everything."""
    return room.open("observer", page=PAGE["hook"])


def flat(messages: list[Json]) -> list[object]:
    """What a person reads, whatever message it stands in: `useChat` shows an answer and its continuation as one."""
    return [part for _id, role, *parts in outline(messages) for part in [role, *parts] if part != "assistant"]


def holds(room: Room, count: int) -> bool:
    """Whether so many messages are stored."""
    return len(room.stored()) == count


def shows_all(room: Room, tab: Tab) -> bool:
    """Whether a tab shows what is stored."""
    return outline(tab.messages) == outline(room.stored())
