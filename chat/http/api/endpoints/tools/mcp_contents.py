"""API operations that show what MCP servers have to read: resources and prompts, of any server that a user has.

A worker reads, since web processes hold no connections; the caller asks again until it has.
"""

from django.http import HttpRequest
from ninja import Router, Status

from chat.errors import InputInvalid
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.mcp import McpContentIn, McpContentOut
from chat.mcp_servers.changes import find_reading, read_soon
from fibers.core.states import TERMINAL
from fibers.models import Fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.errors import McpUnavailable
from tools_app.mcp import selectors

router = Router(tags=["mcp"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])


@router.post(
    "/mcp-servers/{server_id}/contents",
    response={202: McpContentOut},
    operation_id="read_mcp_content",
    openapi_extra=declares(403, 404, 429),
)
async def content_read(request: HttpRequest, server_id: str, data: McpContentIn) -> object:
    """Have a resource or a prompt read, of a server of yours, of one of your conversations or of the site."""
    user_id = caller_of(request).user.pk
    wanted = _wanted(data)
    fiber = await db(lambda: read_soon(selectors.find_own(server_id, user_id), user_id, wanted))
    return Status(202, _shown(fiber))


@router.get("/mcp-servers/{server_id}/contents/{content_id}", response=McpContentOut, operation_id="get_mcp_content")
async def content_get(request: HttpRequest, server_id: str, content_id: str) -> McpContentOut:
    """The content, once it is read. It is kept for some time."""
    user_id = caller_of(request).user.pk

    def read() -> Fiber:
        server = selectors.find_own(server_id, user_id)
        return find_reading(content_id, server.pk, user_id)

    return _shown(await db(read))


def _wanted(data: McpContentIn) -> JSONObject:
    if (data.resource is None) == (data.prompt is None) or (data.arguments and data.prompt is None):
        raise InputInvalid("Name a resource, or a prompt with its arguments.")
    if data.resource is not None:
        return {"resource": data.resource}
    return {"prompt": data.prompt, "arguments": data.arguments}


def _shown(fiber: Fiber) -> McpContentOut:
    if fiber.status not in TERMINAL:
        return McpContentOut(id=fiber.pk, state="reading")
    found = fiber.result if isinstance(fiber.result, dict) else {"error": McpUnavailable().message}
    return McpContentOut(id=fiber.pk, state="failed" if "error" in found else "read", **found)
