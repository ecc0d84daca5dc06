"""The agent that `make run` serves."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.translation import gettext_lazy as _

from chat.think import SessionSetup, Think, Tool, tool

SYSTEM_PROMPT = """\
You are a helpful assistant. Answer plainly and briefly, in the language of the question. Use Markdown where it helps:
lists, tables, and fenced code blocks that name their language. Say so when you do not know something.
"""


@tool(title="Current time", read_only=True)
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

    title = _("Assistant")
    description = _("Answers questions, explains, writes and edits; remembers what you ask it to.")
    icon = "chat"
    suggestions = (
        _("Explain in simple words how vaccines work"),
        _("Write a polite email that asks for a refund"),
        _("Compare a heat pump with a gas boiler in a table"),
        _("What time is it in Tokyo, and may I call there now?"),
    )

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        """Begin with a short and stable text, which a small model on the CPU has to read only once; then remember."""
        return session.with_context("instructions", provider=SYSTEM_PROMPT.strip()).with_memory(
            description="What you know about this person. Keep only what they want you to remember.", max_tokens=500
        )

    def get_tools(self) -> list[Tool]:
        """Offer one harmless tool."""
        return [current_time]
