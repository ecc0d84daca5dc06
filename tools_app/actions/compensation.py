"""Compensations: functions that undo an effect later, found by their names.

    @compensation
    def cancel_refund(undo: Undo) -> str:
        return shop.cancel(undo.input["order_id"], idempotency_key=undo.idempotency_key)

The name is stored with the effect, so a compensation outlives the code that had declared it, as long as its name does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, overload

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.errors import ToolDeclarationInvalid

MAX_NAME_CHARS: Final = 100
_registry: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """An effect to undo. `input` and `output` are those of its action; `idempotency_key` is that of the undoing."""

    action: str
    input: JSONObject
    output: JSONValue
    idempotency_key: str
    user_id: int | None


@overload
def compensation(function: Callable[..., Any], /) -> Callable[..., Any]: ...
@overload
def compensation(*, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def compensation(function: Callable[..., Any] | None = None, /, *, name: str = "") -> Any:
    """Register a function of one `Undo`, sync or async, under its name. Errors: `ToolDeclarationInvalid`."""

    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        chosen = name or target.__name__
        known = _registry.get(chosen)
        if not chosen.isidentifier() or len(chosen) > MAX_NAME_CHARS:
            raise ToolDeclarationInvalid(f"{chosen!r} is no name of a compensation")
        if known is not None and _place(known) != _place(target):
            raise ToolDeclarationInvalid(f"Two compensations are called {chosen!r}")
        _registry[chosen] = target
        return target

    return register(function) if function is not None else register


def name_of(undo: str | Callable[..., Any]) -> str:
    """The name of a compensation, or of its function. Errors: `ToolDeclarationInvalid` for one that has none.

    A name may be registered later than the action that has it.
    """
    if isinstance(undo, str):
        return undo
    for name, function in _registry.items():
        if function is undo:
            return name
    raise ToolDeclarationInvalid(f"{undo!r} was not made by @compensation")


def find_compensation(name: str) -> Callable[..., Any] | None:
    """The function of a name; `None` for one that no code registers any more."""
    return _registry.get(name)


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__  # a module that is loaded again registers the same anew
