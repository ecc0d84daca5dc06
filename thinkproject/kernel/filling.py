"""Values that show others: a field that both have is named once, where it is declared."""

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def filled(kind: Callable[..., Value], source: object, /, **own: Any) -> Value:
    """A dataclass or schema with what is given, and the rest from the attributes of the same names.

    **Errors:** `AttributeError` for a field that the source lacks, whatever its default.
    """
    fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", {})
    return kind(**{name: getattr(source, name) for name in fields if name not in own}, **own)
