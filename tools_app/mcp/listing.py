"""Reads all that a server offers, page by page, within bounds."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.mcp.catalogue import Listed
from tools_app.mcp.answers import to_json
from tools_app.mcp.odd_items import SET_ASIDE

MAX_PAGES: Final = 20


async def list_all(client: Client) -> Listed:
    """List tools, prompts and resources. What a server does not offer is empty. Errors: `MCPError` for its tools."""
    capabilities = client.server_capabilities
    odd_tools: list[Any] = []
    odd_others: list[Any] = []
    tools = await _pages(client.list_tools, "tools", odd_tools) if capabilities.tools is not None else []
    prompts = await _if_offered(client.list_prompts, "prompts", capabilities.prompts, odd_others)
    resources = await _if_offered(client.list_resources, "resources", capabilities.resources, odd_others)
    templates = await _if_offered(
        client.list_resource_templates, "resource_templates", capabilities.resources, odd_others
    )
    return Listed(
        tools=tools,
        odd_tools=odd_tools,
        odd_others=odd_others,
        prompts=prompts,
        resources=resources,
        templates=templates,
        instructions=client.instructions or "",
        capabilities=to_json(capabilities),
    )


async def _if_offered(
    read: Callable[..., Awaitable[Any]], field: str, capability: object, odd: list[Any]
) -> list[JSONObject]:
    if capability is None:
        return []
    try:
        return await _pages(read, field, odd)
    except MCPError as error:
        if error.error.code != types.METHOD_NOT_FOUND:
            raise
        return []  # servers say that they have resources, and do not know of templates


async def _pages(read: Callable[..., Awaitable[Any]], field: str, odd: list[Any]) -> list[JSONObject]:
    """Read all pages. `odd`: gets the items that were set aside as they arrived."""
    found: list[JSONObject] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await read(cursor=cursor)
        found += [to_json(item) for item in getattr(page, field)]
        odd += (page.meta or {}).get(SET_ASIDE, ())
        cursor = page.next_cursor
        if not cursor:
            break
    return found
