"""Ask an agent how its session is configured."""

from chat.core.session_setup import SessionSetup
from chat.think import Think
from chat.turns.calling import decide


async def configured_session(agent: Think) -> SessionSetup:
    """What `configure_session` chose. Errors: `AgentCodeFailed` when the agent's own code raises."""
    setup = SessionSetup()
    configured = await decide(agent, "configure_session", setup)
    return configured if isinstance(configured, SessionSetup) else setup
