"""API operations on agent classes, and on the agents below a conversation."""

from dataclasses import asdict

from django.http import HttpRequest
from ninja import Router, Status

from chat.access.auth import open_agent, open_instance
from chat.agent.appearance import appearance_of
from chat.agent.registry import get_agent_class
from chat.conversations import abilities
from chat.conversations.changes import new_instance_name
from chat.conversations.offers import offers_of
from chat.http.api.authentication import caller_of
from chat.http.api.endpoints.instances import shown_agent, shown_instance
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import AgentDetailOut, OffersOut, SubAgentIn
from chat.http.api.schemas.models import InstanceDetailOut
from chat.reads.declarations import declarations
from chat.threads.agent import find_thread
from thinkproject.kernel.aio import db

router = Router(tags=["agents"])


@router.get("/agents/{name}", response=AgentDetailOut, operation_id="get_agent")
def agent_detail(request: HttpRequest, name: str) -> object:  # noqa: ARG001 - the framework names it
    """The declarations of an agent class: its looks, its methods for clients, its sub-agents, its configuration."""
    agent_class = get_agent_class(name)
    return AgentDetailOut(**shown_agent(appearance_of(agent_class)).dict(), **asdict(declarations(agent_class)))


@router.get("/agents/{name}/offers", response=OffersOut, operation_id="get_agent_offers", openapi_extra=declares(500))
async def agent_offers(request: HttpRequest, name: str) -> object:
    """The tools of an agent's class and its reach, for a conversation that has not begun. Its code is asked."""
    opened = await db(open_agent, caller_of(request).user, name, new_instance_name())
    return asdict(await offers_of(opened.key))


@router.get("/threads/{thread_id}", response=InstanceDetailOut, operation_id="get_thread")
def thread_detail(request: HttpRequest, thread_id: str) -> object:
    """The conversation of one of your threads by its short id; the one active last where several have it."""
    user = caller_of(request).user
    return shown_instance(open_instance(user, find_thread(user.pk, thread_id)), user.pk)


@router.post(
    "/instances/{instance_id}/sub-agents",
    response={201: InstanceDetailOut},
    operation_id="open_sub_agent",
    openapi_extra=declares(429, 500, 503),
)
def sub_agent_open(request: HttpRequest, instance_id: str, data: SubAgentIn) -> object:
    """Open a sub-agent of a conversation, one that its class lets clients open, or the existing one of this name."""
    parent = open_instance(caller_of(request).user, instance_id)
    return Status(201, shown_instance(abilities.open_sub_agent(parent, data.agent, data.name), parent.owner_id))
