"""Passes over all conversations when workers start: a deploy that changes declared tasks reaches those not opened.

One fiber for each class that declares tasks and each version of its source, however many workers start. It visits the
class's conversations in batches; each batch is a fiber, so a crash repeats one batch.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.db import Error as DatabaseError

from chat.agent import declared
from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.core.durable_names import DECLARED_FIBER
from chat.errors import AgentNotFound
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.background.declared_schedules import METHOD, reconcile
from fibers.context import FiberContext
from fibers.services import start_fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue

logger = logging.getLogger(__name__)

BATCH: Final = 200


def start_passes(**_: Any) -> None:
    """Start the pass of every class that declares tasks; once for each version. A worker's start is never held up."""
    for route, agent_class in list(declared.classes.items()):
        if not issubclass(agent_class, Think) or agent_class.get_scheduled_tasks is Think.get_scheduled_tasks:
            continue
        try:
            start_fiber(
                DECLARED_FIBER, {"agent": route, "after": ""}, key=f"declared:{route}:{version_of(agent_class)}"
            )
        except DatabaseError:
            logger.exception("pass not started", extra={"action": "declared_pass_failed", "agent": route})


def version_of(agent_class: type[Any]) -> str:
    """A text that changes when the source file of a class does."""
    try:
        source = Path(inspect.getfile(agent_class)).read_bytes()
    except (OSError, TypeError):  # defined in a shell, for instance
        source = METHOD.encode()
    return hashlib.sha256(source).hexdigest()[:32]


async def reconcile_class(context: FiberContext, make_agent: Callable[[InstanceKey], Agent]) -> JSONValue:
    """Visit a batch of a class's conversations, and leave the rest to a fiber of its own."""
    payload = context.payload
    route, after = str(payload["agent"]), str(payload["after"])
    rows = await db(_batch, route, after)
    for instance in rows:
        try:
            agent = make_agent(key_of(instance))
        except AgentNotFound:
            return None
        if isinstance(agent, Think):
            await reconcile(agent)
    if len(rows) == BATCH:
        following = {"agent": route, "after": rows[-1].pk}
        await db(lambda: start_fiber(DECLARED_FIBER, following, key=f"{context.fiber_id}:next"))
    return len(rows)


def _batch(route: str, after: str) -> list[AgentInstance]:
    return list(AgentInstance.objects.filter(agent=route, pk__gt=after).order_by("pk")[:BATCH])
