"""The parity pages have a row for each option and return value of the published hooks, read from their declarations."""

import re

import pytest

from tests.clients.bundle import DIST
from tests.house.parity_page import text_of_pages

pytestmark = pytest.mark.smoke

_COMMENT = re.compile(r"/\*.*?\*/ ?", re.DOTALL)
_KEY = re.compile(r"^(?P<indent> +)(?:readonly )?(?P<name>\w+)\??:", re.MULTILINE)
_AGENTS = "agents/dist"
_CHAT = f"{_AGENTS}/chat/react.d.ts"
_HOOK = f"{_AGENTS}/react.d.ts"
_EVENTS = "declare function useAgentToolEvents"


def declared(path: str) -> str:
    """A file of declarations, without its comments."""
    return _COMMENT.sub("", (DIST / "sdk7/node_modules" / path).read_text(encoding="utf-8"))


def block(path: str, begin: str, end: str) -> str:
    text = declared(path)
    start = text.index(begin)
    return text[start : text.index(end, start + len(begin))]


def keys(text: str) -> set[str]:
    """The outermost keys of a block of declarations."""
    found = [(len(match["indent"]), match["name"]) for match in _KEY.finditer(text)]
    least = min(indent for indent, _ in found)
    return {name for indent, name in found if indent == least}


def transport() -> str:
    [path] = (DIST / "sdk7/node_modules" / _AGENTS).glob("ws-chat-transport-*.d.ts")
    return f"{_AGENTS}/{path.name}"


def helpers() -> set[str]:
    """What `useChat` returns: some keys are picked by name from a class."""
    text = block("@ai-sdk/react/dist/index.d.ts", "type UseChatHelpers", ";\nexport type")
    return keys(text) | set(re.findall(r"'(\w+)'", text))


def surface() -> dict[str, set[str]]:
    chat = keys(block(_CHAT, "type UseAgentChatOptions", "\n};"))
    chat |= keys(block("ai/dist/index.d.ts", "interface ChatInit<", "\n}")) | {"resume", "throttle"}
    chat |= helpers() | keys(block(_CHAT, '"addToolOutput"> & {', "\n};"))
    agent = keys(block(_HOOK, "type UseAgentOptions", "\n  };")) | keys(
        block(_HOOK, "type TerminalReconnectOptions", "\n};")
    )
    agent |= keys(block(_HOOK, 'Omit<PartySocket, "path"> & {', "\n};"))
    runs = keys(block(_HOOK, f"{_EVENTS}<", "}): {")) | keys(block(_HOOK, "}): {\n  runsById", "\n};"))
    exports = set(
        re.findall(
            r"^  (?!type )(\w+),?$", block("@cloudflare/ai-chat/dist/react.d.ts", "export {", "};"), re.MULTILINE
        )
    )
    return {
        "useAgentChat": chat,
        "useAgent": agent,
        "useAgentToolEvents": runs | {"getRunsForToolCall", "resetLocalState"},
        "WebSocketChatTransport": keys(block(transport(), "type WebSocketChatTransportOptions", "\n  };")),
        "exports": exports - {"useAgentChat"},
    }


def listed(group: str) -> set[str]:
    text = text_of_pages()
    return set(re.findall(rf"^\| H\.{group}\.(\w+) \|", text, re.MULTILINE))


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    "group", ["useAgentChat", "useAgent", "useAgentToolEvents", "WebSocketChatTransport", "exports"]
)
def test_every_option_and_return_value_is_listed(group: str) -> None:
    assert sorted(surface()[group] - listed(group)) == []
