"""Schemas that show a value of the product as it is: its fields are written once, in its dataclass."""

import dataclasses
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

from ninja import Schema
from pydantic import PlainSerializer, create_model

Out = TypeVar("Out", bound=Schema)

Amount = Annotated[Decimal, PlainSerializer(lambda value: f"{value.normalize():f}", return_type=str)]
"""An exact amount, as a text: `"0.0056"`."""


def shows(value: type[Any], *, without: Collection[str] = ()) -> Callable[[type[Out]], type[Out]]:
    """Decorate a schema: it has the fields of a dataclass, each required, in their order; `without` some.

    A field that the schema declares has the type that it declares; those that the dataclass lacks come last.
    **Errors:** `TypeError` for a dataclass within, which needs a schema of its own.
    """
    given = get_type_hints(value)

    def with_fields(schema: type[Out]) -> type[Out]:
        hints = get_type_hints(schema, include_extras=True)
        own = {name: (hints[name], ...) for name in schema.model_fields}
        fields: dict[str, Any] = {}
        for each in (field for field in dataclasses.fields(value) if field.name not in without):
            hint = given[each.name]
            if each.name not in own and _names_dataclass(hint):
                raise TypeError(f"{schema.__name__}.{each.name} needs a schema of its own")
            fields[each.name] = (Amount if hint is Decimal else hint, ...)
        about: Any = {"__module__": schema.__module__, "__doc__": schema.__doc__, "__base__": schema.__base__}
        return cast("type[Out]", create_model(schema.__name__, **about, **{**fields, **own}))

    return with_fields


def _names_dataclass(hint: Any) -> bool:
    return (isinstance(hint, type) and dataclasses.is_dataclass(hint)) or any(map(_names_dataclass, get_args(hint)))
