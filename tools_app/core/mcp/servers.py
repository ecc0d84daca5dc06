"""MCP servers as developers declare them and as code and people see them. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from tools_app.errors import McpServerInvalid

MAX_NAME_CHARS: Final = 100
MAX_HEADERS: Final = 32
MAX_SECRET_CHARS: Final = 8_000
MAX_ARGUMENTS: Final = 64
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_CLIENT: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]{0,1998}[\x21-\x7e])?)?")  # RFC 6749, appendix A
_ISSUER: Final = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]{0,1000})?")  # RFC 8414, section 2
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type", "accept"})


class McpTransport(StrEnum):
    """The way to a server: over the network, or a program on the machine of the workers."""

    HTTP = "http"
    STDIO = "stdio"


class McpScope(StrEnum):
    """The conversations that have a server: one, all of a user, or all of the site."""

    INSTANCE = "instance"
    USER = "user"
    SITE = "site"


class McpState(StrEnum):
    """The state of a server, in the words of the wire."""

    NOT_CONNECTED = "not-connected"
    CONNECTING = "connecting"
    AUTHENTICATING = "authenticating"  # a person has to sign in
    READY = "ready"  # its catalogue is known; connections are made when a tool is called
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSpec:
    """A server to be used: `url`, or the `command` of a program with its arguments and `env`.

    `headers` and `env` may hold secrets: they are stored encrypted and never shown. `is_trusted`: whether what the
    server says of its own tools is believed, and changes of its tools are taken without asking.

    For sign-ins: `client_id` and `client_secret` where this site was registered at the authorization server by hand.
    `allowed_issuer`: an issuer that is accepted for this server though its addresses do not fit together.
    """

    name: str
    url: str = ""
    command: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_trusted: bool = False
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    allowed_issuer: str = ""

    @property
    def transport(self) -> McpTransport:
        """The way to it."""
        return McpTransport.STDIO if self.command else McpTransport.HTTP

    @property
    def config_hash(self) -> str:
        """Equal for equal ways to the same server with the same secrets."""
        return fingerprint([self.url, list(self.command), dict(self.headers), dict(self.env)])


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerView:
    """A server as code, the API and frames see it; nothing secret.

    `auth_url`: where a person signs in, a path of this site. `skipped`: tools that cannot be offered, each with its
    reason. `unaccepted`: names of tools that are new or changed since a person accepted the server's tools.
    `is_reviewed`: whether a person ever did; until then its descriptions set the injection guard. `client_id`: of the
    registration by hand; its secret is not shown. `allowed_issuer`: what an administrator has allowed for sign-ins.
    """

    id: str
    name: str
    scope: McpScope
    transport: McpTransport
    url: str
    state: McpState
    is_enabled: bool
    is_trusted: bool
    is_declared: bool
    is_reviewed: bool
    auth_url: str | None
    error: str | None
    instructions: str | None
    capabilities: JSONObject
    tools: tuple[JSONObject, ...]
    prompts: tuple[JSONObject, ...]
    resources: tuple[JSONObject, ...]
    skipped: tuple[JSONObject, ...]
    unaccepted: tuple[str, ...]
    client_id: str = ""
    allowed_issuer: str = ""


def check_spec(spec: McpServerSpec) -> McpServerSpec:
    """Refuse a declaration that cannot be meant. Whether its URL may be reached is decided elsewhere.

    Errors: `McpServerInvalid`.
    """
    if not spec.name.strip() or len(spec.name) > MAX_NAME_CHARS or not spec.name.isprintable():
        raise McpServerInvalid(f"A server has a name of 1 to {MAX_NAME_CHARS} characters.")
    if bool(spec.url) == bool(spec.command):
        raise McpServerInvalid("A server has a URL or a command, and not both.")
    if len(spec.command) > MAX_ARGUMENTS:
        raise McpServerInvalid(f"A command is a list of a program and its arguments, at most {MAX_ARGUMENTS}.")
    if any("\0" in part for part in spec.command) or (spec.command and not spec.command[0]):
        raise McpServerInvalid("The program and its arguments are texts without a zero character.")
    _check_values(spec.headers, _HEADER, "header")
    _check_values(spec.env, _VARIABLE, "variable")
    if any(name.lower() in _OURS for name in spec.headers):
        raise McpServerInvalid("A header that the connection itself sets cannot be given.")
    if spec.headers and spec.command:
        raise McpServerInvalid("A program takes variables, not headers.")
    if spec.env and spec.url:
        raise McpServerInvalid("A server of the network takes headers, not variables.")
    _check_sign_in(spec)
    return spec


def _check_sign_in(spec: McpServerSpec) -> None:
    if (spec.client_id or spec.client_secret or spec.allowed_issuer) and spec.command:
        raise McpServerInvalid("Nobody signs in at a server that is a program.")
    if spec.client_secret and not spec.client_id:
        raise McpServerInvalid("A client secret belongs to a client ID. Give both.")
    if not _CLIENT.fullmatch(spec.client_id) or not _CLIENT.fullmatch(spec.client_secret):
        raise McpServerInvalid("A client ID and its secret are printable ASCII characters without spaces around them.")
    if spec.allowed_issuer and not _ISSUER.fullmatch(spec.allowed_issuer):
        raise McpServerInvalid("An issuer is an address that begins with https, without a question mark or a fragment.")


def _check_values(values: Mapping[str, str], names: re.Pattern[str], kind: str) -> None:
    if len(values) > MAX_HEADERS:
        raise McpServerInvalid(f"At most {MAX_HEADERS} of a kind can be given: {kind}.")
    for name, value in values.items():
        if not names.fullmatch(name):
            raise McpServerInvalid(f"This is no name of a {kind}: {name[:100]!r}")
        if len(value) > MAX_SECRET_CHARS or any(char in value for char in "\r\n\0"):
            raise McpServerInvalid(f"The {kind} {name} has a value that cannot be sent.")  # which is not repeated
