"""From a Python signature and its docstring to a JSON Schema, and from a model's JSON back to Python arguments.

Pydantic does the work; this module only decides which parameters count and where their descriptions come from.
"""

import copy
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.errors import ToolDeclarationInvalid, ToolInputInvalid


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


def arguments_model(function: Callable[..., Any], *, skip: frozenset[str], name: str) -> tuple[type[BaseModel], str]:
    """Read a typed function: the model of its arguments, and the description that its docstring opens with.

    Errors: `ToolDeclarationInvalid` for unannotated or variadic parameters and for types that JSON cannot carry.
    """
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    described = {p.arg_name: p.description or "" for p in doc.params}
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolDeclarationInvalid(f"Tool {name!r}: its annotations cannot be resolved: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in skip:
            continue
        fields[parameter.name] = _field(parameter, hints, described.get(parameter.name, ""), name)
    try:
        model = create_model(f"{name}_arguments", __base__=_Arguments, **fields)
        _schema(model)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ToolDeclarationInvalid(f"Tool {name!r}: a parameter's type has no JSON Schema: {error}") from error
    opening = [part for part in (doc.short_description, doc.long_description) if part]
    return model, "\n\n".join(opening)


def _field(parameter: inspect.Parameter, hints: dict[str, Any], description: str, tool_name: str) -> tuple[Any, Any]:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise ToolDeclarationInvalid(
            f"Tool {tool_name!r}: parameter {parameter.name!r} must be an ordinary or keyword parameter"
        )
    if parameter.name not in hints:
        raise ToolDeclarationInvalid(
            f"Tool {tool_name!r}: parameter {parameter.name!r} needs a type annotation, like `{parameter.name}: str`"
        )
    hint = hints[parameter.name]
    if description and not _has_description(hint):
        hint = Annotated[hint, Field(description=description)]
    default = ... if parameter.default is parameter.empty else parameter.default
    return hint, default


def _has_description(hint: Any) -> bool:
    return any(isinstance(extra, FieldInfo) and extra.description for extra in typing.get_args(hint)[1:])


def json_schema(model: type[BaseModel]) -> JSONObject:
    """Schema of type object, without the titles that Pydantic makes up from names. The caller's own copy."""
    return copy.deepcopy(_schema(model))


@functools.lru_cache(maxsize=256)  # the tools of a workspace are made for every turn
def _schema(model: type[BaseModel]) -> JSONObject:
    schema = model.model_json_schema()
    _drop_titles(schema)
    schema.setdefault("properties", {})
    return schema


def _drop_titles(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for key, child in node.items():
            # Under "properties" the keys are names: a property called "title" is not a title.
            if key in {"properties", "$defs"}:
                for grandchild in child.values():
                    _drop_titles(grandchild)
            elif key not in {"default", "const", "enum", "examples"}:
                _drop_titles(child)
    elif isinstance(node, list):
        for child in node:
            _drop_titles(child)


def parse_arguments(model: type[BaseModel], value: JSONObject, *, tool_name: str) -> dict[str, Any]:
    """Validate a model's JSON object and return keyword arguments as Python values.

    Errors: `ToolInputInvalid` with one line per problem, written for the model that must correct itself.
    """
    try:
        parsed = model.model_validate(value)
    except ValidationError as error:
        lines = [
            f"- {'.'.join(str(step) for step in problem['loc']) or 'input'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise ToolInputInvalid(f"Invalid input for tool {tool_name!r}:\n" + "\n".join(lines)) from error
    return {name: getattr(parsed, name) for name in type(parsed).model_fields}


def declared_schema(schema: JSONObject) -> JSONObject:
    """The schema as models read it: an argument that may be `null` by default is one that may be left out.

    A model that sends `null` all the same is understood. The given schema stays as it is.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _without_null(each) for name, each in properties.items()}}


def _without_null(schema: Any) -> Any:
    choices = schema.get("anyOf") if isinstance(schema, dict) else None
    if not isinstance(choices, list) or "default" not in schema or schema["default"] is not None:
        return schema
    left = [choice for choice in choices if choice != {"type": "null"}]
    if len(left) != 1 or len(choices) != 2 or not isinstance(left[0], dict):
        return schema
    return {**left[0], **{key: value for key, value in schema.items() if key not in {"anyOf", "default"}}}
