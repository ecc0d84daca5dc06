"""An agent's session setup: the result of `configure_session`, and its compaction policy."""

from chat.agent.methods.context import configuring
from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.compaction_policy import CompactionPolicy, compaction_policy
from chat.core.context.session_setup import SessionSetup
from chat.user_code.call_hook import call_hook


async def configured_session(agent: Think) -> SessionSetup:
    """The result of `configure_session`. Errors: `AgentCodeFailed` for exceptions of the agent's code."""
    setup = SessionSetup()
    with configuring():
        configured: SessionSetup | None = await call_hook(agent, "configure_session", setup)
    return setup if configured is None else configured


def policy_of(agent: Think) -> CompactionPolicy:
    """An agent's policy, else the site's.

    Errors: `TurnConfigInvalid` for a name that is none, or values that no conversation could be compacted by.
    """
    if agent.compaction_policy is None:
        return compaction_policy(chat_settings.overflow_formula, source="THINK_OVERFLOW_FORMULA")
    return compaction_policy(agent.compaction_policy)
