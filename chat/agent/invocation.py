"""Invoke a callable of an agent: its arguments are checked against the types of its signature."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call

from chat.agent.base import Agent
from chat.agent.callables import CallableInfo
from chat.errors import CallRefused
from thinkproject.kernel.aio import user_code
from thinkproject.kernel.threads import acting_for


async def call(agent: Agent, info: CallableInfo, arguments: list[Any]) -> Any:
    """Call a method that does not stream. Errors: `CallRefused` for wrong arguments; the method's own errors."""
    check_arguments(type(agent), info, arguments)
    checked = _checked(getattr(type(agent), info.attribute))
    try:
        if inspect.iscoroutinefunction(getattr(type(agent), info.attribute)):
            return await checked(agent, *arguments)
        with acting_for(agent.key.owner_id):
            return await user_code(checked, agent, *arguments)
    except ValidationError as error:
        raise _refusal(info, error) from error


async def stream(agent: Agent, info: CallableInfo, arguments: list[Any]) -> AsyncGenerator[Any, None]:
    """Call a method that streams. Errors: as `call`."""
    check_arguments(type(agent), info, arguments)
    checked = _checked(getattr(type(agent), info.attribute))
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


def check_arguments(agent_class: type[Agent], info: CallableInfo, arguments: Sequence[Any]) -> None:
    """Errors: `CallRefused` for a number of arguments that the method does not take; types are checked by the call."""
    signature = inspect.signature(_checked(getattr(agent_class, info.attribute)))
    try:
        signature.bind(None, *arguments)
    except TypeError as error:
        own = list(signature.parameters.values())[1:]
        expected = ", ".join(str(parameter) for parameter in own) or "no arguments"
        raise CallRefused(f"Method {info.name} expects {expected}; got {len(arguments)} argument(s)") from error


def _refusal(info: CallableInfo, error: ValidationError) -> CallRefused:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return CallRefused(f"Method {info.name}: argument {where}: {first['msg']}")
