"""The protocol: one server object for one request, bound to its caller, in the transport of the protocol's authors.

Revisions with a handshake are served without sessions, too. Their clients cancel with a message of its own, which may
reach another process. So such a client is given a session id, which names its running requests and nothing else
(`cancelling.py`).
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping, MutableMapping
from typing import Any

import mcp_types as types
from django.conf import settings
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from chat.agent.think import Think
from chat.http.api.router import VERSION
from chat.http.mcp import calls, resources, tools
from chat.http.mcp.callers import McpCaller
from chat.http.mcp.cancelling import SESSION, watch_cancellations
from chat.http.oauth.addresses import offered_agents, title_of
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


async def serve(caller: McpCaller, scope: Any, receive: Any, send: Any) -> None:
    """Serve one POST. Errors of the protocol are answers of the protocol."""
    left = asyncio.Event()
    limit = int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 2**24)
    manager = StreamableHTTPSessionManager(_server(caller, left), stateless=True, max_request_body_size=limit)
    session = dict(scope["headers"]).get(SESSION.encode())
    if session is not None:
        receive = watch_cancellations(caller, session.decode("latin-1"), receive)

    async def receive_until_left() -> MutableMapping[str, Any]:
        message: MutableMapping[str, Any] = await receive()
        if message["type"] == "http.disconnect":
            left.set()
        return message

    async def send_with_session(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200 and session is None:
            given = (SESSION.encode(), secrets.token_urlsafe(24).encode())
            message = {**message, "headers": [*message["headers"], given]}
        await send(message)

    async with manager.run():
        await manager.handle_request(scope, receive_until_left, send_with_session)


def _server(caller: McpCaller, left: asyncio.Event) -> Server[Any]:
    agent_class = offered_agents()[caller.agent]
    handlers = _Handlers(caller, left)
    served: Server[Any] = Server(
        caller.agent,
        version=VERSION,
        title=title_of(caller.agent),
        instructions=_instructions(agent_class),
        get_tool_input_schema=lambda _name: None,  # none of them asks for headers
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )
    served.middleware.append(_Boundary())
    return served


def _instructions(agent_class: type[Think]) -> str:
    title = str(agent_class.title or agent_class.route_name())
    return f"`chat` asks {title}. Name a conversation to go on in it; its history is a resource."


class _Boundary:
    """The errors that programs see: those of the protocol, and the words of the product's own.

    Of any other the protocol's package would send the text, in revisions with a handshake.
    """

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Handle one message."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except ThinkError as error:
            raise MCPError(
                types.INTERNAL_ERROR, translate(error.phrase), {"error": error.code, **error.data}
            ) from error
        except Exception as error:  # what was raised may be a path, a query, a secret
            logger.exception("request failed", extra={"action": "mcp_request_failed", "method": ctx.method})
            raise MCPError(types.INTERNAL_ERROR, "Something went wrong.") from error


class _Handlers:
    """The requests of one caller. `left` is set when the connection is gone."""

    def __init__(self, caller: McpCaller, left: asyncio.Event) -> None:
        self._caller = caller
        self._left = left

    async def list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await tools.list_tools(self._caller))

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        request = calls.Request(caller=self._caller, context=context, left=self._left)
        return await calls.call_tool(request, params.name, params.arguments or {})

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await resources.list_resources(self._caller, None if params is None else params.cursor)

    async def list_resource_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.templates(self._caller)

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await resources.read_resource(self._caller, params.uri)
