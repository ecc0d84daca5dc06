"""A call on its way through a turn: what all calls of the turn share, and what is its own."""

import functools
from dataclasses import dataclass

from chat.agent.base import Agent
from chat.core.loop.hooks import AuthorizationContext
from chat.core.loop.loop import StepView
from chat.files.reply_parts import ReplyRoom
from chat.turns.conf import turn_settings
from chat.turns.execution.assembly import MakeAgent
from chat.turns.execution.prompting import Prompt
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.actions_above import asked_above
from chat.turns.guarding.turn_guard import TurnGuard
from chat.turns.guarding.turn_rules import TurnRules
from chat.user_code.authorization import ActionGate
from fibers.context import FiberContext
from sessions_app.core.messages import call_texts
from tools_app.calls.services import close_cut_calls, close_inner_calls
from tools_app.core.output_limits import OutputLimit
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall
from tools_app.core.toolset import Toolset


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingTurn:
    """The turn that makes calls, for one attempt."""

    agent: Agent
    facts: TurnFacts
    fiber: FiberContext
    guard: TurnGuard
    permissions: TurnRules
    prompt: Prompt
    view: StepView
    tools: Toolset  # that a person may be asked about
    runnable: Toolset  # these, and the one that reads outputs that were cut
    reply_room: ReplyRoom
    make_agent: MakeAgent

    def limit_of(self, tool_name: str) -> OutputLimit:
        """The bound of what a model is sent of an output."""
        limit = self.runnable.get(tool_name).output_limit if tool_name in self.runnable else None
        return limit or OutputLimit(
            lines=turn_settings.tool_output_lines or None, max_bytes=turn_settings.tool_output_bytes or None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCall:
    """A call of a model, or of code within one. Each step gives the next one the call, changed where need be."""

    turn: CallingTurn
    call: ToolCall
    context: ToolContext
    found: Tool | None  # nothing where no tool of that name can run
    turn_id: str  # that made the call: this one, or one that this one continues
    is_approved: bool = False  # by a person
    was_cut: bool = False  # by a crash: it began in an earlier attempt, and did not wait

    @property
    def tool(self) -> Tool:
        """The tool of a call that has one."""
        assert self.found is not None, "calls of unknown tools are neither asked about nor decided"
        return self.found

    def gate(self) -> ActionGate:
        """The gate of actions for the call."""
        facts = self.turn.facts
        turn = AuthorizationContext(
            request_id=facts.request_id,
            turn_id=facts.turn_id,
            user_id=facts.user_id,
            continuation=facts.is_continuation,
            body=facts.body,
        )
        return ActionGate(
            agent=self.turn.agent,
            turn=turn,
            call_id=self.call.call_id,
            is_approved=self.is_approved,
            above=functools.partial(asked_above, facts.key, turn, self.turn.make_agent),
        )


def close_cut(context: FiberContext, turn_id: str) -> list[str]:
    """Settle the calls that still ran when their turn was stopped or given up, and those within them. Fenced.

    Returns the ids of those that a model made.
    """
    with context.fenced():
        close_inner_calls(turn_id, call_texts.INTERRUPTED)
        return close_cut_calls(turn_id, call_texts.INTERRUPTED)
