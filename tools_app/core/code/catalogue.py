"""The functions that code may call: listed shortly, found by words, and declared in full when they are looked up."""

from collections.abc import Collection, Sequence
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.code.names import identifiers
from tools_app.core.code.schema_types import declaration
from tools_app.core.code.signatures import Function, listed, signature
from tools_app.core.ranking import ranked
from tools_app.core.tool import Tool
from tools_app.core.tool_names import near
from tools_app.errors import CodeInvalid, ToolNotFound

LISTED_CHARS: Final = 900
MAX_FOUND: Final = 20
HOW_TO_FIND: Final = (
    "Each takes one object; `?` may be left out. In the code `await codemode.describe({name})` gives a function's full "
    "declaration (as do errors of wrong calls), `await codemode.search({query})` finds functions by words."
)

FURTHER: Final = "There are many more, which `codemode.search` finds."


class Catalogue:
    """The functions that a script may call, in namespaces. `more`: those that are no tools, as `state.readFile`."""

    def __init__(self, tools: Sequence[Tool], more: Sequence[Function] = ()) -> None:
        by_name = {tool.name: tool for tool in tools}
        self._tools = {text: by_name[name] for text, name in identifiers(by_name).items()}
        self._functions = [_function(text, tool) for text, tool in self._tools.items()]
        self._known = {each.path: each for each in [*self._functions, *more]}

    def tool(self, path: str) -> Tool:
        """The tool behind `tools.name`. Errors: `ToolNotFound`."""
        name = path.removeprefix("tools.")
        if name not in self._tools:
            known = ", ".join(self._tools) or "none"
            raise ToolNotFound(f"There is no function {path}.{self._near(path)} Functions of tools: {known[:500]}.")
        return self._tools[name]

    def listed(self, unlisted: Collection[str] = ()) -> str:
        """The tools in short forms, and how to find out more of them. `unlisted`: names of those to search for."""
        shown = [each for each in self._functions if self._tools[each.path.removeprefix("tools.")].name not in unlisted]
        text = listed(shown, LISTED_CHARS) or "none"
        more = f"\n{FURTHER}" if len(shown) < len(self._functions) else ""
        return f"{HOW_TO_FIND}\n\nFunctions of `tools`:\n{text}{more}"

    def search(self, query: str, limit: int = MAX_FOUND) -> list[JSONObject]:
        """Functions that have words of the query in their name or description, best first."""
        known = list(self._known.values())
        places = ranked(query, [(each.path, each.description) for each in known])
        chosen = [known[place] for place in places[: max(1, min(limit, MAX_FOUND))]]
        return [{"name": each.path, "description": _first_line(each.description)} for each in chosen]

    def describe(self, path: str) -> str:
        """The declaration of a function. Errors: `CodeInvalid`, which names near ones."""
        found = self._known.get(path) or self._known.get(f"tools.{path}")
        if found is None:
            raise CodeInvalid(f"There is no function {path!r}.{self._near(path)} codemode.search finds them by words.")
        return found.declared

    def explained(self, path: str, message: str) -> str:
        """The message of a wrong call, with the declaration that it should have kept to."""
        found = self._known.get(path)
        return message if found is None else f"{message}\nDeclared as:\n{found.declared}"

    def _near(self, path: str) -> str:
        similar = " or ".join(near(path, self._known))
        return f" Did you mean {similar}?" if similar else ""


def _function(text: str, tool: Tool) -> Function:
    return Function(
        path=f"tools.{text}",
        description=tool.description,
        declared=declaration(tool.name, tool.description, tool.input_schema),
        plain=signature(text, tool.input_schema, with_types=False),
        typed=signature(text, tool.input_schema, with_types=True),
    )


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
