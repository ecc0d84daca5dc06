"""The manifest of an extension: its name, and what it may do. Read strictly: what is not known is refused.

    {"name": "weather", "version": "1.0.0", "permissions": {"network": ["api.example.org"], "workspace": "read"}}

Nothing is permitted that is not named, apart from the context blocks that the extension itself declares.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.naming import MAX_NAME_CHARS, block_label, prefix_of
from tools_app.errors import ExtensionInvalid

MAX_HOSTS: Final = 50
MAX_LABELS: Final = 50
MAX_BLOCKS: Final = 10
ALL: Final = "all"
OWN: Final = "own"
HOOKS: Final = ("beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk")
"""The hooks that an extension can subscribe to. Only the first has a say in the turn."""

Hook: TypeAlias = Literal["beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk"]
WorkspaceAccess: TypeAlias = Literal["none", "read", "read-write"]
Label: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Host: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\s\x00]+$")]
Labels: TypeAlias = Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS)]
Hosts: TypeAlias = Annotated[tuple[Host, ...], Field(max_length=MAX_HOSTS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ContextPermission(_Strict):
    """Context blocks that may be read and written, by their labels. Its own are always readable."""

    read: Literal["all"] | Labels = ()
    write: Literal["own"] | Labels = OWN


class SessionPermission(_Strict):
    """Access to the conversation. `send_message`: add a message, without a turn; `metadata`: its name and size."""

    send_message: bool = Field(default=False, alias="sendMessage")
    metadata: bool = False


class Permissions(_Strict):
    """The permissions of an extension. `network`: rules as in `docs/howto/fetch-pages.md`, or `all` for every host."""

    network: Literal["all"] | Hosts = ()
    workspace: WorkspaceAccess = "none"
    context: ContextPermission = ContextPermission()
    messages: Literal["none", "read"] = "none"
    session: SessionPermission = SessionPermission()

    @field_validator("network", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        """Booleans are every host and none."""
        if isinstance(value, bool) or value is None:
            return ALL if value else ()
        return value

    def to_json(self) -> JSONObject:
        """The stored form, with the names of a manifest."""
        return self.model_dump(mode="json", by_alias=True)


class BlockDeclaration(_Strict):
    """A context block that the extension brings: a text that models read, and that it writes by `setContext`."""

    label: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}$")]
    description: Annotated[str, StringConstraints(max_length=300)] = ""
    max_tokens: int | None = Field(default=None, alias="maxTokens", ge=1, le=100_000)
    type: Literal["writable"] = "writable"


class Manifest(_Strict):
    """The manifest of one version of an extension."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^[^/\x00-\x1f\x7f]+$")]
    version: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[^\x00-\x1f]+$")]
    description: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] = ""
    permissions: Permissions = Permissions()
    context: Annotated[tuple[BlockDeclaration, ...], Field(max_length=MAX_BLOCKS)] = ()
    hooks: Annotated[tuple[Hook, ...], Field(max_length=len(HOOKS))] = ()

    @property
    def prefix(self) -> str:
        """The prefix of its tools and blocks. Errors: `ExtensionInvalid`."""
        return prefix_of(self.name)

    @property
    def blocks(self) -> dict[str, BlockDeclaration]:
        """Its context blocks by the labels that they have in a conversation."""
        return {block_label(self.prefix, each.label): each for each in self.context}

    def to_json(self) -> JSONObject:
        """The stored form."""
        return self.model_dump(mode="json", by_alias=True)


def parse_manifest(value: object) -> Manifest:
    """Read a manifest. Errors: `ExtensionInvalid`, which names each mistake."""
    if isinstance(value, Manifest):
        return value
    found: Manifest = _parsed(Manifest, value, "manifest")
    labels = [each.label for each in found.context]
    if len(set(labels)) < len(labels):
        raise ExtensionInvalid("Two context blocks of the manifest have the same label.")
    found.prefix  # noqa: B018 - refuses a name without a letter
    return found


def parse_permissions(value: object) -> Permissions:
    """Read permissions. Errors: `ExtensionInvalid`."""
    if isinstance(value, Permissions):
        return value
    found: Permissions = _parsed(Permissions, value, "permissions")
    return found


def _parsed(model: type[BaseModel], value: object, what: str) -> Any:
    if not isinstance(value, Mapping):
        raise ExtensionInvalid(Phrase("The {what} of an extension must be an object.", what=what))
    try:
        return model.model_validate(dict(value))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)[:10]
        lines = "; ".join(f"{'.'.join(str(step) for step in each['loc']) or what}: {each['msg']}" for each in problems)
        raise ExtensionInvalid(Phrase("The {what} is not valid: {problems}", what=what, problems=lines)) from error
