"""The tools of MCP servers as a turn has them: made from the catalogues that are kept, without a connection.

The first call connects. Whatever a server returns is a stranger's text and marked as such.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.loading import load
from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.catalogue import tool_name, unaccepted
from tools_app.core.mcp.results import prompt_output, resource_output, tool_output
from tools_app.core.mcp.sampling import Sampler
from tools_app.core.origins import Origin
from tools_app.core.schema_check import SchemaCheck
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import ToolError, ToolInputInvalid
from tools_app.mcp.answers import ServerError, to_json
from tools_app.mcp.conf import mcp_settings
from tools_app.mcp.pool import Target, pool
from tools_app.models.mcp import McpServer

if TYPE_CHECKING:
    from mcp.client import Client

    from tools_app.mcp.asking import Questions

READ_RESOURCE: Final = "read_mcp_resource"
LIST_RESOURCES: Final = "list_mcp_resources"
GET_PROMPT: Final = "get_mcp_prompt"
LISTED: Final = 100
_MARGIN_SECONDS: Final = 5.0


def mcp_tools(targets: Sequence[Target], *, sampler: Sampler | None = None) -> list[Tool]:
    """The tools of these servers, and those for their resources and prompts where they have any.

    Servers that a person has to sign in at are left out by the caller. A tool that is new or was changed since a
    person accepted it is left out, unless its server is trusted.
    """
    tools: list[Tool] = []
    for target in targets:
        catalogue = target.server.catalogue or {}
        held_back = () if target.server.is_trusted else unaccepted(catalogue, target.server.accepted or {})
        offered = (item for item in catalogue.get("tools", ()) if item["name"] not in held_back)
        tools += [_tool(target, item, sampler) for item in offered]
    by_id = {target.server.pk: target for target in targets}
    return [*tools, *_resource_tools(by_id), *_prompt_tools(by_id)]


def _tool(target: Target, item: JSONObject, sampler: Sampler | None) -> Tool:
    server, hints = target.server, item.get("annotations") or {}
    is_believed = server.is_trusted
    read_only = is_believed and hints.get("readOnlyHint") is True
    schema = SchemaCheck(item["inputSchema"])

    async def call(value: JSONObject, context: ToolContext) -> ToolOutput:
        _check(item["name"], schema, value)
        return await _call(target, item["name"], value, context, sampler)

    return _made(
        name=tool_name(server.pk, item["name"]),
        title=f"{item.get('title') or item['name']} ({server.name})",
        description=item.get("description") or "",
        input_schema=item["inputSchema"],
        function=call,
        read_only=read_only,
        reruns=read_only or (is_believed and hints.get("idempotentHint") is True),
        open_world=not (is_believed and hints.get("openWorldHint") is False),
    )


async def _call(
    target: Target, name: str, value: JSONObject, context: ToolContext, sampler: Sampler | None
) -> ToolOutput:
    await load("tools_app.mcp.asking")
    from tools_app.mcp.asking import Questions  # noqa: PLC0415 - it needs the protocol's package

    questions = Questions(target.server.name, context, sampler)

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown: JSONObject = {"progress": progress} if total is None else {"progress": progress, "total": total}
        context.progress(metadata={**shown, "message": message[:200]} if message else shown)

    async def send(client: "Client") -> Any:
        meta: Any = {"think/idempotencyKey": context.idempotency_key}
        return await client.call_tool(name, value, progress_callback=note, meta=meta)

    result = await _request(target, context, send, questions)
    await questions.settle()
    return tool_output(to_json(result))


async def _request(
    target: Target,
    context: ToolContext,
    make: Callable[["Client"], Awaitable[Any]],
    questions: "Questions | None" = None,
) -> Any:
    """Ask a server. Errors: `ToolError` for the model, with the server's own words where it gave any."""
    context.note_origin(Origin.MCP, target.server.name)
    try:
        return await pool().request(target, make, None if questions is None else questions.answer)
    except ServerError as error:
        raise ToolError(
            Phrase("The MCP server {name!r} says: {text}", name=target.server.name, text=error.message[:2_000])
        ) from error


