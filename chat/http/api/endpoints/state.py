"""API operations on an agent's synced state and on its methods for clients: what sockets do, in single requests.

Async, because the agent's own code decides and runs.
"""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.agent.connection import ClientConnection
from chat.conversations import abilities
from chat.errors import CallRefused
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import MethodIn, MethodOut, StateIn, StateOut
from chat.instance.instance import make_agent
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.runtime.state import acting_for_client, change_state
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id

router = Router(tags=["state"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])


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
    key = key_of(await db(open_instance, caller_of(request).user, instance_id))
    with acting_for_client(key, _client(request)):
        return await abilities.call_method(key, method, data.args)


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
