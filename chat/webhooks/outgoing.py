"""Requests of a webhook's receiver to its server: no other address, and by the guard of addresses."""

from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.fetching.addresses import private_networks
from tools_app.fetching.urls import check_allowed, checked_url, parse_rules
from tools_app.fetching.values import Answered, FetchLimits, Outgoing
from tools_app.mcp.conf import mcp_settings

LIMITS: Final = FetchLimits(seconds=10.0, max_bytes=256 * 1024, max_redirects=0)


class ServerLine:
    """The way to one server. `server`: its origin, as in `https://streams.example.org`.

    Errors of its requests: `FetchFailed`, before anything is sent for another origin or an address that is not public
    (but for `THINK_MCP_PRIVATE_NETWORKS`), and for redirects.
    """

    def __init__(self, server: str) -> None:
        url = checked_url(server)
        self._rules = parse_rules([f"{url.scheme}://{url.host_subcomponent}:{url.port}"])

    def check(self, address: str) -> None:
        """Errors: `FetchFailed` for an address of another server."""
        check_allowed(checked_url(address), self._rules)

    async def get(self, address: str) -> Answered:
        """Read a page of the server. Errors: `FetchFailed`, for a status other than 2xx, too."""
        return await self._send(Outgoing(url=address, redirect="error"), only_success=True)

    async def post(self, address: str, body: JSONObject, token: str) -> Answered:
        """Post JSON with a bearer token, and give the answer, whatever its status."""
        headers = (("Content-Type", "application/json"), ("Authorization", f"Bearer {token}"))
        data = dump(body).encode()
        return await self._send(
            Outgoing(url=address, method="POST", headers=headers, body=data, redirect="error"), only_success=False
        )

    async def _send(self, request: Outgoing, *, only_success: bool) -> Answered:
        from tools_app.fetching.exchange import Exchange  # noqa: PLC0415 - loads aiohttp, which few processes need

        exchange = Exchange(
            self._rules,
            limits=LIMITS,
            private=private_networks(mcp_settings.private_networks),
            only_success=only_success,
            user_agent="ThinkForDjango-webhook/1",
        )
        return await exchange.send(request)
