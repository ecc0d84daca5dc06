"""One run of an agent's background work: the method is called on a fresh object."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from chat.agent.base import Agent, InstanceKey
from chat.background.rows import id_of, key_in
from chat.core.durable_names import AGENT_FIBER_DONE
from chat.instances.notifications import notify_conversation, notify_waiters, send_conversation
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.user_code.call_hook import is_overridden
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.errors import Cancelled
from fibers.services import start_fiber
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

DELETED = "deleted"
DONE_RETRIES = 3
MakeAgent = Callable[[InstanceKey], Awaitable[Agent]]


class FiberRun:
    """A `RunningFiber` over the context of a fiber."""

    def __init__(self, context: FiberContext) -> None:
        self._context = context
        payload: JSONObject = context.payload
        self.id = id_of(context.fiber_id, payload)
        self.method: str = payload["method"]
        self.payload: JSONValue = payload["payload"]
        self.retry_count = context.retries
        self.attempt = context.attempt
        self.metadata: JSONObject = context.metadata
        self.idempotency_key = key_in(payload["instance_id"], context.key)

    @property
    def snapshot(self) -> JSONValue:
        """The last stashed value, of this run or of one before."""
        return self._context.stashed

    async def stash(self, data: JSONValue) -> None:
        """Replace the snapshot. Errors: `LeaseLost`."""
        await self._context.stash(data)


async def run_method(context: FiberContext, make: MakeAgent, *, tells: bool = True) -> JSONValue:
    """Call the method that a fiber names. Errors: its own; `Cancelled` when the conversation is gone.

    `tells`: `on_fiber_complete` follows.
    """
    key = await db(_key_of, context.payload["instance_id"])
    if key is None:
        raise Cancelled(reason=DELETED)
    follow(context)
    agent = await make(key)
    run = FiberRun(context)
    method = getattr(agent, run.method)
    result: JSONValue = await call_user_code(method, *arguments_taken(method, run.payload, run))
    if tells and is_overridden(agent, "on_fiber_complete") and _is_json(result):
        await db(_complete, context, agent, result)
    return result


async def call_function(function: Callable[..., Awaitable[Any]], run: FiberRun) -> Any:
    """Call the function of `run_fiber` with its fiber, or with nothing where it needs nothing.

    What has a default is the caller's own, as in `lambda page=page: ...`.
    """
    needed = [each for each in _places(function) if each.default is each.empty]
    return await function(*([run] if needed else []))


def arguments_taken(function: Callable[..., Any], *given: Any) -> tuple[Any, ...]:
    """As many of these as the function takes by position."""
    if any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(function).parameters.values()):
        return given
    return given[: len(_places(function))]


def _places(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [each for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]


def _is_json(result: JSONValue) -> bool:
    """Whether it can be stored; what cannot fails the fiber, which is the runner's to say."""
    try:
        dump(result)
    except (TypeError, ValueError):
        return False
    return True


def _complete(context: FiberContext, agent: Agent, result: JSONValue) -> None:
    """Complete the fiber, and start the hook that follows."""
    with context.completing(result):
        payload = {**context.payload, "fiber_id": context.fiber_id, "result": result}
        start_fiber(
            f"{AGENT_FIBER_DONE}:{agent.route_name()}",
            payload,
            owner_id=context.owner_id,
            key=f"{context.fiber_id}:done:{context.fence}",
            max_retries=DONE_RETRIES,
        )


def _key_of(instance_id: str) -> InstanceKey | None:
    instance = AgentInstance.objects.filter(pk=instance_id).first()
    return None if instance is None else key_of(instance)


def follow(context: FiberContext) -> None:
    """Have those who wait for a fiber, and open pages of its owner, notified of its beginning and its end."""
    instance_id = str(context.payload["instance_id"])
    send_conversation(context.owner_id, instance_id)
    context.on_settled(partial(_notify, context.fiber_id, context.owner_id, instance_id))


async def _notify(fiber_id: str, owner_id: Any, instance_id: str, _status: FiberStatus) -> None:
    def notify() -> None:
        notify_waiters(fiber_id)
        notify_conversation(owner_id, instance_id)

    await db(notify)
