"""Hooks of a site for all its agents. Developers import `Plugin` from `chat.think`."""

from typing import TYPE_CHECKING, Any

from chat.core.loop.hooks import (
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    StepContext,
    StepRecord,
    ToolCallContext,
    ToolOutcome,
    TurnContext,
)

if TYPE_CHECKING:
    from chat.agent.think import Think


class Plugin:
    """Hooks that run before those of each agent's class, in the order of `THINK_PLUGINS`.

    Each is the hook of that name of `Think`, with the agent before its arguments, and may be sync or async. What one
    returns is seen by the next; `None` is no opinion. One object serves all turns of a process, so nothing of a turn is
    kept on it. Errors: as those of the class's own hook.
    """

    def before_turn(self, agent: "Think", context: TurnContext) -> Any:
        """Return a `TurnConfig`; what a later hook says besides is added, what it says otherwise counts."""

    def before_step(self, agent: "Think", context: StepContext) -> Any:
        """Return a `StepConfig`, as in `before_turn`."""

    def before_tool_call(self, agent: "Think", context: ToolCallContext) -> Any:
        """Return `Allow`, whose input the next hook sees; after `Block` or `Substitute` no further one is asked."""

    def after_tool_call(self, agent: "Think", outcome: ToolOutcome) -> Any:
        """See how a call ended."""

    def on_chunk(self, agent: "Think", context: ChunkContext) -> Any:
        """See each chunk. Costs a call per token, so it is only made when overridden."""

    def on_step_finish(self, agent: "Think", record: StepRecord) -> Any:
        """See each step."""

    def on_chat_response(self, agent: "Think", response: ChatResponse) -> Any:
        """See each answer, at least once."""

    def on_chat_error(self, agent: "Think", error: Exception, context: ChatErrorContext) -> Any:
        """Reword an error; the last that returns something counts."""
