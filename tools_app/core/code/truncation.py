"""Cut the result of code to what a model is to read of it."""

from typing import Final

from sessions_app.core.messages.truncation import END_SHARE

MAX_TOKENS: Final = 6000
CHARS_PER_TOKEN: Final = 4
MAX_CHARS: Final = MAX_TOKENS * CHARS_PER_TOKEN
MARK: Final = "--- TRUNCATED ---"


def truncated(text: str, max_chars: int = MAX_CHARS) -> str:
    """The beginning and the end of a text, and between them how long all of it is; within `max_chars`.

    Nothing changes where it is short enough.
    """
    if len(text) <= max_chars:
        return text
    tokens, limit = len(text) // CHARS_PER_TOKEN, max_chars // CHARS_PER_TOKEN
    note = f"The result has about {tokens} tokens; {limit} are shown. Return less, or only what is needed."
    between = f"\n\n{MARK}\n{note}\n\n"
    end = (max_chars - len(between)) // END_SHARE
    return f"{text[: max_chars - len(between) - end]}{between}{text[len(text) - end :]}"
