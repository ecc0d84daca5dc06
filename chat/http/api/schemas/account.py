"""API schemas of a person's account: tokens, the browsers that are signed in, the export and the end of it all."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from chat.http.api.schemas.common import Input, Title
from chat.http.api.schemas.mcp import McpServerOut


class TokenIn(Input):
    """A new token. `days`: how long it works; null: until it is revoked. `scopes`: empty: it may all that you may."""

    name: Title
    days: Annotated[int, Field(ge=1, le=3650)] | None = None
    scopes: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=20)] = []


class TokenOut(Schema):
    """A token that works. `prefix`: how its secret begins."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None


class NewTokenOut(TokenOut):
    """A token that was made just now, with its secret, which is nowhere else."""

    secret: str


class BrowserOut(Schema):
    """A browser that is signed in. `browser` and `system`: names, empty where they are not known.

    `seen_at`: within some minutes. `is_current`: it makes this request.
    """

    id: str
    browser: str
    system: str
    created_at: datetime
    seen_at: datetime
    is_current: bool


class BrowsersOut(Schema):
    """The last used first. `is_known`: false where this site keeps sessions in cookies alone, which are not listed."""

    items: list[BrowserOut]
    is_known: bool


class SignedOut(Schema):
    """The number of browsers that were signed out."""

    count: int


class AccountOut(Schema):
    """Your account, and what would go with it. `has_password`: false where a sign-in of a moment ago stands for one.

    `is_fresh`: the sign-in of this browser is that young. `memberships`: conversations of others that you would leave.
    """

    name: str
    has_password: bool
    is_fresh: bool
    conversations: int
    files: int
    file_bytes: int
    workspaces: int
    memberships: int
    is_last_administrator: bool


class AccountDeleteIn(Input):
    """Your password; empty for an account without one."""

    password: Annotated[str, Field(max_length=4_096)] = ""


class DataExportOut(Schema):
    """An export of everything. `status`: `writing`, `ready` or `failed`. `done` of `total` pieces are written.

    `expires_at`: when it is removed.
    """

    id: str
    status: str
    done: int
    total: int
    byte_size: int
    created_at: datetime
    expires_at: datetime


class DataExportsOut(Schema):
    """There is one export at most: a new one takes the place of the former."""

    items: list[DataExportOut]


class ProviderKeyIn(Input):
    """A key for a provider."""

    key: Annotated[str, Field(min_length=1, max_length=1_000)]


class ProviderKeyOut(Schema):
    """A stored key. `ending`: its last characters. `outcome` of the last trial: `works`, `refused`, `unreachable`."""

    ending: str
    created_at: datetime
    tried_at: datetime | None
    outcome: str


class ProviderOut(Schema):
    """A provider for which you may use a key of your own. `models`: those of it that this site offers to choose."""

    provider: str
    models: list[str]
    key: ProviderKeyOut | None


class PlacedServerOut(Schema):
    """An MCP server. `instance_id`: the conversation that has it, with its title; empty: all, or everybody's."""

    server: McpServerOut
    instance_id: str
    title: str


class PlacedExtensionOut(Schema):
    """An extension of yours. `instance_id`: the conversation that has it, with its title; empty: all of yours.

    `is_banned`: an administrator has disabled its source.
    """

    name: str
    description: str
    scope: Literal["instance", "user"]
    enabled: bool
    is_banned: bool
    instance_id: str
    title: str