def _resource_tools(targets: dict[str, Target]) -> list[Tool]:
    having = {
        key: target
        for key, target in targets.items()
        if (target.server.catalogue or {}).get("resources") or (target.server.catalogue or {}).get("templates")
    }
    if not having:
        return []

    async def list_resources(value: JSONObject, context: ToolContext) -> list[JSONObject]:
        chosen = [_target_of(having, value)] if value.get("server") else list(having.values())
        for target in chosen:
            context.note_origin(Origin.MCP, target.server.name)
        return [entry for target in chosen for entry in _listed(target.server)][:LISTED]

    async def read_resource(value: JSONObject, context: ToolContext) -> ToolOutput:
        target, uri = _target_of(having, value), str(value.get("uri", ""))
        result = await _request(target, context, lambda client: client.read_resource(uri))
        return resource_output(to_json(result))

    return [
        _made(
            name=LIST_RESOURCES,
            title="List resources",
            description=f"List what MCP servers have to be read. Servers: {_names(having)}.",
            input_schema=_schema({"server": _ID}, required=()),
            function=list_resources,
            read_only=True,
            reruns=True,
            open_world=False,
        ),
        _made(
            name=READ_RESOURCE,
            title="Read a resource",
            description="Read a resource of an MCP server, by its URI. What it says was written by others.",
            input_schema=_schema(
                {"server": _ID, "uri": {"type": "string", "maxLength": 2_000}}, required=("server", "uri")
            ),
            function=read_resource,
            read_only=True,
            reruns=True,
        ),
    ]


def _prompt_tools(targets: dict[str, Target]) -> list[Tool]:
    having = {key: target for key, target in targets.items() if (target.server.catalogue or {}).get("prompts")}
    if not having:
        return []

    async def get_prompt(value: JSONObject, context: ToolContext) -> ToolOutput:
        target, name = _target_of(having, value), str(value.get("name", ""))
        given = value.get("arguments") or {}
        arguments = {str(key): str(text) for key, text in given.items()}
        result = await _request(target, context, lambda client: client.get_prompt(name, arguments or None))
        return prompt_output(to_json(result))

    listed = [
        f"{prompt['name']} of {key}"
        for key, target in having.items()
        for prompt in (target.server.catalogue or {}).get("prompts", ())
    ]
    schema = _schema(
        {"server": _ID, "name": {"type": "string"}, "arguments": {"type": "object"}}, required=("server", "name")
    )
    return [
        _made(
            name=GET_PROMPT,
            title="Get a prompt",
            description=f"Get a prompt that an MCP server has prepared: {', '.join(listed)[:1_000]}.",
            input_schema=schema,
            function=get_prompt,
            read_only=True,
            reruns=True,
        )
    ]


def _made(function: Callable[[JSONObject, ToolContext], Awaitable[Any]], **fields: Any) -> Tool:
    """A tool of this function, whose text is a stranger's."""

    async def run(input: JSONObject, context: ToolContext) -> Any:  # noqa: A002 - the name that `Tool.parse` gives
        return await function(input, context)

    return Tool(
        function=run,
        context_parameter="context",
        timeout_seconds=mcp_settings.call_seconds + mcp_settings.opening_seconds + _MARGIN_SECONDS,
        origin=Origin.MCP,
        **{"open_world": True, **fields, "title": " ".join(str(fields["title"]).split())[:80]},
    )


_ID: Final[JSONObject] = {"type": "string", "description": "The id of the server."}


def _schema(properties: JSONObject, *, required: Sequence[str]) -> JSONObject:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _check(name: str, schema: SchemaCheck, value: JSONObject) -> None:
    """Errors: `ToolInputInvalid` with what is wrong, before anything is sent."""
    wrong = schema.problems(value)
    if wrong:
        raise ToolInputInvalid(f"The input does not fit {name}: {'; '.join(wrong)}")


def _target_of(targets: dict[str, Target], value: JSONObject) -> Target:
    target = targets.get(str(value.get("server", "")))
    if target is None:
        raise ToolError(f"There is no such server; there are {_names(targets)}.")
    return target


def _names(targets: dict[str, Target]) -> str:
    return ", ".join(f"{key} ({target.server.name})" for key, target in targets.items())[:1_000]


def _listed(server: McpServer) -> list[JSONObject]:
    catalogue = server.catalogue or {}
    return [{"server": server.pk, **entry} for kind in ("resources", "templates") for entry in catalogue.get(kind, ())]
