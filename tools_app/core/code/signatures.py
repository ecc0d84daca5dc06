"""Short forms of functions, for a list that models read in each call; whole declarations are looked up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.code.schema_types import type_of

MAX_SHORT_TYPE: Final = 24
MAX_PURPOSE: Final = 100
_EVIDENT: Final = frozenset({"string", "unknown"})
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of the code's world: its path (`tools.search`), its short forms and its declaration."""

    path: str
    description: str
    declared: str
    plain: str  # `search({words, limit?})`
    typed: str  # the same with short types: `search({words, limit?: number})`

    @property
    def purpose(self) -> str:
        """The first sentence of the description, in one line."""
        return _SENTENCE.split(" ".join(self.description.split()), maxsplit=1)[0][:MAX_PURPOSE]


def signature(name: str, input_schema: JSONObject, *, with_types: bool) -> str:
    """The short form of a function with this input. Texts have no type, and neither have types that are long."""
    properties, required = input_schema.get("properties"), input_schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = set(required) if isinstance(required, list) else set()
    root = {key: value for key, value in input_schema.items() if key in {"$defs", "definitions"}}
    shown = [
        f"{key}{'' if key in needed else '?'}{_short_type(value, root) if with_types else ''}"
        for key, value in fields.items()
    ]
    return f"{name}({{{', '.join(shown)}}})" if shown else f"{name}({'' if 'properties' in input_schema else '{…}'})"


def listed(functions: Sequence[Function], most_chars: int) -> str:
    """One line for each function, as much of it as there is room for; beyond that how many there are."""
    names = [each.path.partition(".")[2] for each in functions]
    forms = (
        "\n".join(f"{each.typed} // {each.purpose}" if each.purpose else each.typed for each in functions),
        "\n".join(each.typed for each in functions),
        "\n".join(each.plain for each in functions),
        ", ".join(names),
    )
    fitting = (form for form in forms if len(form) <= most_chars)
    return next(fitting, f"{len(functions)} functions: {', '.join(names)[: most_chars // 2]} …")


def _short_type(schema: object, root: JSONObject) -> str:
    if not isinstance(schema, dict):
        return ""
    text = type_of({**root, **schema}).removesuffix(" | null").replace('"', "'")
    return f": {text}" if text not in _EVIDENT and len(text) <= MAX_SHORT_TYPE and "\n" not in text else ""
