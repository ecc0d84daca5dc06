"""Find functions by words and read their types, where all types would be too long to show a model at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.code.names import identifiers
from tools_app.core.code.schema_types import declaration, namespace
from tools_app.core.tool import Tool
from tools_app.errors import CodeInvalid, ToolNotFound

SHOWN_CHARS: Final = 12_000
MAX_FOUND: Final = 20
HOW_TO_FIND: Final = (
    "declare const codemode: {\n"
    "  /** Find functions by words: names with descriptions, best first. */\n"
    "  search(input: { query: string; limit?: number }): Promise<Array<{ name: string; description: string }>>;\n"
    "  /** Read the type of a function by its name. */\n"
    "  describe(input: { name: string }): Promise<string>;\n"
    "};"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of the code's world: its path (`tools.search`) and its declaration."""

    path: str
    description: str
    declared: str


class Catalogue:
    """The functions that a script may call, in namespaces."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        by_name = {tool.name: tool for tool in tools}
        self._tools = {text: by_name[name] for text, name in identifiers(by_name).items()}
        self._functions = [
            Function(
                path=f"tools.{text}",
                description=tool.description,
                declared=declaration(tool.name, tool.description, tool.input_schema),
            )
            for text, tool in self._tools.items()
        ]

    def tool(self, path: str) -> Tool:
        """The tool behind `tools.name`. Errors: `ToolNotFound`."""
        name = path.removeprefix("tools.")
        if name not in self._tools:
            known = ", ".join(self._tools) or "none"
            raise ToolNotFound(f"There is no function {path}. Functions of tools: {known[:500]}.")
        return self._tools[name]

    def types(self) -> str:
        """All declarations, or how to find them where they are too long to show at once."""
        text = namespace("tools", [each.declared for each in self._functions])
        if len(text) <= SHOWN_CHARS:
            return text
        names = ", ".join(each.path for each in self._functions)
        return f"{HOW_TO_FIND}\n\n// Functions, whose types `codemode.describe` gives: {names[:SHOWN_CHARS]}"

    def search(self, query: str, limit: int = MAX_FOUND) -> list[JSONObject]:
        """Functions that have words of the query in their name or description, best first."""
        words = set(_words(query))
        scored = [(_score(each, words), each) for each in self._functions]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].path))
        chosen = best[: max(1, min(limit, MAX_FOUND))]
        return [{"name": each.path, "description": _first_line(each.description)} for _, each in chosen]

    def describe(self, path: str) -> str:
        """The declaration of a function. Errors: `CodeInvalid`."""
        wanted = path if "." in path else f"tools.{path}"
        for each in self._functions:
            if each.path == wanted:
                return each.declared
        raise CodeInvalid(f"There is no function {path!r}; codemode.search finds them.")


def _score(each: Function, words: set[str]) -> int:
    name, text = set(_words(each.path)), set(_words(each.description))
    found = 3 * len(words & name) + len(words & text)
    return found + sum(1 for word in words if len(word) > 2 and word in each.path.lower())


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[0-9]+|[^\W\d_a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
