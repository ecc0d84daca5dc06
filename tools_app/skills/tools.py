"""The tools by which a model uses skills."""

import asyncio
from copy import deepcopy
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.files.reading import shown_size
from tools_app.core.files.workspace import Workspace
from tools_app.core.output_limits import OutputLimit
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import SkillInvalid
from tools_app.file_tools.reading import Wanted, shown
from tools_app.sandbox.conf import sandbox_settings
from tools_app.skills.library import SkillLibrary
from tools_app.skills.scripts import SECONDS, run_script
from tools_app.skills.skill import Skill

ACTIVATE: Final = "activate_skill"
READ: Final = "read_skill_resource"
RUN: Final = "run_skill_script"
TIMEOUT_SECONDS: Final = 30.0
SLACK_SECONDS: Final = 60.0
UNCUT: Final = OutputLimit(lines=None, max_bytes=600_000)
"""For instructions, which count as a whole: they are bounded where they are read."""


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ActivateInput(_Input):
    """Read the instructions of a skill, before you begin with a task that it fits."""

    name: str = Field(description="The skill.")


class ReadInput(_Input):
    """Read a file of a skill, such as one that its instructions mention. Text and documents come with line numbers."""

    name: str = Field(description="The skill.")
    path: str = Field(description="The file, as activate_skill lists it.")
    offset: int | None = Field(default=None, ge=1, description="First line, from 1.")
    limit: int | None = Field(default=None, ge=1, description="Number of lines.")


class RunInput(_Input):
    """Run a script of a skill, for at most 30 seconds and without a network, and get its result."""

    name: str = Field(description="The skill.")
    path: str = Field(description="The script, as activate_skill lists it.")
    input: Any = Field(default=None, description="What the script is given: any JSON.")


def create_skill_tools(library: SkillLibrary, workspace: Workspace | None = None) -> list[Tool]:
    """Make the tools over a library; none for an empty one. Scripts work on the files of the workspace."""
    if not len(library):
        return []

    async def activate(context: ToolContext, name: str) -> JSONObject:
        return await _activated(context, library.get(name))

    async def read(context: ToolContext, name: str, path: str, offset: int | None, limit: int | None) -> Any:
        skill = _noted(context, library.get(name))
        return await _read(skill, path, offset, limit)

    async def run(context: ToolContext, name: str, path: str, input: JSONValue) -> JSONObject:  # noqa: A002 - its name
        skill = _noted(context, library.get(name))
        return await run_script(context, skill, path, input, workspace)

    names = library.names
    longest = SECONDS + sandbox_settings.limits.queue_seconds + SLACK_SECONDS
    return [
        _tool(ACTIVATE, "Read a skill", ActivateInput, activate, names, read_only=True, output_limit=UNCUT),
        _tool(READ, "Read a file of a skill", ReadInput, read, names, read_only=True),
        _tool(RUN, "Run a script of a skill", RunInput, run, names, timeout_seconds=longest, runs_code=True),
    ]


async def _activated(context: ToolContext, skill: Skill) -> JSONObject:
    _noted(context, skill)
    value: JSONObject = {"name": skill.head.name, "instructions": skill.instructions}
    files = await skill.files.list()
    if files:
        value["files"] = [{"path": file.path, "size": shown_size(file.size)} for file in files]
    if skill.head.allowed_tools:
        value["recommendedTools"] = list(skill.head.allowed_tools)
    if skill.head.compatibility:
        value["compatibility"] = skill.head.compatibility
    return value


def _noted(context: ToolContext, skill: Skill) -> Skill:
    context.note_origin(skill.origin, skill.place)
    return skill


async def _read(skill: Skill, path: str, offset: int | None, limit: int | None) -> JSONObject | ToolOutput:
    data = await skill.files.read(path)
    if data is None:
        raise SkillInvalid(f"The skill {skill.head.name!r} has no file {path!r}.")
    return await asyncio.to_thread(shown, Wanted(path=path, offset=offset, limit=limit), data)


def _tool(name: str, title: str, arguments: type[_Input], function: Any, names: list[str], **options: Any) -> Tool:
    schema = deepcopy(json_schema(arguments))
    description = schema.pop("description")
    schema["properties"]["name"]["enum"] = names
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        function=function,
        arguments=arguments,
        context_parameter="context",
        title=title,
        **{"timeout_seconds": TIMEOUT_SECONDS, **options},
    )
