"""By which policy the conversations of an agent are compacted: its class says, else the site."""

from typing import Final

from chat.conf import chat_settings
from chat.core.compaction_policy import CompactionPolicy, Numbers, compaction_policy
from chat.think import Think

SITE: Final = "THINK_OVERFLOW_FORMULA"


def policy_of(agent: Think) -> CompactionPolicy:
    """The policy of an agent. A preset has the site's numbers, an object counts as it is.

    Errors: `TurnConfigInvalid` for a name that is none, or numbers that no conversation could be compacted by.
    """
    chosen, numbers = agent.compaction_policy, site_numbers()
    if chosen is None:
        return compaction_policy(chat_settings.overflow_formula, numbers, source=SITE)
    return compaction_policy(chosen, numbers)


def site_numbers() -> Numbers:
    """What the settings say instead of the numbers of presets."""
    return Numbers(
        reserved_tokens=chat_settings.reserved_tokens,
        keep_tokens=chat_settings.compaction_keep_tokens,
        summary_tokens=chat_settings.compaction_summary_tokens,
        shown_chars=chat_settings.compaction_tool_chars,
    )
