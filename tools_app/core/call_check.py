"""Validates a call before it runs, and converts a tool's result to JSON."""

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.core.tool_calls import parse_input
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolError


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A model's raw call after parsing: a valid input, or the error text for the model."""

    input: JSONValue
    error: str | None = None
    is_unknown: bool = False


def check_call(toolset: Toolset, tool_name: str, arguments: str) -> CheckedCall:
    """Parse and validate without running anything. Never raises for a model's input.

    The name is taken as it is: its case is repaired before (`Toolset.repaired`), so that all of the call shows it.
    """
    if tool_name not in toolset:
        try:
            toolset.get(tool_name)
        except ToolError as error:
            return CheckedCall(input=lenient_input(arguments), error=error.message, is_unknown=True)
    try:
        value = parse_input(arguments)
    except ValueError as error:
        return CheckedCall(input=arguments, error=str(error))
    try:
        toolset.get(tool_name).parse(value)
    except ToolError as error:
        return CheckedCall(input=value, error=error.message)
    return CheckedCall(input=value)


def lenient_input(arguments: str) -> JSONObject | str:
    """A model's arguments, or their text as it is where it is no JSON object."""
    try:
        return parse_input(arguments)
    except ValueError:
        return arguments


def to_json(value: Any) -> JSONValue:
    """Make a tool's return value JSON.

    Errors: `TypeError` naming the type that JSON cannot carry, `ValueError` for NaN and for cycles.
    """
    plain = _plain(value, depth=0)
    dump(plain)
    return plain


def _plain(value: Any, *, depth: int) -> JSONValue:
    if depth > 100:
        raise ValueError("the result is nested too deeply (or refers to itself)")
    match value:
        case None | bool() | int() | float() | str() if not isinstance(value, enum.Enum):
            return value
        case BaseModel():
            return value.model_dump(mode="json")
        case enum.Enum():
            return _plain(value.value, depth=depth + 1)
        case Mapping():
            return {str(key): _plain(item, depth=depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item, depth=depth + 1) for item in value]
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case decimal.Decimal() | uuid.UUID():
            return str(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _plain(dataclasses.asdict(value), depth=depth + 1)
    raise TypeError(f"a tool returned {type(value).__name__}, which JSON cannot carry")
