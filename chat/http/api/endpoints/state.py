"""API operations on an agent's synced state and on its methods for clients: what sockets do, in single requests.

Async, because the agent's own code decides and runs.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.agent.base import Agent
from chat.agent.callables import CallableInfo, StreamResult, find_callable
from chat.agent.connection import ClientConnection
from chat.agent.invocation import call, stream
from chat.agent.registry import get_agent_class
from chat.errors import CallRefused
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import MethodIn, MethodOut, StateIn, StateOut
from chat.instance.instance import make_agent
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.runtime.state import acting_for_client, change_state
from chat.user_code.call_hook import user_code_boundary
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONValue, byte_size

router = Router(tags=["state"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])

MAX_ITEMS: Final = 1_000
MAX_SECONDS: Final = 60.0
"""A method may stream so many items and run so long within a request; sockets have neither bound."""


@router.get("/instances/{instance_id}/state", response=StateOut, operation_id="get_state", openapi_extra=declares(500))
async def state_detail(request: HttpRequest, instance_id: str) -> object:
    """The synced state of an agent, as its open pages show it."""
    return await _state(await db(open_instance, caller_of(request).user, instance_id))


@router.put(
    "/instances/{instance_id}/state", response=StateOut, operation_id="put_state", openapi_extra=declares(409, 500)
)
async def state_update(request: HttpRequest, instance_id: str, data: StateIn) -> object:
    """Set the state; every open page gets it. The agent may refuse it, and clients that may only read."""
    instance = await db(open_instance, caller_of(request).user, instance_id)
    agent = make_agent(key_of(instance))
    with acting_for_client(agent.key, _client(request)):
        await change_state(agent, data.state, "client", version=data.version)
    return await _state(instance)


@router.post(
    "/instances/{instance_id}/methods/{method}",
    response=MethodOut,
    operation_id="call_method",
    openapi_extra=declares(500),
)
async def method_call(request: HttpRequest, instance_id: str, method: str, data: MethodIn) -> object:
    """Call a method that the agent's class offers to clients (`@client_callable`), and wait for its result."""
    instance = await db(open_instance, caller_of(request).user, instance_id)
    key = key_of(instance)
    info = find_callable(get_agent_class(key.agent), method)
    with acting_for_client(key, _client(request)), user_code_boundary(info.attribute):
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await _answer(make_agent(key), info, data.args)
        except TimeoutError:
            raise CallRefused(f"Method {info.name} took longer than {MAX_SECONDS:.0f} seconds") from None


async def _answer(agent: Agent, info: CallableInfo, args: list[JSONValue]) -> Mapping[str, Any]:
    if not info.is_streaming:
        return {"result": _json(info, await call(agent, info, args)), "items": None}
    items: list[JSONValue] = []
    async for item in stream(agent, info, args):
        if isinstance(item, StreamResult):
            return {"result": _json(info, item.value), "items": items}
        if len(items) >= MAX_ITEMS:
            raise CallRefused(f"Method {info.name} streams more than {MAX_ITEMS} items: call it over a socket")
        items.append(_json(info, item))
    return {"result": None, "items": items}


def _json(info: CallableInfo, value: Any) -> JSONValue:
    try:
        byte_size(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise CallRefused(f"Method {info.name}: its result is not JSON-serializable: {error}") from error
    return value


async def _state(instance: AgentInstance) -> dict[str, Any]:
    await instance.arefresh_from_db(fields=["state", "state_version"])
    if instance.state_version == 0:
        return {"state": await make_agent(key_of(instance)).get_state(), "version": 0}
    return {"state": instance.state, "version": instance.state_version}


def _client(request: HttpRequest) -> ClientConnection:
    """The caller as the agent's hooks see clients. It has no socket."""

    async def refuse(*_args: Any) -> None:
        raise CallRefused("This client has no socket: it made a single request")

    return ClientConnection(id=new_id("http"), query=request.GET.dict(), sender=refuse, closer=refuse)
