"""Files of other programs that name MCP servers, as people paste them."""

import json
from typing import Any

import pytest

from tools_app.core.mcp.configurations import MAX_CHARS, MAX_SERVERS, Configuration, PastedServer, read_configuration
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.errors import McpServerInvalid

CLAUDE = """{
  "mcpServers": {
    "docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_KEY}"}},
    "files": {"command": "npx", "args": ["-y", "server-files", "${HOME:-/srv}"], "env": {"LEVEL": 3, "DRY": true}}
  }
}"""
VS_CODE = """\ufeff{
  // Asked once, and kept by the editor.
  "inputs": [
    {"type": "promptString", "id": "key", "description": "Key of the docs", "password": true},
    {"type": "pickString", "id": "region", "description": "Region", "options": ["eu", {"label": "US", "value": "us"}],
     "default": "eu"},
  ],
  "servers": {
    "docs": {
      "type": "http",
      "url": "https://${input:region}.example.com/mcp", /* by region */
      "headers": {"X-Key": "${input:key}", "X-Who": "${env:WHO}"},
    },
  },
}"""


def only(entry: Any) -> PastedServer:
    (server,) = read_configuration(json.dumps({"mcpServers": {"one": entry}})).servers
    return server


def spec(text: str, **values: str) -> McpServerSpec:
    found = read_configuration(text)
    return found.spec_of(found.servers[0], values)


def test_claude() -> None:
    found = read_configuration(CLAUDE)
    docs, files = found.servers
    assert [variable.key for variable in found.variables_of(docs)] == ["DOCS_KEY"]
    assert found.spec_of(docs, {"DOCS_KEY": "s3cret"}) == McpServerSpec(
        name="docs", url="https://docs.example.com/mcp", headers={"Authorization": "Bearer s3cret"}
    )
    assert [(variable.key, variable.default) for variable in found.variables_of(files)] == [("HOME", "/srv")]
    assert found.spec_of(files, {}) == McpServerSpec(
        name="files", command=("npx", "-y", "server-files", "/srv"), env={"LEVEL": "3", "DRY": "true"}
    )


def test_vs_code_with_comments_last_commas_and_inputs() -> None:
    found = read_configuration(VS_CODE)
    region, key, who = found.variables_of(found.servers[0])
    assert (region.key, region.default, region.options, region.is_secret) == ("input:region", "eu", ("eu", "us"), False)
    assert (key.key, key.description, key.is_secret, key.default) == ("input:key", "Key of the docs", True, None)
    assert (who.key, who.is_secret) == ("WHO", True)
    made = found.spec_of(found.servers[0], {"input:key": "k", "WHO": "Ada"})
    assert (made.url, made.headers) == ("https://eu.example.com/mcp", {"X-Key": "k", "X-Who": "Ada"})


@pytest.mark.parametrize(
    "text",
    [
        '{"mcp": {"servers": {"a": {"url": "https://a.example"}}}}',
        '{"a": {"url": "https://a.example"}}',
        '"mcpServers": {"a": {"url": "https://a.example"}}',
        '// mine\n"a": {"url": "https://a.example"},',
        '{"name": "a", "url": "https://a.example"}',
        '{"servers": {"a": {"serverUrl": "https://a.example", "type": "streamable-http"}}, "theme": "dark"}',
        '{"mcpServers": {"a": {"httpUrl": "https://a.example", "timeout": 0}}}',
    ],
)
def test_ways_to_write_it(text: str) -> None:
    assert spec(text) == McpServerSpec(name="a", url="https://a.example")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ('{"mcpServers": {\n  "a": {url: 1}}}', "line 2, column 9"),
        ('{"mcpServers": {"a": {"url": "https://x"}, "a": {"url": "https://y"}}}', "'a' is there twice"),
        ('{"mcpServers": {}}', "names no servers"),
        ("[]", "No servers were found"),
        ('{"theme": "dark"}', "No servers were found"),
        ('{"url": "https://a.example"}', "No servers were found"),
        ('{"a":' * 50_000, "nested too deeply"),
        ('{"mcpServers": {"a": NaN}}', "a number that is none"),
        ('"' + "x" * MAX_CHARS, "at most"),
        (
            json.dumps({"servers": {str(n): {"url": "https://x"} for n in range(MAX_SERVERS + 1)}}),
            "at most 100 servers",
        ),
    ],
)
def test_no_such_file(text: str, words: str) -> None:
    with pytest.raises(McpServerInvalid, match=words):
        read_configuration(text)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("npx", "no object"),
        ({}, "neither"),
        ({"url": "https://a.example", "command": "npx"}, "Keep one"),
        ({"type": "sse", "url": "https://a.example/sse"}, "older SSE"),
        ({"type": "ws", "url": "wss://a.example"}, "not known: 'ws'"),
        ({"type": "stdio", "url": "https://a.example"}, "does not fit"),
        ({"type": "http", "command": "npx"}, "does not fit"),
        ({"command": "npx", "args": "-y x"}, "args"),
        ({"command": "npx", "args": [{"a": 1}]}, "args"),
        ({"command": "npx", "env": {"A": None}}, "env"),
        ({"url": "https://a.example", "headers": ["X: y"]}, "headers"),
        ({"command": "${workspaceFolder}/x", "args": ["${command:pick}"]}, r"knows \$\{command:pick\}"),
        ({"command": "npx", "args": ["mcp-remote", "https://a.example/sse", "--transport", "sse-only"]}, "older SSE"),
    ],
)
def test_a_server_that_cannot_be_says_why_and_leaves_the_others(entry: Any, words: str) -> None:
    found = read_configuration(json.dumps({"servers": {"bad": entry, "good": {"url": "https://a.example"}}}))
    bad, good = found.servers
    assert good.refusal is None
    with pytest.raises(McpServerInvalid, match=words):
        found.spec_of(bad, {})
    assert found.variables_of(bad) == ()


