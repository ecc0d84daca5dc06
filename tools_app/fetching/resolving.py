"""Names of hosts, resolved once, and their addresses, which are all checked."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from yarl import URL

from tools_app.fetching.addresses import Address, Network, is_allowed, parse_address
from tools_app.fetching.errors import FetchFailed

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
"""Resolves a host name to its addresses. Errors: `OSError`."""

MAX_ADDRESSES: Final = 64


async def resolve(host: str) -> Sequence[str]:
    """Resolve by the operating system. Errors: `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def checked_addresses(url: URL, resolver: Resolve, private: Sequence[Network]) -> list[Address]:
    """Resolve the host of a URL. Errors: `FetchFailed` if there is none, or if any is not public nor allowed."""
    host = url.raw_host or ""
    literal = parse_address(host)
    try:
        texts = [host] if literal is not None else list(await resolver(host))[:MAX_ADDRESSES]
    except (OSError, UnicodeError):
        texts = []
    if not texts:
        raise FetchFailed("request_failed", f"The host {host} is not known.", url=str(url))
    addresses = [parse_address(text) for text in texts]
    checked = [address for address in addresses if address is not None and is_allowed(address, private)]
    if len(checked) < len(addresses):
        raise FetchFailed("disallowed_url", f"The host {host} has an address that is not public.", url=str(url))
    return checked
