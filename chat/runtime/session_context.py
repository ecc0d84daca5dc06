"""Open the context of an agent's session: run `configure_session`, take what it declared."""

from chat.agent.think import Think
from chat.conf import chat_settings
from chat.user_code.call_hook import call_hook
from chat.user_code.session_setup import configured_session
from sessions_app.context.session_context import SessionContext
from sessions_app.core.compaction.tokens import counter_named


async def open_context(agent: Think, session_id: str) -> SessionContext:
    """Configure the session and give its context; one without blocks has the text of `get_system_prompt`.

    Errors: `AgentCodeFailed` when the agent's own code raises.
    """
    setup = await configured_session(agent)

    async def base() -> str:
        return str(await call_hook(agent, "get_system_prompt"))

    counter = setup.token_counter or counter_named(chat_settings.token_counter)
    return SessionContext(session_id, setup, counter=counter, base=base)
