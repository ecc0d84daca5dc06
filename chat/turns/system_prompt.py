"""The system prompt of a turn: rendered each time, or once and kept with the session."""

from functools import partial

from chat.core.session_setup import SessionSetup
from chat.think import Think
from chat.turns.calling import decide
from sessions_app.selectors import frozen_prompt
from sessions_app.services import freeze_prompt
from thinkproject.kernel.aio import db


async def system_prompt(agent: Think, session_id: str, setup: SessionSetup) -> str:
    """Give the prompt of a configured session. A kept one is used as it is, even when it is empty.

    Errors: `AgentCodeFailed` when the agent's own code raises.
    """
    if setup.caches_prompt and not setup.refreshes_prompt:
        kept = await db(frozen_prompt, session_id)
        if kept is not None:
            return kept
    rendered = str(await decide(agent, "get_system_prompt"))
    if not setup.caches_prompt:
        return rendered
    return await db(partial(freeze_prompt, session_id, rendered, replace=setup.refreshes_prompt))
