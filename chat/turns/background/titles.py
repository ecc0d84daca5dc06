"""Titles of conversations, written by a model after the first exchange.

A fiber without a lane does it, so nothing waits for it. It fails silently: the list then shows what it showed before. A
title that a person gave is never touched, and the order of the list stays.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from django.db.models import Q

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.core.context.titles import clean_title, is_decent, title_request
from chat.core.durable_names import TITLE_FIBER
from chat.core.model.language_model import Finish
from chat.instances.notifications import notify_conversation
from chat.instances.rows import key_of
from chat.llm.conf import llm_settings
from chat.llm.providers import LOCAL_MODEL_NAME
from chat.models import AgentInstance, SideCallKind
from chat.turns.background.ask_model import ask, count_call, small_model
from chat.turns.policies import check_call
from fibers.context import FiberContext
from fibers.services import start_fiber
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject

logger = logging.getLogger(__name__)

OFF: Final = "none"
MAX_RETRIES: Final = 2
_MAX_PATH: Final = 12  # messages of a first exchange, those of calls that a person answered included
_UNTITLED: Final = Q(title="") | Q(title_is_provisional=True)


def needs_title(instance: AgentInstance) -> bool:
    """Whether a conversation has no title but its first words. Those that no list has need none."""
    if instance.parent_id is not None or instance.is_temporary:
        return False
    return not instance.title or instance.title_is_provisional


def writes_titles(agent: Think) -> bool:
    """Whether the agent has titles written for its conversations."""
    return bool(_choice(agent) != OFF)


def _choice(agent: Think) -> Any:
    return llm_settings.title_model if agent.title_model is None else agent.title_model


def start_title(key: InstanceKey, session_id: str, generation: int) -> None:
    """Start the fiber, in the transaction that stores the first answer; nothing after any later one."""
    if selectors.count_path(session_id) > _MAX_PATH:
        return
    path = selectors.path_page(session_id, limit=_MAX_PATH).messages
    if sum(message.role == MessageRole.USER for message in path) == 1:
        start_fiber(
            TITLE_FIBER,
            {"instance_id": key.instance_id, "session_id": session_id, "generation": generation},
            key=f"title:{key.instance_id}:{generation}",
            owner_id=key.owner_id,
            max_retries=MAX_RETRIES,
        )


async def write_title(context: FiberContext, make_agent: Callable[[InstanceKey], Agent]) -> None:
    """Ask the model and store a valid title. Raises only for a retry."""
    payload: JSONObject = context.payload
    instance = await db(_find, payload)
    agent = None if instance is None else make_agent(key_of(instance))
    if not isinstance(agent, Think):
        return
    question, answer = await db(_exchange, payload["session_id"])
    if not question:
        return
    try:
        model = await small_model(agent, _choice(agent))
        small = model.name == LOCAL_MODEL_NAME
        await db(check_call, agent.key, payload["session_id"])
        answer_text, finish = await ask(model, title_request(question, answer, for_small=small))
    except (ThinkError, TimeoutError) as error:
        may_pass = not isinstance(error, ThinkError) or error.retryable
        if may_pass and context.retries < context.max_retries:
            raise
        logger.info("no title", extra={"action": "title_failed", "instance_id": payload["instance_id"]})
        return
    title = clean_title(answer_text)
    is_title = is_decent(title, question, from_small=small)
    if not is_title:
        logger.info("title refused", extra={"action": "title_refused", "instance_id": payload["instance_id"]})
    await db(_store, context, title if is_title else "", model.name, finish)


def _find(payload: JSONObject) -> AgentInstance | None:
    rows = AgentInstance.objects.filter(_UNTITLED, pk=payload["instance_id"], generation=payload["generation"])
    return rows.first()


def _exchange(session_id: str) -> tuple[str, str]:
    """The texts of the first question and of its answer; empty when there is nothing to go by."""
    path = selectors.path_page(session_id, limit=_MAX_PATH).messages
    question = next((_text(message) for message in path if message.role == MessageRole.USER), "")
    answer = next((text for message in path if message.role == MessageRole.ASSISTANT and (text := _text(message))), "")
    return question, answer


def _text(message: StoredMessage) -> str:
    texts = (str(part.get("text", "")) for part in message.parts if part.get("type") == "text")
    return "\n".join(texts).strip()


def _store(context: FiberContext, title: str, model_name: str, finish: Finish | None) -> None:
    """Write the title, unless it was set meanwhile, and its cost. The order of the list is unchanged."""
    payload: JSONObject = context.payload
    with context.fenced():
        rows = AgentInstance.objects.filter(_UNTITLED, pk=payload["instance_id"], generation=payload["generation"])
        if title and rows.update(title=title, title_is_provisional=False) and context.owner_id is not None:
            notify_conversation(context.owner_id, payload["instance_id"])
        count_call(payload["session_id"], SideCallKind.TITLE, model_name, finish)
