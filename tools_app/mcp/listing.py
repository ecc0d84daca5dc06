"""Reads all that a server offers, page by page, within bounds."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.mcp.catalogue import ODD, Listed
from tools_app.mcp.answers import to_json
from tools_app.mcp.odd_items import SET_ASIDE

MAX_PAGES: Final = 500
MAX_ITEMS: Final = 5_000
MORE: Final = "the list goes on; the rest was not read"
"""The reason with which a list that is cut is named."""


async def list_all(client: Client) -> Listed:
    """List tools, prompts and resources. What a server does not offer is empty.

    Tools are asked for though a server does not say that it has any: some forget to.
    Errors: `MCPError` and `ValidationError` for its tools. A list of anything else that fails is named in `failed`.
    """
    capabilities = client.server_capabilities
    odd_tools: list[Any] = []
    odd_others: list[Any] = []
    failed: dict[str, str] = {}

    async def others(
        read: Callable[..., Awaitable[Any]], field: str, capability: object, odd: list[Any] = odd_others
    ) -> list[JSONObject]:
        try:
            return [] if capability is None else await _pages(read, field, odd, failed)
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED:
                raise
            if error.error.code != types.METHOD_NOT_FOUND:  # they say that they have resources, and know no templates
                failed[field] = error.error.message
        except ValidationError:
            failed[field] = ODD
        return []

    if capabilities.tools is not None:
        tools = await _pages(client.list_tools, "tools", odd_tools, failed)
    else:
        tools = await others(client.list_tools, "tools", client, odd_tools)
        failed.pop("tools", None)
    return Listed(
        tools=tools,
        odd_tools=odd_tools,
        odd_others=odd_others,
        prompts=await others(client.list_prompts, "prompts", capabilities.prompts),
        resources=await others(client.list_resources, "resources", capabilities.resources),
        templates=await others(client.list_resource_templates, "resource_templates", capabilities.resources),
        failed=failed,
        instructions=client.instructions or "",
        capabilities=to_json(capabilities),
    )


async def _pages(
    read: Callable[..., Awaitable[Any]], field: str, odd: list[Any], failed: dict[str, str]
) -> list[JSONObject]:
    """Read all pages. `odd`: gets the items that were set aside as they arrived. `failed`: that a list is cut."""
    found: list[JSONObject] = []
    cursors: set[str | None] = set()
    cursor: str | None = None
    while cursor not in cursors:  # a server may answer with a cursor that it gave before
        if len(cursors) == MAX_PAGES or len(found) >= MAX_ITEMS:
            failed[field] = MORE
            break
        cursors.add(cursor)
        page = await read(cursor=cursor)
        found += [to_json(item) for item in getattr(page, field)]
        odd += (page.meta or {}).get(SET_ASIDE, ())
        cursor = page.next_cursor or None
        if cursor is None:
            break
    return found
