"""Answers of an agent's own model for an MCP server, which a person has allowed. Their cost counts on the session."""

from typing import Any

from chat.agent.think import Think
from chat.core.model.language_model import (
    AssistantMessage,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    TextContent,
    UserMessage,
)
from chat.llm.registry import guarded, resolve_model
from chat.models import SideCallKind
from chat.turns.background.ask_model import ask, count_call
from chat.turns.policies import check_call
from thinkproject.kernel.aio import db
from tools_app.core.mcp.sampling import Sampled, Sampler, SamplingRequest


def sampler_for(agent: Think, session_id: str, choice: Any) -> Sampler:
    """Make the function that asks a model. Errors of the function: `ModelError`, and those of the turn's policies."""

    async def sample(request: SamplingRequest) -> Sampled:
        model = guarded(resolve_model(choice))
        await db(check_call, agent.key, session_id)
        settings = ModelSettings(max_output_tokens=request.max_tokens)
        asked = ModelRequest(system=request.system, messages=_messages(request), settings=settings)
        text, finish = await ask(model, asked)
        await db(count_call, session_id, SideCallKind.SAMPLING, model.name, finish)
        return Sampled(text=text, model=model.name)

    return sample


def _messages(request: SamplingRequest) -> tuple[ModelMessage, ...]:
    found: list[ModelMessage] = []
    for role, text in request.messages:
        content = (TextContent(text=text),)
        found.append(AssistantMessage(content=content) if role == "assistant" else UserMessage(content=content))
    if not found or isinstance(found[-1], AssistantMessage):
        found.append(UserMessage(content=(TextContent(text="Continue."),)))
    return tuple(found)
