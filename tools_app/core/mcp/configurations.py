"""Files in which other programs keep their MCP servers: `mcpServers` of Claude and many others, `servers` of VS Code.

Pure, and the only place that reads them. Nothing of a file is run, and no variable is looked up anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.lenient_json import load_lenient, without_extras
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.mcp.variables import Variable, filled, read_inputs, variables_in, with_known
from tools_app.errors import McpServerInvalid

MAX_SERVERS: Final = 100
MAX_CHARS: Final = 262_144
_TABLES: Final = ("mcpServers", "servers", "context_servers")
_URLS: Final = ("url", "httpUrl", "serverUrl")
_NETWORK: Final = frozenset({"http", "https", "streamable-http", "streamablehttp", "streamable_http", "remote"})
_PROGRAM: Final = frozenset({"stdio", "local"})
_READ: Final = frozenset({*_URLS, "name", "type", "transport", "command", "args", "headers", "env", "disabled"})
_WORDS_ONLY: Final = frozenset({"description", "name", "gallery", "version", "enabled", "$schema"})
"""Keys that change nothing about the way to a server."""

_REMOTE: Final = "mcp-remote"
_STARTERS: Final = frozenset({"npx", "bunx", "pnpx", "mcp-remote"})
_OLD_SSE: Final = Phrase(
    "It speaks the older SSE transport, which is not supported. Many of these servers have a newer address that ends"
    " with /mcp: write it with the type http."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedServer:
    """A server as a file describes it, its variables still open.

    `ignored`: keys of the file that change nothing here. `refusal`: why it can never be added, whatever is filled in.
    """

    name: str
    url: str = ""
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_enabled: bool = True
    ignored: tuple[str, ...] = ()
    refusal: Phrase | str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that may have variables."""
        return (self.url, *self.command, *self.headers.values(), *self.env.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All servers of a file, and the inputs that it describes."""

    servers: tuple[PastedServer, ...]
    inputs: Mapping[str, Variable]

    def variables_of(self, server: PastedServer) -> tuple[Variable, ...]:
        """The variables of one server, each once, in the order in which they come."""
        found: dict[str, Variable] = {}
        for text in server.texts if server.refusal is None else ():
            for variable in variables_in(text):
                known = found.get(variable.key) or self.inputs.get(variable.key) or variable
                default = variable.default if known.default is None else known.default
                found[variable.key] = replace(known, default=default)
        return tuple(found.values())

    def spec_of(self, server: PastedServer, values: Mapping[str, str]) -> McpServerSpec:
        """The server with these values. Errors: `McpServerInvalid` for one that is refused, or lacks a value."""
        if server.refusal is not None:
            raise McpServerInvalid(server.refusal)
        return McpServerSpec(
            name=server.name,
            url=filled(server.url, values, self.inputs),
            command=tuple(filled(part, values, self.inputs) for part in server.command),
            headers={name: filled(text, values, self.inputs) for name, text in server.headers.items()},
            env={name: filled(text, values, self.inputs) for name, text in server.env.items()},
        )


def read_configuration(text: str) -> Configuration:
    """Read a file, or the part of one that names servers. Errors: `McpServerInvalid` for what is no such file."""
    if len(text) > MAX_CHARS:
        raise McpServerInvalid(Phrase("A configuration has at most {limit} characters.", limit=MAX_CHARS))
    begin = without_extras(text).lstrip("\ufeff \t\r\n")
    found = load_lenient(f"{{{text}}}" if begin.startswith('"') else text)  # a part of a file, without its braces
    table, inputs = _servers_in(found), found.get("inputs") if isinstance(found, dict) else None
    if len(table) > MAX_SERVERS:
        raise McpServerInvalid(Phrase("A configuration has at most {limit} servers.", limit=MAX_SERVERS))
    if inputs is None and isinstance(found, dict) and isinstance(found.get("mcp"), dict):
        inputs = found["mcp"].get("inputs")
    return Configuration(
        servers=tuple(_server(str(name), entry) for name, entry in table.items()), inputs=read_inputs(inputs)
    )


def _servers_in(found: Any) -> JSONObject:
    """Find the table of servers by name, in each of the ways in which it is written."""
    if isinstance(found, dict):
        if isinstance(found.get("mcp"), dict) and not _is_server(found["mcp"]):
            found = found["mcp"]  # the settings of VS Code
        tables = [found[key] for key in _TABLES if isinstance(found.get(key), dict)]
        if tables:
            merged: JSONObject = {name: entry for table in tables for name, entry in table.items()}
            if not merged:
                raise McpServerInvalid("This configuration names no servers.")
            return merged
        if _is_server(found) and isinstance(found.get("name"), str):
            return {found["name"]: found}
        bare = {name: entry for name, entry in found.items() if name != "inputs"}
        if bare and all(_is_server(entry) for entry in bare.values()):
            return bare
    raise McpServerInvalid(
        'No servers were found. A configuration looks like {"mcpServers": {"name": {"url": "https://…"}}}, or has'
        ' "servers" in place of "mcpServers".'
    )


def _is_server(entry: Any) -> bool:
    return isinstance(entry, dict) and any(isinstance(entry.get(key), str | list) for key in (*_URLS, "command"))


def _server(name: str, entry: Any) -> PastedServer:
    try:
        server = _read_server(name, entry)
        for text in server.texts:
            list(variables_in(text))
    except McpServerInvalid as error:
        return PastedServer(name=name, refusal=error.phrase)
    return server


def _read_server(name: str, entry: Any) -> PastedServer:
    if not isinstance(entry, dict):
        raise McpServerInvalid("It is no object with a url or a command.")
    command = _command(entry)
    urls = [entry[key] for key in _URLS if isinstance(entry.get(key), str) and entry[key]]
    kind = next((entry[key] for key in ("type", "transport") if isinstance(entry.get(key), str)), "").lower()
    _check_kind(kind, has_url=bool(urls), has_command=bool(command))
    server = PastedServer(
        name=name,
        url=urls[0] if urls else "",
        command=command,
        headers=_texts(entry.get("headers"), "headers") if urls else {},
        env=_texts(entry.get("env"), "env") if command else {},
        is_enabled=entry.get("disabled") is not True and entry.get("enabled") is not False,
    )
    unused = {"env"} if urls else {"headers"}
    known = (_READ - unused) | _WORDS_ONLY
    server = replace(server, ignored=tuple(str(key) for key in entry if key not in known and entry[key]))
    return _without_bridge(server) or server


def _check_kind(kind: str, *, has_url: bool, has_command: bool) -> None:
    """Refuse what is no way that is known, or does not fit what is given."""
    if kind == "sse":
        raise McpServerInvalid(_OLD_SSE)
    if kind and kind not in _NETWORK | _PROGRAM:
        raise McpServerInvalid(Phrase("Its type is not known: {type!r}. Known are http and stdio.", type=kind[:100]))
    if has_url and has_command:
        raise McpServerInvalid("It has a url and a command. Keep one of them.")
    if not has_url and not has_command:
        raise McpServerInvalid("It has neither a url nor a command.")
    if kind and (kind in _NETWORK) is not has_url:
        raise McpServerInvalid(Phrase("Its type {type!r} does not fit what is given.", type=kind))


def _command(entry: JSONObject) -> tuple[str, ...]:
    command, arguments = entry.get("command"), entry.get("args") or []
    parts = [*(command if isinstance(command, list) else [command] if command else []), *_listed(arguments)]
    if not command:
        return ()
    if any(isinstance(part, list | dict) or part is None for part in parts):
        raise McpServerInvalid("Its args are no list of texts.")
    return tuple(_text(part) for part in parts)


def _listed(arguments: Any) -> list[Any]:
    if not isinstance(arguments, list):
        raise McpServerInvalid("Its args are no list of texts.")
    return arguments


def _texts(found: Any, key: str) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict) or any(isinstance(value, list | dict) or value is None for value in found.values()):
        raise McpServerInvalid(Phrase("Its {key} are no texts by name.", key=key))
    return {str(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    """A text, also of numbers and yes or no, which many write without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _without_bridge(server: PastedServer) -> PastedServer | None:
    """A server that a file reaches through the program `mcp-remote`: we go to its address ourselves."""
    parts = _after_starter(server.command)
    if parts is None or not parts or not parts[0].startswith(("https://", "http://", "${")):
        return None
    url, *options = parts
    headers: dict[str, str] = {}
    for option, value in zip(options, [*options[1:], ""], strict=True):
        if option == "--transport" and value == "sse-only":
            raise McpServerInvalid(_OLD_SSE)
        if option == "--header":
            name, _colon, text = value.partition(":")
            headers[name.strip()] = with_known(text.strip(), server.env)
    return replace(server, url=with_known(url, server.env), command=(), env={}, headers=headers)


def _after_starter(command: Sequence[str]) -> list[str] | None:
    """The arguments of `mcp-remote`, where the command starts it."""
    parts = list(command)
    if len(parts) > 2 and _program(parts[0]) == "cmd" and parts[1].lower() == "/c":  # on Windows
        parts = parts[2:]
    if not parts or _program(parts[0]) not in _STARTERS:
        return None
    if _program(parts[0]) == _REMOTE:
        return parts[1:]
    package = next((number for number, part in enumerate(parts[1:], 1) if not part.startswith("-")), 0)
    if not package or parts[package].partition("@")[0] != _REMOTE:
        return None
    return parts[package + 1 :]


def _program(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    return name.removesuffix(".cmd").removesuffix(".exe")
