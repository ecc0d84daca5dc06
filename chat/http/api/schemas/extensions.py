"""API schemas of extensions."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input

Source = Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]


class ExtensionToolOut(Schema):
    """A tool of an extension. `name`: as models call it."""

    name: str
    description: str


class ExtensionOut(Schema):
    """An extension. `scope`: the conversation, all of yours (`user`), everybody's (`site`), or the agent's class.

    `runs`: whether conversations have it now: it is enabled, and its source is not disabled by an administrator
    (`is_banned`). `requested`: permissions of its manifest; `granted`: those that it has, within them, and the same in
    words. `number`: of its version, 0 for one of the class. `revision`: changes with its version and with what is
    granted; empty for one of the class. `can_change`: with operations of this address.
    """

    name: str
    version: str
    description: str
    scope: Literal["instance", "user", "site", "static"]
    enabled: bool
    is_banned: bool
    runs: bool
    can_change: bool
    prefix: str
    number: int
    revision: str
    tools: list[ExtensionToolOut]
    hooks: list[str]
    context_labels: list[str]
    requested: dict[str, Any]
    granted: dict[str, Any]
    words: list[str]
    sha256: str
    updated_at: datetime | None


class ExtensionsOut(Schema):
    """Extensions in the order in which they load."""

    items: list[ExtensionOut]


class ExtensionDetailOut(ExtensionOut):
    """An extension with its manifest and its source."""

    manifest: dict[str, Any]
    source: str


class ExtensionIn(Input):
    """An extension to load. `permissions`: what is granted, at most what its manifest asks for, else all of that."""

    manifest: dict[str, Any]
    source: Source
    permissions: dict[str, Any] | None = None


class ExtensionPatch(Input):
    """Changes of an extension; what is left out stays.

    `permissions`: what is granted, at most what the manifest asks for. `source`, `manifest`: a new version; a manifest
    without `permissions` has all of its own granted. `revision`: the one that the change was made from; where it is not
    the present one any more, nothing changes (409, `extension_conflict`).
    """

    revision: Annotated[str, StringConstraints(max_length=64)] | None = None
    enabled: bool | None = None
    permissions: dict[str, Any] | None = None
    manifest: dict[str, Any] | None = None
    source: Source | None = None


class ExtensionVersionOut(Schema):
    """A version. `diff`: of its source against the version before it, unified; empty where there is none."""

    number: int
    version: str
    sha256: str
    via: Literal["model", "api", "code", "admin"]
    author: str | None
    created_at: datetime
    requested: dict[str, Any]
    diff: str


class ExtensionVersionsOut(Schema):
    """The versions that are kept, newest first."""

    items: list[ExtensionVersionOut]


class ExtensionCallOut(Schema):
    """A call of an extension to its host. `during`: the tool or hook that ran; `about`: a path, a label, an address."""

    id: int
    during: str
    method: str
    about: str
    is_refused: bool
    error: str
    turn_id: str
    call_id: str
    created_at: datetime


class ExtensionCallsOut(Schema):
    """Recorded calls, newest first; `next_before` goes on."""

    items: list[ExtensionCallOut]
    next_before: int | None = Field(default=None)
