"""Programs that use agents over MCP: the client of the protocol's authors, in both ways in which it connects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.product import Product

MODERN, HANDSHAKE = "auto", "legacy"


def endpoint(product: Product, agent: str = "counter", *, web: int = 0) -> str:
    """Address of an agent for programs."""
    return product.url(f"/mcp/{agent}", web=web)


@asynccontextmanager
async def connected(
    product: Product,
    person: str = "alice",
    *,
    agent: str = "counter",
    mode: Any = MODERN,
    web: int = 0,
    token: str = "",
) -> AsyncIterator[Client]:
    """A connected client of a person's."""
    headers = {"Authorization": f"Bearer {token or product.token(person)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, follow_redirects=True) as http:
        transport = streamable_http_client(endpoint(product, agent, web=web), http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client
