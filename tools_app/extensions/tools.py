"""Tools of extensions, as a turn has them."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.code.names import identifier
from tools_app.core.extensions.naming import tool_description, tool_name
from tools_app.core.extensions.permissions import only_reads
from tools_app.core.extensions.surface import ToolSurface
from tools_app.core.schema_check import problems
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import ToolInputInvalid
from tools_app.extensions.bridge import HostBridge
from tools_app.extensions.host import ExtensionPlace, HostServices
from tools_app.extensions.loaded import LoadedExtension
from tools_app.extensions.runs import run_tool
from tools_app.sandbox.conf import sandbox_settings

SLACK_SECONDS: Final = 30.0


def extension_tools(
    extensions: Iterable[LoadedExtension], services: HostServices, place: ExtensionPlace, *, taken: Collection[str] = ()
) -> list[Tool]:
    """The tools of extensions, in load order. `taken`: names that are others' already, which no extension gets.

    Of two tools of one name the first stays. Names that are one in code (`a-b` and `a_b`) are one here.
    """
    made: dict[str, Tool] = {}
    others = {identifier(name) for name in taken}
    for extension in extensions:
        for surface in extension.surface.tools:
            name = tool_name(extension.prefix, surface.name)
            if identifier(name) not in others and name not in made:
                made[name] = _tool(extension, surface, services, place)
    return list(made.values())


def _tool(extension: LoadedExtension, surface: ToolSurface, services: HostServices, place: ExtensionPlace) -> Tool:
    """A tool. What may happen beyond this installation is never done twice: it does not run again after a crash."""

    async def run(context: ToolContext, input: JSONObject) -> JSONValue:  # noqa: A002 - how tools with a schema are called
        wrong = problems(input, surface.input_schema)
        if wrong:
            lines = "\n".join(f"- {line}" for line in wrong)
            raise ToolInputInvalid(f"Invalid input for tool {context.tool_name!r}:\n{lines}")
        bridge = HostBridge(
            extension=extension,
            services=services,
            place=replace(place, turn_id=context.turn_id or place.turn_id, call_id=context.call_id),
            during=context.tool_name,
            note_origin=context.note_origin,
            check_egress=context.check_egress,
        )
        return await run_tool(bridge, surface.name, input)

    granted = extension.granted
    return Tool(
        name=tool_name(extension.prefix, surface.name),
        description=tool_description(extension.name, surface.description),
        input_schema=surface.input_schema,
        function=run,
        timeout_seconds=sandbox_settings.limits.seconds + sandbox_settings.limits.queue_seconds + SLACK_SECONDS,
        reruns=not granted.network and not granted.session.send_message,
        context_parameter="context",
        read_only=only_reads(granted, extension.manifest),
        open_world=bool(granted.network),
        runs_code=True,
    )
