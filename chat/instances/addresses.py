"""Parse a raw URL path into an agent's address; shared by sockets and HTTP.

In a decoded path `c%2Fd` looks like two segments, so the raw path is split first and each segment decoded after.
Pure: knows no database and no class. Source: `docs/reference/protocol.md`, routing.
"""

from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from chat.errors import AgentNotFound

PREFIX = "agents"
_SUB = "sub"
_MAX_NAME = 255
MAX_HOPS = 5
"""How deep sub-agents may lie below a root."""
INBOX = "inbox"
"""Name of an instance that takes part in the room above it: what it is sent there stands in its inbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One `sub/{agent}/{name}` step of a path to a sub-agent, decoded."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The target of a URL. `rest`: decoded segments after the root's name, including the sub-agent markers."""

    agent: str
    name: str
    rest: tuple[str, ...] = ()

    @property
    def hops(self) -> tuple[Hop, ...]:
        """Sub-agents that `rest` starts with, root first; a marker without class and name ends the list."""
        found: list[Hop] = []
        index = 0
        while index + 2 < len(self.rest) and self.rest[index] == _SUB:
            found.append(Hop(agent=self.rest[index + 1], name=self.rest[index + 2]))
            index += 3
        return tuple(found)

    @property
    def tail(self) -> tuple[str, ...]:
        """Segments after the last sub-agent, or after the name where there is none."""
        return self.rest[3 * len(self.hops) :]


def parse_address(raw_path: str | bytes, *, prefix: str = PREFIX) -> Address:
    """Parse the raw (percent-encoded) path of a request or socket, with or without its query.

    Errors: `AgentNotFound` when it names no agent, an empty or impossible name, or bytes that are not UTF-8.
    """
    text = raw_path.decode("latin-1") if isinstance(raw_path, bytes) else raw_path
    segments = text.split("?", 1)[0].strip("/").split("/")
    try:
        start = segments.index(prefix) + 1
    except ValueError:
        raise AgentNotFound from None
    if len(segments) < start + 2:
        raise AgentNotFound
    decoded = [_decode(segment) for segment in segments[start:]]
    agent, name, *rest = decoded
    if not is_root_name(agent) or not is_root_name(name):
        raise AgentNotFound
    address = Address(agent=agent, name=name, rest=tuple(rest))
    if len(address.hops) > MAX_HOPS or not all(is_name(hop.agent) and is_name(hop.name) for hop in address.hops):
        raise AgentNotFound
    return address


def _decode(segment: str) -> str:
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise AgentNotFound from None


def is_name(name: str) -> bool:
    """Whether an instance, or a class, can be called so."""
    if not name or len(name) > _MAX_NAME or name in {".", ".."} or "\x00" in name:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in name)  # no address can carry half a character


def is_root_name(name: str) -> bool:
    """Whether an instance that is no sub-agent can be called so: its address must not read like a sub-agent's."""
    return is_name(name) and name != _SUB
