"""Tools that are not declared to the model one by one: it finds them by words, and calls them through one tool.

The two tools for it never change, so that the prompt's beginning stays as it is when tools come and go. A call through
`call_tool` becomes a call of the tool that it names before anything is checked (`Deferral.unwrap`): approvals, hooks,
limits, records and people see that tool alone. The model is sent its call again as it made it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.core.call_check import CheckedCall, check_call, lenient_input
from tools_app.core.ranking import ranked
from tools_app.core.schema_check import problems
from tools_app.core.tool import Tool
from tools_app.core.tool_names import near, selects
from tools_app.core.toolset import Toolset
from tools_app.errors import SchemaInvalid, ToolError

SEARCH: Final = "search_tools"
CALL: Final = "call_tool"
FEW: Final = 5
MOST: Final = 20
DECLARED_CHARS: Final = 12_000
MAX_NAMES: Final = 100
NOT_FOUND: Final = "No tool has these words. Try others; these are names of tools that there are."

_SEARCH_TEXT: Final = (
    "Find tools that are not listed here, by words for what they do or the service they belong to. "
    "Gives their names, descriptions and input schemas."
)
_SEARCH_INPUT: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "A few words, as: create issue"},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": FEW},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL_TEXT: Final = f"Call a tool that {SEARCH} has found."
_CALL_INPUT: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool's name."},
        "arguments": {"type": "object", "description": "Its input, as its schema wants it."},
    },
    "required": ["name", "arguments"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedCall:
    """A call through another tool, as a call of the tool that it is about. `by`: that other tool, if it was resolved.

    `arguments`: JSON text, as a model writes it.
    """

    name: str
    arguments: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """The tools of a turn: those that are declared, those that are found, and the two tools for the latter."""

    declared: Toolset
    found: Toolset = field(default_factory=Toolset)
    finders: tuple[Tool, ...] = ()

    @property
    def all(self) -> Toolset:
        """Every tool that can be called."""
        return Toolset(self.declared, self.found, self.finders)

    def unwrap(self, name: str, arguments: str) -> WrappedCall | None:
        """The call that is made through `call_tool`, or nothing for any other. Never raises for a model's input.

        A call that names no tool stays one of `call_tool`, and `check` says what is wrong with it.
        """
        if name != CALL or not self.finders:
            return None
        inner = self._named(arguments)
        if inner is None:
            return WrappedCall(name=CALL, arguments=arguments)
        return WrappedCall(name=inner[0], arguments=dump(inner[1]), by=CALL)

    def check(self, name: str, arguments: str) -> CheckedCall:
        """Parse and validate a call. Of tools that are found, the error has the schema: the model may have lost it."""
        if name == CALL and self.finders:
            return CheckedCall(input=lenient_input(arguments), error=self._refusal(arguments))
        checked = check_call(self.all, name, arguments)
        if name not in self.found or checked.is_unknown:
            return checked
        tool = self.found.get(name)
        error = checked.error or _misfit(tool, checked.input)
        if error is None:
            return checked
        return CheckedCall(input=checked.input, error=f"{error}\nIts input schema: {dump(tool.input_schema)}")

    def _named(self, arguments: str) -> tuple[str, JSONValue] | None:
        """The tool that a call is about and its input, as models write them: also as text, and also side by side."""
        given = lenient_input(arguments)
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            return None
        known = self.all
        name = known.repaired(given["name"])
        if name == CALL or name not in known:
            return None
        rest = {key: value for key, value in given.items() if key not in {"name", "arguments"}}
        inner = given.get("arguments", rest)
        if isinstance(inner, str):
            inner = lenient_input(inner)
        return name, {} if inner is None else inner

    def _refusal(self, arguments: str) -> str:
        given = lenient_input(arguments)
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(name, str):
            return f'{CALL} takes {{"name": …, "arguments": {{…}}}}, with a name that {SEARCH} has found.'
        similar = " or ".join(repr(each) for each in near(name, [tool.name for tool in self.found]))
        hint = f" Did you mean {similar}?" if similar else ""
        return f"There is no tool {name!r}.{hint} {SEARCH} finds tools by words."


def defer(toolset: Toolset, patterns: Sequence[str], most: int | None, *, keep: Collection[str] = ()) -> Deferral:
    """Divide the tools of a turn. Those that patterns name are found where there are more than `most` of them.

    `keep`: names that are declared whatever patterns say. A tool of one's own that has a name of the two keeps it, and
    everything is declared.
    """
    chosen = {tool.name for tool in toolset if selects(patterns, tool.name, tool.source)}
    if most is None or len(chosen) <= most or SEARCH in toolset or CALL in toolset:
        return Deferral(declared=toolset)
    found = Toolset([tool for tool in toolset if tool.name in chosen and tool.name not in keep])
    declared = Toolset([tool for tool in toolset if tool.name not in found])
    return Deferral(declared=declared, found=found, finders=(_search_tool(found), _call_tool()))


def _search_tool(found: Toolset) -> Tool:
    tools = list(found)
    things = [(tool.name, f"{tool.title} {tool.description}") for tool in tools]

    async def search(input: JSONObject) -> JSONObject:  # noqa: A002 - the name that `Tool.parse` gives
        query, limit = str(input.get("query", "")), input.get("limit", FEW)
        places = ranked(query, things)
        most = max(1, min(limit, MOST)) if isinstance(limit, int) else FEW
        if not places:
            return {"tools": [], "note": NOT_FOUND, "names": [name for name, _ in things[:MAX_NAMES]]}
        shown, left = _within([_declared(tools[place]) for place in places[:most]])
        more = [*left, *(things[place][0] for place in places[most : most + MAX_NAMES])]
        return {"tools": shown, **({"more": more} if more else {})}

    return Tool(
        name=SEARCH,
        description=_SEARCH_TEXT,
        input_schema=_SEARCH_INPUT,
        function=search,
        title="Search tools",
        read_only=True,
    )


def _call_tool() -> Tool:
    async def call(input: JSONObject) -> JSONObject:  # noqa: A002, ARG001 - as above; it is unwrapped before
        raise ToolError(f"{CALL} was not given a tool.")

    return Tool(name=CALL, description=_CALL_TEXT, input_schema=_CALL_INPUT, function=call, title="Call a tool")


def _declared(tool: Tool) -> JSONObject:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}


def _within(entries: list[JSONObject]) -> tuple[list[JSONObject], list[str]]:
    """The entries that there is room for, the first whatever its size, and the names of the others."""
    shown: list[JSONObject] = []
    chars = 0
    for entry in entries:
        chars += len(dump(entry))
        if shown and chars > DECLARED_CHARS:
            break
        shown.append(entry)
    return shown, [entry["name"] for entry in entries[len(shown) :]]


def _misfit(tool: Tool, value: JSONValue) -> str | None:
    """The reason why an input does not fit a tool that checks by its schema alone; nothing where it fits."""
    if tool.arguments is not None:
        return None
    try:
        wrong = problems(value, tool.input_schema)
    except SchemaInvalid:  # the tool itself says what is wrong
        return None
    return f"Invalid input for tool {tool.name!r}: {'; '.join(wrong)}" if wrong else None
