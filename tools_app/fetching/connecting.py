"""Connections that reach only addresses that were checked.

A name is resolved once. All its addresses are checked, the connection is made to one of them, and before the request
is sent the address at its other end is checked again. A name that resolves differently the next time changes nothing.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tools_app.fetching.addresses import Address, Network, parse_address
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, checked_addresses

MAX_TRIED: Final = 4


async def open_checked(
    url: URL, resolver: Resolve, private: Sequence[Network], *, seconds: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a plain connection to the host of a URL, whose addresses are checked before and after. Errors: as above."""
    checked = await checked_addresses(url, resolver, private)
    for address in checked[:MAX_TRIED]:
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(str(address), url.port)
        except OSError:  # a timeout is one
            continue
        peer = writer.get_extra_info("peername")
        if parse_address(str(peer[0])) not in checked:
            writer.close()
            raise FetchFailed("disallowed_url", "The connection led to an address that was not checked.")
        return reader, writer
    raise FetchFailed("request_failed", f"The host {url.raw_host} could not be reached.", url=str(url))


class PinnedConnector(aiohttp.TCPConnector):
    """Connects to checked addresses only, whatever the name resolves to. For one request."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._checked = frozenset(addresses)
        super().__init__(
            resolver=_Pinned(addresses),
            use_dns_cache=False,
            force_close=True,
            limit=1,
            socket_factory=self._socket,
        )

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, and check the other end before anything is sent. Errors: `FetchFailed`."""
        connection = await super().connect(*args, **kwargs)
        try:
            transport = connection.transport
            self._check(transport.get_extra_info("peername") if transport is not None else None)
        except FetchFailed:
            connection.close()
            raise
        return connection

    def _socket(self, info: Any) -> socket.socket:
        """Make the socket for an address that is about to be connected to."""
        self._check(info[4])
        made = socket.socket(family=info[0], type=info[1], proto=info[2])
        made.setblocking(False)
        return made

    def _check(self, peer: Any) -> None:
        address = parse_address(str(peer[0])) if isinstance(peer, tuple) and peer else None
        if address not in self._checked:
            raise FetchFailed("disallowed_url", "The connection led to an address that was not checked.")


class _Pinned(AbstractResolver):
    """Answers with the addresses that were checked."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002
    ) -> list[ResolveResult]:
        """All of them: what family is asked for does not matter."""
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""
