"""Methods of an agent that its clients may call: `@callable`, and what a call gives.

    class Board(Think):
        @callable
        async def add_todo(self, title: str) -> int: ...

        @callable
        async def lines(self, path: str) -> AsyncIterator[str]:
            yield "first"

Nothing else of an agent can be reached from outside. Arguments come by position and are checked against the signature's
types; an async generator streams its items.

What a method raises is not for clients: they are told that the agent's own code failed, and the log has the rest. To
say something to the client raise `chat.errors.CallRefused("...")`, or any other `ThinkError`: those messages are sent.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from pydantic import ConfigDict, ValidationError, validate_call

from chat.agent import Agent
from chat.errors import CallRefused
from thinkproject.kernel.aio import user_code

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__think_callable__"


@overload
def callable(method: F, /) -> F: ...  # noqa: A001 - the field's word
@overload
def callable(*, name: str) -> Callable[[F], F]: ...  # noqa: A001 - as above
def callable(method: F | None = None, /, *, name: str = "") -> F | Callable[[F], F]:  # noqa: A001 - as above
    """Let clients call a method of the agent.

    Shape: a sync or async method (its result must be JSON), or an async generator (each item must be). `name` is what
    clients call it, where that differs: `@callable(name="addTodo")`. It runs in a web process, on a fresh object.
    Durability: none of its own; what must survive goes to the state, the session or a model.
    """

    def mark(target: F) -> F:
        setattr(target, _MARK, name or target.__name__)
        return target

    return mark(method) if method is not None else mark


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableInfo:
    """A method that clients may call. `name` is theirs, `attribute` is the developer's."""

    name: str
    attribute: str
    is_streaming: bool


def callables_of(agent_class: type[Agent]) -> dict[str, CallableInfo]:
    """All callables of a class, by the clients' name. An override without the mark takes its method away."""
    found: dict[str, CallableInfo] = {}
    for attribute in dir(agent_class):
        method = inspect.getattr_static(agent_class, attribute)
        name = getattr(method, _MARK, "")
        if name:
            streaming = inspect.isasyncgenfunction(method)
            found[name] = CallableInfo(name=name, attribute=attribute, is_streaming=streaming)
    return found


def find_callable(agent_class: type[Agent], name: str) -> CallableInfo:
    """Find what a client names. Errors: `CallRefused` in the words that published clients know."""
    found = callables_of(agent_class).get(name)
    if found is None:
        exists = not name.startswith("_") and inspect.isfunction(inspect.getattr_static(agent_class, name, None))
        raise CallRefused(f"Method {name} {'is not callable' if exists else 'does not exist'}")
    return found


async def call(agent: Agent, info: CallableInfo, arguments: list[Any]) -> Any:
    """Call a method that does not stream. Errors: `CallRefused` for wrong arguments; what the method raises."""
    checked = _checked(getattr(type(agent), info.attribute))
    _refuse_misfit(checked, agent, info, arguments)
    try:
        if inspect.iscoroutinefunction(getattr(type(agent), info.attribute)):
            return await checked(agent, *arguments)
        return await user_code(checked, agent, *arguments)
    except ValidationError as error:
        raise _refusal(info, error) from error


async def stream(agent: Agent, info: CallableInfo, arguments: list[Any]) -> AsyncGenerator[Any, None]:
    """Call a method that streams. Errors: as `call`."""
    checked = _checked(getattr(type(agent), info.attribute))
    _refuse_misfit(checked, agent, info, arguments)
    try:
        items = checked(agent, *arguments)
    except ValidationError as error:
        raise _refusal(info, error) from error
    async with aclosing(items):
        async for item in items:
            yield item


@functools.cache
def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    checked: Callable[..., Any] = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(method)
    return checked


def _refuse_misfit(checked: Callable[..., Any], agent: Agent, info: CallableInfo, arguments: list[Any]) -> None:
    signature = inspect.signature(checked)
    try:
        signature.bind(agent, *arguments)
    except TypeError as error:
        own = list(signature.parameters.values())[1:]
        expected = ", ".join(str(parameter) for parameter in own) or "no arguments"
        raise CallRefused(f"Method {info.name} expects {expected}; got {len(arguments)} argument(s)") from error


def _refusal(info: CallableInfo, error: ValidationError) -> CallRefused:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return CallRefused(f"Method {info.name}: argument {where}: {first['msg']}")
