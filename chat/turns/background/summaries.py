"""Summaries of conversations for people, written by a model beside the turns: nothing waits for them.

Where an agent has a `summary_model`, one is begun with the first step of a turn, so that people see what is being
worked on, and one when the answer is stored. A person can ask for one at any time. They wait for each other in a lane
of the session; one automatic summary at most is pending, and one that finds nothing new calls no model. A
person's own words stay until that person asks for others.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.db import transaction

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.core.context.session_summaries import clean_summary, is_about, session_summary_request
from chat.core.durable_names import SUMMARY_FIBER
from chat.core.model.language_model import Finish
from chat.errors import InputInvalid
from chat.instances.notifications import notify_conversation
from chat.instances.rows import hold_instance, key_of
from chat.llm.conf import llm_settings
from chat.llm.providers import LOCAL_MODEL_NAME
from chat.models import AgentInstance, SideCallKind
from chat.turns import policies
from chat.turns.background.ask_model import ask, count_call, small_model
from chat.turns.background.titles import OFF
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.errors import Failed
from fibers.models import Fiber
from fibers.services import start_fiber
from sessions_app.compactions.summaries import Material, read_material, store_summary
from sessions_app.errors import SessionNotFound
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

logger = logging.getLogger(__name__)

MAX_RETRIES: Final = 2
_FAILED: Final = "The summary could not be written."
_FEW: Final = 10  # fibers of a lane that are looked at
EMPTY: Final = "The model gave no summary. Ask again, or write one yourself."


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWork:
    """Progress of a session's summary. `state`: empty, waiting or running; `error`: of the last failure."""

    state: Literal["", "waiting", "running"]
    error: str


def writes_summaries(agent: Think) -> bool:
    """Whether the agent has summaries written automatically. Conversations of sub-agents are in no list."""
    return bool(_choice(agent) != OFF) and not agent.key.ancestors


def _choice(agent: Think) -> Any:
    return llm_settings.summary_model if agent.summary_model is None else agent.summary_model


def start_summary(key: InstanceKey, session_id: str) -> None:
    """Have one written, in the caller's transaction, unless one waits already."""
    if not _waiting(session_id):
        _start(key.instance_id, session_id, key.owner_id, is_asked=False)


@transaction.atomic
def request_summary(instance: AgentInstance, session_id: str) -> str:
    """Have one written because a person asks. Returns the fiber's id. Durability: committed when this returns.

    Errors: `InputInvalid` without messages, `QuotaExceeded`.
    """
    if selectors.leaf_id(session_id) is None:
        raise InputInvalid("There is nothing to summarise yet.")
    hold_instance(instance)
    asked = next((pk for pk, payload in _waiting(session_id) if _is_asked(payload)), None)
    if asked is not None:
        return asked
    policies.check_admission(instance)
    return _start(instance.pk, session_id, instance.owner_id, is_asked=True)


def summary_work(session_id: str, *, since: datetime | None) -> SummaryWork:
    """Read active summary fibers, and failures after an instant. One query."""
    rows = Fiber.objects.filter(lane=_lane(session_id)).order_by("-lane_position")
    newest = list(rows.values_list("status", "error", "payload", "finished_at")[:_FEW])
    statuses = {status for status, *_ in newest}
    if FiberStatus.RUNNING in statuses:
        return SummaryWork(state="running", error="")
    if FiberStatus.PENDING in statuses:
        return SummaryWork(state="waiting", error="")
    for status, error, payload, finished_at in newest[:1]:
        is_reported = _is_asked(payload) and (since is None or finished_at is None or finished_at > since)
        if is_reported and status == FiberStatus.FAILED and isinstance(error, dict):
            is_ours = error["code"] != "internal"  # else it is the text of any exception
            return SummaryWork(state="", error=str(error["message"]) if is_ours else _FAILED)
    return SummaryWork(state="", error="")


def _is_asked(payload: JSONValue) -> bool:
    return isinstance(payload, dict) and bool(payload["is_asked"])


def _lane(session_id: str) -> str:
    return f"summary:{session_id}"


def _waiting(session_id: str) -> list[tuple[str, JSONValue]]:
    rows = Fiber.objects.live_in(_lane(session_id)).filter(status=FiberStatus.PENDING)
    return [(str(pk), payload) for pk, payload in rows.values_list("pk", "payload")]


def _start(instance_id: str, session_id: str, owner_id: Any, *, is_asked: bool) -> str:
    asked = policies.COUNTED if is_asked else {}
    fiber = start_fiber(
        SUMMARY_FIBER,
        {"instance_id": instance_id, "session_id": session_id, "is_asked": is_asked},
        lane=_lane(session_id),
        owner_id=owner_id,
        max_retries=MAX_RETRIES,
        metadata={"instance_id": instance_id, **asked},
    )
    return str(fiber.pk)


async def write_summary(context: FiberContext, make_agent: Callable[[InstanceKey], Agent]) -> None:
    """Ask the model and store its summary. Errors: `Failed` if a person requested it; else failures are silent."""
    payload: JSONObject = context.payload
    instance, material = await db(_find, payload)
    if instance is None or material is None:
        return
    agent = make_agent(key_of(instance))
    if not isinstance(agent, Think):
        return
    try:
        await _write(context, agent, material)
    except (ThinkError, TimeoutError) as error:
        may_pass = not isinstance(error, ThinkError) or error.retryable
        if may_pass and context.retries < context.max_retries:
            raise
        logger.info("no summary", extra={"action": "summary_failed", "session_id": payload["session_id"]})
        if payload["is_asked"]:
            text = error.message if isinstance(error, ThinkError) else "The model took too long."
            await db(_notify, instance)
            raise Failed("summary_failed", text, is_final=True) from error


async def _write(context: FiberContext, agent: Think, material: Material) -> None:
    payload: JSONObject = context.payload
    choice = _choice(agent)
    model = await small_model(agent, "" if choice == OFF else choice)
    await db(policies.check_call, agent.key, payload["session_id"])
    messages = [message.to_ui() for message in material.messages]
    text, finish = await ask(model, session_summary_request(material.previous, messages))
    text = clean_summary(text)
    if model.name == LOCAL_MODEL_NAME and not is_about(text, messages):
        text = ""
    await db(_store, context, text, material, (model.name, finish))
    if not text:
        raise ThinkError(EMPTY)


def _find(payload: JSONObject) -> tuple[AgentInstance | None, Material | None]:
    instance = AgentInstance.objects.filter(pk=payload["instance_id"]).first()
    if instance is None:
        return None, None
    return instance, read_material(payload["session_id"], afresh=payload["is_asked"])


def _store(context: FiberContext, text: str, material: Material, call: tuple[str, Finish | None]) -> None:
    """Store the summary, and count its usage even if it is discarded."""
    payload: JSONObject = context.payload
    session_id, (model_name, finish) = payload["session_id"], call
    with context.fenced():
        count_call(session_id, SideCallKind.SUMMARY, model_name, finish)
        try:
            is_kept = bool(text) and store_summary(
                session_id, text, material=material, model_name=model_name, afresh=payload["is_asked"]
            )
        except SessionNotFound:
            is_kept = False
        if is_kept and context.owner_id is not None:
            notify_conversation(context.owner_id, payload["instance_id"])


def _notify(instance: AgentInstance) -> None:
    if instance.owner_id is not None:
        notify_conversation(instance.owner_id, instance.pk)
