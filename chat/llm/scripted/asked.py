"""Requirements of a request besides its messages: tools, tool choice, output format.

The scripted provider honours it as a real one does: no call where none is allowed, a call where one is demanded, JSON
of the schema where the script says nothing else. Pure.
"""

from dataclasses import dataclass, field
from typing import Final

from chat.llm.scripted.script import Call, Directive, HttpError, Say, Words
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

_EMPTY: Final[dict[str, JSONValue]] = {"null": None, "boolean": False, "integer": 1, "number": 1, "string": "text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`tools` are schemas by name, `choice` is a word or a tool's name, `schema` the form of the text."""

    tools: dict[str, JSONObject] = field(default_factory=dict)
    choice: str = "auto"
    schema: JSONObject | None = None

    def refusal(self) -> tuple[HttpError, ...]:
        """The error for a demand that cannot be met, as providers give it."""
        if self.choice in ("auto", "none") or self.choice in self.tools or (self.tools and self.choice == "required"):
            return ()
        message = f"Tool choice {self.choice!r} not found in 'tools' parameter."
        return (HttpError(line=-1, status=400, code="invalid_request_error", message=message),)

    def apply(self, directives: list[Directive]) -> list[Directive]:
        """The directives of one round, changed where the request allows no such answer."""
        calls = [item.name for item in directives if isinstance(item, Call)]
        if self.choice == "none":
            return [item for item in directives if not isinstance(item, Call)]
        forced = list(self.tools)[-1:] if self.choice == "required" else [self.choice]
        if self.choice == "auto" or not forced or (self.choice == "required" and calls) or forced[0] in calls:
            return directives
        text = "".join(item.text for item in directives if isinstance(item, Say) and item.kind == "text")
        rest = [item for item in directives if not isinstance(item, Say | Words | Call)]
        arguments = text if _is_object(text) else dump(sample(self.tools.get(forced[0], {})))
        return [Call(name=forced[0], arguments=arguments), *rest]


def read_asked(body: JSONObject) -> Asked:
    """Read the demands of a Chat Completions or a Responses body."""
    tools: dict[str, JSONObject] = {}
    for tool in body.get("tools") or []:
        function = tool.get("function") or tool
        tools[str(function.get("name"))] = function.get("parameters") or {}
    choice = body.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        choice = str((choice.get("function") or choice).get("name"))
    form = (body.get("response_format") or {}).get("json_schema") or (body.get("text") or {}).get("format") or {}
    return Asked(tools=tools, choice=choice, schema=form.get("schema"))


def sample(schema: JSONValue, root: JSONObject | None = None, depth: int = 0) -> JSONValue:
    """The smallest value that a schema accepts: first alternatives, required fields only."""
    if not isinstance(schema, dict) or depth > 8:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return sample((root.get("$defs") or {}).get(str(schema["$ref"]).rpartition("/")[2]), root, depth + 1)
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        if schema.get(key):
            first = schema[key][0]
            return first if key == "enum" else sample(first, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        known = schema.get("properties") or {}
        return {name: sample(known.get(name), root, depth + 1) for name in schema.get("required") or []}
    if kind == "array":
        return [sample(schema.get("items"), root, depth + 1)] * int(schema.get("minItems") or 0)
    return schema.get("minimum", _EMPTY.get(kind))


def _is_object(text: str) -> bool:
    try:
        return isinstance(load(text), dict)
    except ValueError:
        return False
