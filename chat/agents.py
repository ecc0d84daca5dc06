"""The agent that `make run` serves."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chat.think import Think, Tool, tool

SYSTEM_PROMPT = """\
You are a helpful assistant. Answer plainly and briefly, in the language of the question. Use Markdown where it helps:
lists, tables, and fenced code blocks that name their language. Say so when you do not know something.
"""


@tool
def current_time(time_zone: str = "UTC") -> str:
    """Tell the current date and time.

    Args:
        time_zone: IANA name of a time zone, for example Europe/Berlin.
    """
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return f"There is no time zone {time_zone!r}; use an IANA name such as 'Europe/Berlin'."
    return datetime.now(UTC).astimezone(zone).strftime("%A, %Y-%m-%d %H:%M:%S %Z")


class Assistant(Think):
    """A general assistant."""

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def get_system_prompt(self) -> str:
        """Give a short and stable prompt, which a small model on the CPU has to read only once."""
        return SYSTEM_PROMPT

    def get_tools(self) -> list[Tool]:
        """Offer one harmless tool."""
        return [current_time]