@pytest.mark.parametrize(
    "command",
    [
        ["npx", "-y", "mcp-remote@latest", "https://a.example/mcp", "--header", "Authorization:${AUTH}"],
        ["cmd", "/c", "npx", "mcp-remote", "https://a.example/mcp", "9696", "--header", "Authorization: ${AUTH}"],
        [r"C:\node\npx.cmd", "mcp-remote", "https://a.example/mcp", "--header", "Authorization: ${AUTH}", "--debug"],
        ["/usr/bin/mcp-remote", "https://a.example/mcp", "--header", "Authorization: ${AUTH}"],
    ],
)
def test_a_bridge_to_an_address_is_the_address(command: list[str]) -> None:
    server = only({"command": command[0], "args": command[1:], "env": {"AUTH": "Bearer ${KEY}"}})
    assert (server.url, server.command, server.env) == ("https://a.example/mcp", (), {})
    assert server.headers == {"Authorization": "Bearer ${KEY}"}


@pytest.mark.parametrize("command", [["npx", "-y", "other", "mcp-remote", "https://a.example"], ["npx", "mcp-remote"]])
def test_other_programs_stay_programs(command: list[str]) -> None:
    assert only({"command": command[0], "args": command[1:]}).command == tuple(command)


def test_what_is_passed_over_is_named() -> None:
    server = only({"command": "x", "cwd": "/srv", "envFile": ".env", "headers": {"A": "b"}, "timeout": 0, "name": "n"})
    assert server.ignored == ("cwd", "envFile", "headers")
    assert only({"url": "https://a.example", "env": {"A": "b"}, "alwaysAllow": ["x"]}).ignored == ("env", "alwaysAllow")


@pytest.mark.parametrize(
    ("entry", "is_enabled"), [({}, True), ({"disabled": True}, False), ({"enabled": False}, False)]
)
def test_disabled_servers_stay_disabled(entry: dict[str, Any], is_enabled: bool) -> None:
    assert only({"url": "https://a.example", **entry}).is_enabled is is_enabled


def test_a_missing_value_is_named_and_an_empty_one_is_missing() -> None:
    found: Configuration = read_configuration(CLAUDE)
    for values in ({}, {"DOCS_KEY": ""}):
        with pytest.raises(McpServerInvalid, match="DOCS_KEY"):
            found.spec_of(found.servers[0], values)


def test_defaults_are_those_of_their_places() -> None:
    entry = {"command": "x", "args": ["${A:-1}", "${A:-}", "${env:A:-http://h:1/}"]}
    assert spec(json.dumps({"servers": {"a": entry}})).command == ("x", "1", "", "http://h:1/")
    assert spec(json.dumps({"servers": {"a": entry}}), A="v").command == ("x", "v", "v", "v")


def test_no_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_KEY", "of the machine")
    with pytest.raises(McpServerInvalid, match="DOCS_KEY"):
        spec(CLAUDE)
