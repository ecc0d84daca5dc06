"""Messages to servers that people name: webhooks, push services. One request, no redirect, public addresses alone."""

from typing import Final

from yarl import URL

from tools_app.fetching.addresses import private_networks
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import checked_addresses, resolve
from tools_app.fetching.urls import checked_url, parse_rules
from tools_app.fetching.values import Answered, FetchLimits, Outgoing

LIMITS: Final = FetchLimits(seconds=10.0, max_bytes=64 * 1024, max_redirects=0)


async def check_receiver(text: str, networks: list[str] | tuple[str, ...]) -> URL:
    """The address of a receiver. `networks`: private ones that are allowed here, where plain HTTP is, too.

    Errors: `FetchFailed` for an address that is not public, or plain HTTP to one that is.
    """
    url = checked_url(text)
    private = private_networks(networks)
    addresses = await checked_addresses(url, resolve, private)
    if url.scheme != "https" and not all(any(each in network for network in private) for each in addresses):
        raise FetchFailed("disallowed_url", "The address has to begin with https://.")
    return url


async def post(
    text: str, body: bytes, headers: tuple[tuple[str, str], ...], *, networks: list[str] | tuple[str, ...], sender: str
) -> Answered:
    """Send a message. `sender`: the name in `User-Agent`. Errors: `FetchFailed`, for any status but 2xx as well."""
    url = await check_receiver(text, networks)
    from tools_app.fetching.exchange import Exchange  # noqa: PLC0415 - loads aiohttp, which few processes need

    exchange = Exchange(
        parse_rules([f"{url.scheme}://{url.host_subcomponent}:{url.port}"]),
        limits=LIMITS,
        private=private_networks(networks),
        only_success=True,
        user_agent=sender,
    )
    return await exchange.send(Outgoing(url=text, method="POST", headers=headers, body=body, redirect="error"))
