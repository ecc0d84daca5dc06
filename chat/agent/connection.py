"""`ClientConnection`: one client's socket, as the hooks of an agent get it."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class SendText(Protocol):
    """Sends one text frame."""

    def __call__(self, text: str, /) -> Awaitable[None]:
        """Return when the frame was handed to the server."""


class CloseSocket(Protocol):
    """Closes a socket."""

    def __call__(self, code: int, reason: str, /) -> Awaitable[None]:
        """Return when the socket is closing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientConnection:
    """A client's connection to an instance. It is hashable and equal to itself alone.

    `id` labels the connection and is never a credential. `query` has what the client wrote into its address, less its
    token and label; any client may write anything there.
    """

    id: str
    query: Mapping[str, str]
    sender: SendText = field(repr=False)
    closer: CloseSocket = field(repr=False)

    async def send(self, text: str) -> None:
        """Send one text frame."""
        await self.sender(text)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the socket."""
        await self.closer(code, reason)
