"""The tools with which a model loads an extension that it wrote, and lists those there are.

A person confirms every load, and reads what the extension will be able to do. Unloading is for people.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.extensions.manifest import Hook, Manifest, parse_manifest
from tools_app.core.extensions.permissions import in_words
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.extensions.loaded import LoadedExtension
from tools_app.sandbox.conf import sandbox_settings

LOAD: Final = "load_extension"
LIST: Final = "list_extensions"
NEXT: Final = "Its tools can be called from the next turn on."


class Load(Protocol):
    """Loads an extension and gives it as `listed` does. `replaces`: a call that was cut may have loaded it."""

    def __call__(self, manifest: Manifest, source: str, *, replaces: bool) -> Awaitable[JSONObject]:
        """Load it."""


List: TypeAlias = Callable[[], Awaitable[list[JSONObject]]]
"""Gives the extensions, each as `listed` does."""


class BlockInput(BaseModel):
    """A context block: a text that you read in the system prompt, and that the extension writes."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    label: str
    description: str = ""
    maxTokens: Annotated[int | None, Field(ge=1, le=100_000)] = None  # noqa: N815 - the name in a manifest


class LoadInput(BaseModel):
    """Load an extension: JavaScript that adds tools. A person has to approve it. Usable from the next turn on.

    `source` is an object expression:
    ({ tools: { add: { description: "Add", parameters: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"], execute: async ({ a, b }, host) => ({ result: a + b }) } } })

    The tools are called `<name>_<tool>`. Each call runs alone: nothing is kept between calls, except what the code
    stores by `await host.setContext(label, text)` or `await host.writeFile(path, text)`. `host` also has readFile,
    deleteFile, listFiles, getContext, getMessages, sendMessage and getSessionInfo. `fetch` reaches the hosts in
    `network` only. Ask for the least that is needed.
    """

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="Letters, digits and hyphens.", max_length=40)]
    version: Annotated[str, Field(max_length=40)] = "1.0.0"
    description: Annotated[str, Field(max_length=500)] = ""
    source: Annotated[str, Field(description="The object expression.", max_length=400_000)]
    network: Annotated[
        list[str] | bool, Field(description="Hosts to reach, as api.example.org or *.example.org; none by default.")
    ] = False
    workspace_access: Literal["none", "read", "read-write"] = "none"
    context: list[BlockInput] = Field(default=[], description="Context blocks that it adds.")
    read_context: Annotated[
        Literal["all"] | list[str], Field(description="Labels of other context blocks that it reads.")
    ] = Field(default=[])
    messages: Annotated[Literal["none", "read"], Field(description="Whether it reads the conversation.")] = "none"
    send_messages: Annotated[bool, Field(description="Whether it adds messages to the conversation.")] = False
    session_info: Annotated[bool, Field(description="Whether it sees the conversation's name and size.")] = False
    hooks: Annotated[list[Hook], Field(description="The hooks in the source, all of them.")] = Field(default=[])


class NoInput(BaseModel):
    """List the extensions of this conversation with their tools."""

    model_config = ConfigDict(extra="forbid")


def load_tools(load: Load, list_loaded: List) -> list[Tool]:
    """Make both tools. `load`: loads what a person has approved, in this conversation."""

    async def load_extension(tool_context: ToolContext, **given: Any) -> JSONObject:
        made = LoadInput(**given)
        manifest = manifest_of(made.model_dump(mode="json"))
        loaded = await load(manifest, made.source, replaces=tool_context.attempt > 1)
        return {"loaded": True, **loaded, "message": f"{loaded['name']} is loaded. {NEXT}"}

    async def list_extensions() -> JSONObject:
        found = await list_loaded()
        return {"count": len(found), "extensions": found}

    return [
        Tool(
            name=LOAD,
            description=LoadInput.__doc__ or "",
            input_schema=_schema(LoadInput),
            function=load_extension,
            arguments=LoadInput,
            context_parameter="tool_context",
            timeout_seconds=sandbox_settings.limits.queue_seconds + 60.0,
            needs_approval=True,
            title=_("Load an extension"),
            approval_text=question,
            check=lambda given, _context: manifest_of(given),
        ),
        Tool(
            name=LIST,
            description=NoInput.__doc__ or "",
            input_schema=_schema(NoInput),
            function=list_extensions,
            arguments=NoInput,
            read_only=True,
        ),
    ]


def question(given: JSONObject) -> str:
    """The sentences that a person confirms: what the extension will be able to do. The source is shown beside them."""
    try:
        manifest = manifest_of(given)
    except ThinkError as error:
        return _("This extension cannot be loaded: %(error)s") % {"error": error.message}
    name = manifest.name.replace("\n", " ")
    words = " ".join(str(each) for each in in_words(manifest.permissions, manifest))
    return _("Load the extension “%(name)s”, which runs the code below? %(words)s") % {"name": name, "words": words}


def manifest_of(given: JSONObject) -> Manifest:
    """The manifest of a call's arguments. Errors: `ExtensionInvalid`."""
    permissions = {
        "network": given.get("network", False),
        "workspace": given.get("workspace_access", "none"),
        "context": {"read": given.get("read_context", [])},
        "messages": given.get("messages", "none"),
        "session": {"sendMessage": given.get("send_messages", False), "metadata": given.get("session_info", False)},
    }
    return parse_manifest(
        {
            "name": given.get("name", ""),
            "version": given.get("version", "1.0.0"),
            "description": given.get("description", ""),
            "permissions": permissions,
            "context": given.get("context", []),
            "hooks": given.get("hooks", []),
        }
    )


def listed(extension: LoadedExtension) -> JSONObject:
    """An extension as models and code read it."""
    return {
        "name": extension.name,
        "version": extension.manifest.version,
        "description": extension.manifest.description,
        "prefix": extension.prefix,
        "scope": extension.level,
        "tools": list(extension.tool_names),
        "hooks": list(extension.surface.hooks),
        "contextLabels": list(extension.manifest.blocks),
        "permissions": extension.granted.to_json(),
    }


def _schema(model: type[BaseModel]) -> JSONObject:
    schema = json_schema(model)
    schema.pop("description", None)
    return schema
