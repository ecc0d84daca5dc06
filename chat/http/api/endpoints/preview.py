"""The API operations that preview the next model call of a conversation, and what it may cost.

Async, because the agent's own code is asked: its prompt, its tools, its choice of messages.
"""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from chat.access.auth import open_instance
from chat.core.context.project_instructions import NOTHING_WRITTEN, WrittenByPeople
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.context import BlockOut
from chat.http.api.schemas.from_values import shows
from chat.http.api.schemas.usage import NextPriceOut
from chat.instance.instance import make_agent
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.people.preferences import instructions_of
from chat.people.projects import project_context
from chat.reads.next_price import next_price
from chat.reads.preview import Preview, SummarySize, SystemSize, Tail, ToolSize, preview
from thinkproject.kernel.aio import db

router = Router(tags=["context"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])


@shows(SystemSize)
class SystemSizeOut(Schema):
    """The system prompt. `is_kept`: the session stores this prompt."""


class InstructionsSizeOut(Schema):
    """Your instructions for agents, or those of the project, as the model reads them in the system prompt."""

    text: str
    tokens: int


@shows(SummarySize)
class SummarySizeOut(Schema):
    """A summary that is read in the place of the messages from the first to the last."""


@shows(Tail)
class TailOut(Schema):
    """The messages that are sent themselves. `left_out`: older ones that are neither sent nor summarised."""


@shows(ToolSize)
class ToolSizeOut(Schema):
    """A tool as it is declared to the model. `refused`: why the model's server does not take it; empty for none."""


@shows(Preview)
class PreviewOut(Schema):
    """The next call; tokens are estimates. `context_tokens`: the model's limit, 0 if unknown.

    `usable_tokens`: what a conversation may take beside the answer; `is_automatic`: beyond it older messages are
    summarised by themselves. `policy`: the preset that decides what of the messages is sent, empty for another.
    """

    system: SystemSizeOut
    instructions: InstructionsSizeOut | None
    project: InstructionsSizeOut | None
    blocks: list[BlockOut]
    summaries: list[SummarySizeOut]
    tail: TailOut
    tools: list[ToolSizeOut]


@router.get(
    "/instances/{instance_id}/context",
    response=PreviewOut,
    operation_id="preview_context",
    openapi_extra=declares(409, 500),
)
async def context_preview(request: HttpRequest, instance_id: str) -> Preview:
    """Preview the next model call, built by the code of real calls. No model is called."""
    return await _previewed(request, instance_id)


@router.get(
    "/instances/{instance_id}/next-price",
    response=NextPriceOut,
    operation_id="get_next_price",
    openapi_extra=declares(409, 500),
)
async def next_price_detail(request: HttpRequest, instance_id: str) -> NextPriceOut:
    """The cost of answering one more message, from how little to how much. No model is called."""
    seen = await _previewed(request, instance_id)
    found = await next_price(instance_id, seen)
    if found is None:
        return NextPriceOut(model=None, low=None, high=None)
    return NextPriceOut(model=found.model, low=found.low, high=found.high)


async def _previewed(request: HttpRequest, instance_id: str) -> Preview:
    user = caller_of(request).user
    instance = await db(open_instance, user, instance_id)
    session_id, tools = instance.session_id or "", instance.client_tools
    written = await db(_written, instance, user.pk)
    return await preview(key_of(instance), session_id, make_agent, tools, instance.model_choice, written)


def _written(instance: AgentInstance, user_id: Any) -> WrittenByPeople:
    if instance.parent_id:
        return NOTHING_WRITTEN
    return WrittenByPeople(person=instructions_of(user_id), project=project_context(instance, user_id))
