"""Server code that speaks in a conversation. Runs within an installation, called by a `Hand`."""

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle


def save(person: str, agent: str, name: str, text: str) -> str:
    """Say something as the person would and wait for the answer; returns how it ended."""
    return async_to_sync(_handle(person, agent, name).save_messages)(text).status


def submit(person: str, agent: str, name: str, text: str) -> str:
    """Hand something in and return at once; returns the request id."""
    return async_to_sync(_handle(person, agent, name).submit_messages)(text).request_id


def go_on(person: str, agent: str, name: str) -> str:
    """Have the model go on after its last answer; returns how it ended."""
    return async_to_sync(_handle(person, agent, name).continue_last_turn)().status


def is_under_way(person: str, agent: str, name: str) -> bool:
    """Whether a turn runs or waits."""
    return not async_to_sync(_handle(person, agent, name).wait_until_stable)(0)


def _handle(person: str, agent: str, name: str) -> AgentHandle:
    owner = User.objects.get(username=person)
    return AgentHandle(InstanceKey(owner_id=owner.pk, agent=agent, name=name))
