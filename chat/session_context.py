"""Open the context of an agent's session: run `configure_session`, take what it declared."""

from chat.context_verbs import configuring
from chat.core.session_setup import SessionSetup
from chat.think import Think
from chat.turns.calling import decide
from sessions_app.context.blocks import SessionContext


async def open_context(agent: Think, session_id: str) -> SessionContext:
    """Configure the session and give its context; one without blocks has the text of `get_system_prompt`.

    Errors: `AgentCodeFailed` when the agent's own code raises.
    """
    setup = SessionSetup()
    with configuring():
        configured = await decide(agent, "configure_session", setup)

    async def base() -> str:
        return str(await decide(agent, "get_system_prompt"))

    return SessionContext(session_id, configured if isinstance(configured, SessionSetup) else setup, base=base)
