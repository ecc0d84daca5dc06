"""A model that is asked before a person about calls that need approval: what it calls clear runs, all else asks."""

import logging
from collections.abc import Sequence

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.core.context.call_review import fits, is_clear, review_request
from chat.core.model.language_model import ModelMessage, TextContent, UserMessage
from chat.models import SideCallKind
from chat.turns.background.ask_model import ask, count_call, small_model
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.policies import check_call
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool
from tools_app.core.tool_calls import ToolCall

logger = logging.getLogger(__name__)

SECONDS = 30.0


def may_review(agent: object, tool: Tool) -> bool:
    """Whether a model may answer for the person where the tool's own rule alone asks: about no high risk."""
    is_high = tool.action is not None and tool.action.risk == "high"
    has_model = isinstance(agent, Think) and agent.review_model is not None
    return has_model and not is_high and not tool.asks_person and not tool.is_client


async def review(
    agent: Agent, facts: TurnFacts, tool: Tool, call: ToolCall, messages: Sequence[ModelMessage]
) -> JSONObject | None:
    """The note of a review that lets a call run, for its details; nothing where a person has to decide.

    Costs a request, which counts on the session. Never raises for what a model does: its failure asks the person.
    """
    if not isinstance(agent, Think) or not fits(call.input):
        return None
    request = review_request(_wish(messages), tool.title or tool.name, tool.description, call.input)
    try:
        model = await small_model(agent, agent.review_model)
        await db(check_call, agent.key, facts.session_id)
        answer, finish = await ask(model, request, seconds=SECONDS)
    except (ThinkError, TimeoutError):
        extra = {"action": "review_failed", "turn_id": facts.turn_id, "tool": tool.name}
        logger.warning("a call was not reviewed", exc_info=True, extra=extra)
        return None
    await db(count_call, facts.session_id, SideCallKind.REVIEW, model.name, finish)
    if not is_clear(answer):
        return None
    return {"id": "", "name": f"review by {model.name}", "action": "allow", "level": "class"}


def _wish(messages: Sequence[ModelMessage]) -> str:
    """The last words of the user."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return "\n".join(part.text for part in message.content if isinstance(part, TextContent))
    return ""
