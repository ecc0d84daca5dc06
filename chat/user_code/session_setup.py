"""An agent's session setup: the result of `configure_session`, and its compaction policy."""

from typing import Final

from chat.agent.methods.context import configuring
from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.compaction_policy import CompactionPolicy, SiteChoice, compaction_policy
from chat.core.context.session_setup import SessionSetup
from chat.user_code.call_hook import call_hook


async def configured_session(agent: Think) -> SessionSetup:
    """The result of `configure_session`. Errors: `AgentCodeFailed` for exceptions of the agent's code."""
    setup = SessionSetup()
    with configuring():
        configured: SessionSetup | None = await call_hook(agent, "configure_session", setup)
    return setup if configured is None else configured


SITE: Final = "THINK_OVERFLOW_FORMULA"


def policy_of(agent: Think) -> CompactionPolicy:
    """An agent's policy. The site's settings override a preset, not a policy object.

    Errors: `TurnConfigInvalid` for a name that is none, or values that no conversation could be compacted by.
    """
    chosen, site = agent.compaction_policy, site_choice()
    if chosen is None:
        return compaction_policy(chat_settings.overflow_formula, site, source=SITE)
    return compaction_policy(chosen, site)


def site_choice() -> SiteChoice:
    """The site's overrides of presets."""
    return SiteChoice(
        reserved_tokens=chat_settings.reserved_tokens,
        keep_tokens=chat_settings.compaction_keep_tokens,
        summary_tokens=chat_settings.compaction_summary_tokens,
        shown_chars=chat_settings.compaction_tool_chars,
        sections=chat_settings.compaction_sections,
    )
