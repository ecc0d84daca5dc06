"""Tool choice: the values of hooks, and their form in requests."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from chat.errors import TurnConfigInvalid

_WORDS: Final = ("auto", "none", "required")


def read_tool_choice(choice: Any, names: Collection[str]) -> str:
    """A word, or the name of one of the tools on offer.

    Errors: `TurnConfigInvalid` for anything else, and where a call is demanded and there is nothing to call.
    """
    if isinstance(choice, Mapping):
        choice = choice.get("toolName") if choice.get("type") == "tool" else None
    elif choice in _WORDS and not (choice == "required" and not names):
        return str(choice)
    if isinstance(choice, str) and choice in names:
        return choice
    known = ", ".join(repr(name) for name in names) or "none"
    words = ", ".join(repr(word) for word in _WORDS)
    raise TurnConfigInvalid(
        f"tool_choice must be {words}, or a tool that the model may call, not {choice!r}. Tools: {known}."
    )
