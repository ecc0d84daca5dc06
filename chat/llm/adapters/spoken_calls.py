"""Calls that a model writes into its text, where its server does not read them out. Pure.

Text is no command: what counts is an answer that is nothing but calls, or calls in the tags of the model's template
at its very end, of tools that were offered, and not in code. Anything else stays text.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

_OPENING: Final = "<tool_call>"
_CLOSING: Final = "</tool_call>"
_WHOLE: Final = re.compile(
    r"```(?:json|tool_call|tool_code)?\s*(?P<fenced>[{\[].*[}\]])\s*```"
    r"|(?:\[TOOL_CALLS\]|<\|python_tag\|>)?\s*(?P<bare>[{\[].*[}\]])",
    re.DOTALL,
)
_NAMED: Final = re.compile(r"<function=(?P<name>[\w.-]+)>\s*(?P<input>\{.*\})\s*</function>", re.DOTALL)
_KEYS: Final = frozenset({"name", "arguments", "parameters", "type", "id"})


def spoken_calls(text: str, tools: Collection[str]) -> list[tuple[str, JSONObject]]:
    """The calls that an answer consists of or ends with: names and inputs, in order; nothing where it has none.

    `tools`: names of those that were offered.
    """
    try:
        found = [call for written in _written(text.strip()) for call in _calls_of(written)]
    except (ValueError, RecursionError):
        return []
    return found if all(name in tools for name, _ in found) else []


def _written(text: str) -> Iterator[JSONValue]:
    """The values that stand for calls. Errors: `ValueError` where one is not whole."""
    before, opening, rest = text.partition(_OPENING)
    if opening:
        line = before.rpartition("\n")[2]
        if before.count("```") % 2 or line.count("`") % 2:
            return
        for block in rest.split(_OPENING):
            inner, closing, after = block.partition(_CLOSING)
            if not closing or after.strip():
                raise ValueError("something else behind a call")
            yield json.loads(inner)
    elif match := _NAMED.fullmatch(text):
        yield {"name": match["name"], "arguments": json.loads(match["input"])}
    elif match := _WHOLE.fullmatch(text):
        yield json.loads(match["fenced"] or match["bare"])


def _calls_of(written: JSONValue) -> Iterator[tuple[str, JSONObject]]:
    """The calls of one value: an object, or a list of them. Errors: `ValueError` for what is none."""
    for call in written if isinstance(written, list) else [written]:
        given = call.get("arguments", call.get("parameters")) if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(given, dict) or not set(call) <= _KEYS:
            raise ValueError("no call")
        yield str(call.get("name")), given
