"""Methods of an agent that its clients may call: `@client_callable`.

    class Board(Think):
        @client_callable
        async def add_todo(self, title: str) -> int: ...

        @client_callable
        async def lines(self, path: str) -> AsyncIterator[str]:
            yield "first"

Nothing else of an agent can be reached from outside. Arguments come by position and are checked against the signature's
types. An async generator streams its items; one that ends with a value yields it last, as `StreamResult(value)`.

Clients never see what a method raises, only that the agent's code failed; the log has the rest. To
say something to the client raise `chat.errors.CallRefused("...")`, or any other `ThinkError`: those messages are sent.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from chat.agent.base import Agent
from chat.errors import CallRefused

__all__ = ["StreamResult", "client_callable"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__think_callable__"


@overload
def client_callable(method: F, /) -> F: ...
@overload
def client_callable(*, name: str) -> Callable[[F], F]: ...
def client_callable(method: F | None = None, /, *, name: str = "") -> F | Callable[[F], F]:
    """Let clients call a method of the agent.

    Shape: a sync or async method (its result must be JSON), or an async generator (each item must be). `name` is what
    clients call it, where that differs: `@client_callable(name="addTodo")`. It runs in a web process, on a fresh
    object.
    Durability: none of its own; what must survive goes to the state, the session or a model.
    """

    def mark(target: F) -> F:
        setattr(target, _MARK, name or target.__name__)
        return target

    return mark(method) if method is not None else mark


callable = client_callable  # noqa: A001 - the former name, which shadows the builtin where it is imported


@dataclass(frozen=True, slots=True)
class StreamResult:
    """The value with which a streaming callable ends: the last thing that it yields. Clients get it in `onDone`."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableInfo:
    """A method that clients may call. `name` is theirs, `attribute` is the developer's."""

    name: str
    attribute: str
    is_streaming: bool


def callables_of(agent_class: type[Agent]) -> dict[str, CallableInfo]:
    """All callables of a class, by the clients' name. An override without the mark takes its method away.

    Of two under one name that of the more derived class counts: a developer's takes the place of one of ours.
    """
    found: dict[str, CallableInfo] = {}
    for attribute in dict.fromkeys(name for cls in reversed(agent_class.__mro__) for name in sorted(vars(cls))):
        method = inspect.getattr_static(agent_class, attribute)
        name = getattr(method, _MARK, "")
        if name:
            streaming = inspect.isasyncgenfunction(method)
            found[name] = CallableInfo(name=name, attribute=attribute, is_streaming=streaming)
    return found


def find_callable(agent_class: type[Agent], name: str) -> CallableInfo:
    """Find the method that a client named. Errors: `CallRefused`, with the texts that published clients match on."""
    found = callables_of(agent_class).get(name)
    if found is None:
        exists = not name.startswith("_") and inspect.isfunction(inspect.getattr_static(agent_class, name, None))
        raise CallRefused(f"Method {name} {'is not callable' if exists else 'does not exist'}")
    return found
