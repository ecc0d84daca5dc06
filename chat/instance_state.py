"""The synced state of an instance: one JSON value, stored under a version, told to every client.

Whoever changes it comes through here: a client's frame in a web process, `set_state` in a hook, tool or callable.
Shape: any JSON within the limits of a frame. The newest write wins; clients are told in the order of the versions.
"""

import logging

from django.db import transaction
from django.db.models import F

from chat.agent import Agent, InstanceKey, StateSource
from chat.doorbell import group_of, ring_on_commit
from chat.errors import StateRefused
from chat.instance_rows import ensure_instance
from chat.models import AgentInstance
from chat.turns.calling import decide, observe
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONValue

logger = logging.getLogger(__name__)

REJECTED = "State update rejected"
READ_ONLY = "Connection is readonly"


async def change_state(agent: Agent, value: JSONValue, source: StateSource, *, origin: str = "") -> None:
    """Validate, store and tell a state, then run the hook.

    Durability: stored when this returns. `origin` labels the connection that has it already. Errors: `StateRefused`;
    then nothing has changed.
    """
    try:
        await decide(agent, "validate_state_change", value, source)
    except ThinkError as error:  # whatever the developer's code raised: its words stay on the server
        logger.info("state refused", extra={"action": "state_refused", "agent": agent.key.agent, "source": source})
        raise StateRefused(REJECTED) from error
    await db(_store, agent.key, value, origin)
    await observe(agent, "on_state_changed", value, source)


@transaction.atomic
def _store(key: InstanceKey, value: JSONValue, origin: str) -> None:
    instance = ensure_instance(key)
    AgentInstance.objects.filter(pk=instance.pk).update(state=value, state_version=F("state_version") + 1)
    instance.refresh_from_db(fields=["state_version"])
    changed = {"type": "state.changed", "version": instance.state_version, "origin": origin}
    ring_on_commit(group_of(key), changed)
