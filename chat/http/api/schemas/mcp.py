"""API schemas of MCP servers."""

from typing import Annotated, Literal

from ninja import Field, Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input, Text
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.mcp.configurations import MAX_CHARS, MAX_SERVERS

ServerName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]+$")]
ServerUrl = Annotated[str, StringConstraints(min_length=1, max_length=4_000, pattern=r"^[^\x00-\x20]+$")]
HeaderValue = Annotated[str, StringConstraints(max_length=8_000, pattern=r"^[^\x00\r\n]*$")]


ClientText = Annotated[str, StringConstraints(max_length=2_000, pattern=r"^[\x20-\x7e]*$")]


_PLAIN = r"^[^\x00-\x1f]+$"


class McpServerIn(Input):
    """A server of the network. `headers` and `client_secret` are stored encrypted, and never shown again.

    `client_id`, `client_secret`: for sign-ins, where you have registered this site at the authorization server by hand.
    """

    name: ServerName
    url: ServerUrl
    headers: Annotated[dict[str, HeaderValue], Field(max_length=32)] = {}
    client_id: ClientText = ""
    client_secret: ClientText = ""


class McpServerPatch(Input):
    """Changes of a server; what is left out stays. `accept`: the `fingerprint` of the tools that a person has seen.

    A new `client_id` forgets the secret of the former one; an empty one, both.
    """

    enabled: bool | None = None
    trusted: bool | None = None
    accept: Text | None = None
    client_id: ClientText | None = None
    client_secret: ClientText | None = None


class McpImportIn(Input):
    """A pasted configuration: `mcpServers` of Claude and others, or `servers` of VS Code, with its comments.

    `values`: of its variables, by their keys. `names`: the servers that are meant; all without it. Nothing is added
    unless `confirmed` is true.
    """

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CHARS)]
    values: Annotated[dict[str, HeaderValue], Field(max_length=500)] = {}
    names: Annotated[list[str], Field(max_length=MAX_SERVERS)] | None = None
    confirmed: bool = False


class McpContentIn(Input):
    """The wanted content: the URI of a resource, or the name of a prompt with its arguments; one of the two."""

    resource: Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=_PLAIN)] | None = None
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_PLAIN)] | None = None
    arguments: Annotated[dict[str, Annotated[str, StringConstraints(max_length=8_000)]], Field(max_length=32)] = {}


class McpFileOut(Schema):
    """A part of a content that is no text. `bytes`: its size."""

    name: str
    bytes: int


class McpContentOut(Schema):
    """A content that a worker reads from a server; text and names are a stranger's.

    `state`: `reading` until there is something; `failed` with an `error`. `is_cut`: there is more text than is shown.
    """

    id: str
    state: Literal["reading", "read", "failed"]
    text: str = ""
    is_cut: bool = False
    files: list[McpFileOut] = []
    error: str | None = None


class McpToolOut(Schema):
    """A tool of a server. `accepted`: whether it is as a person accepted it; others are not offered to models."""

    name: str
    title: str
    description: str
    input_schema: JSONObject
    read_only: bool | None
    accepted: bool


class McpSkippedOut(Schema):
    """A tool that cannot be offered, and why."""

    name: str
    reason: str


class McpVariableOut(Schema):
    """A value that a configuration leaves open: `${NAME}`, or an input of VS Code, whose `key` begins with `input:`.

    `default`: what is taken without a value; null where one is needed. `options`: the values to choose from.
    """

    key: str
    description: str
    secret: bool
    default: str | None
    options: list[str]


class McpImportedOut(Schema):
    """A server of a configuration. `address`: its URL without the query, or its command, variables not filled in.

    `state`: `new` can be added; `incomplete` lacks the values in `missing`, which are some of its `variables`;
    `exists` is there and stays as it is; `refused` cannot be added, with the `reason`; `added`. `exposed`: secrets in
    the address, which is not stored encrypted. `ignored`: keys of the configuration without effect here. `id`: of the
    server, where there is one.
    """

    name: str
    transport: Literal["http", "stdio"]
    address: str
    state: Literal["new", "incomplete", "exists", "refused", "added"]
    reason: str
    enabled: bool
    headers: list[str]
    variables: list[str]
    missing: list[str]
    exposed: list[str]
    ignored: list[str]
    id: str | None


class McpImportOut(Schema):
    """A configuration as it was understood, and how many of its servers were added."""

    added: int
    servers: list[McpImportedOut]
    variables: list[McpVariableOut]


class McpServerOut(Schema):
    """A server as its user sees it; nothing secret. `auth_url`: the address at which a person signs in.

    `signed_in`: whether the user has done so. `scope`: whose conversations have it. `can_change`: whether you may
    change and remove it. `reviewed`: whether a person has accepted its tools; until then their descriptions set the
    injection guard of conversations. `error` and texts of tools are a stranger's. `client_id`: of this site at the
    authorization server, where it was registered by hand; `redirect_url`: the address to register. `allowed_issuer`:
    what an administrator has allowed for sign-ins at this server.
    """

    id: str
    name: str
    scope: Literal["instance", "user", "site"]
    transport: Literal["http", "stdio"]
    url: str
    state: Literal["authenticating", "connecting", "connected", "discovering", "ready", "failed", "not-connected"]
    enabled: bool
    trusted: bool
    reviewed: bool
    can_change: bool
    auth_url: str | None
    signed_in: bool
    client_id: str
    redirect_url: str
    allowed_issuer: str
    error: str | None
    instructions: str | None
    fingerprint: str
    tools: list[McpToolOut]
    prompts: list[JSONObject]
    resources: list[JSONObject]
    skipped: list[McpSkippedOut]
