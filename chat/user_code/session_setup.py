"""Ask an agent how its session is configured."""

from chat.agent.context_verbs import configuring
from chat.agent.think import Think
from chat.core.context.session_setup import SessionSetup
from chat.user_code.call_hook import call_hook


async def configured_session(agent: Think) -> SessionSetup:
    """What `configure_session` chose. Errors: `AgentCodeFailed` when the agent's own code raises."""
    setup = SessionSetup()
    with configuring():
        configured = await call_hook(agent, "configure_session", setup)
    return configured if isinstance(configured, SessionSetup) else setup
