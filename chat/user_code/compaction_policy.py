"""By which policy the conversations of an agent are compacted: its class says, else the site."""

from typing import Final

from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.compaction_policy import CompactionPolicy, SiteChoice, compaction_policy

SITE: Final = "THINK_OVERFLOW_FORMULA"


def policy_of(agent: Think) -> CompactionPolicy:
    """The policy of an agent. A preset has what the site says of it, an object counts as it is.

    Errors: `TurnConfigInvalid` for a name that is none, or values that no conversation could be compacted by.
    """
    chosen, site = agent.compaction_policy, site_choice()
    if chosen is None:
        return compaction_policy(chat_settings.overflow_formula, site, source=SITE)
    return compaction_policy(chosen, site)


def site_choice() -> SiteChoice:
    """What the settings say instead of the presets."""
    return SiteChoice(
        reserved_tokens=chat_settings.reserved_tokens,
        keep_tokens=chat_settings.compaction_keep_tokens,
        summary_tokens=chat_settings.compaction_summary_tokens,
        shown_chars=chat_settings.compaction_tool_chars,
        sections=chat_settings.compaction_sections,
    )
