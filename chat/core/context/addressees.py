"""Several agents in one conversation: whom a question is for, and what each of them sees of the others.

A question names its addressee in its metadata (`{"addressee": "writer"}`), and the answer below it is that agent's. One
without an addressee is for all of them. Plain choice: nothing is stored twice, and people see everything.
"""

from collections.abc import Collection, Sequence
from typing import Final

from sessions_app.core.messages.shapes import Message

ADDRESSEE: Final = "addressee"
"""Key of a message's metadata."""


def addressee_of(messages: Sequence[Message]) -> str:
    """The agent that the last question is for; empty where it names none."""
    for message in reversed(messages):
        if message["role"] == "user":
            return _named(message)
    return ""


def view_of(messages: Sequence[Message], agent: str, *, sees: Collection[str] = (), limit: int = 100) -> list[Message]:
    """The history as one agent sees it, for `assemble_context`: what is for it and for all, with the answers.

    Shape: oldest first; begins with a question. `sees`: the agents whose work it sees as well. `limit`: so many
    messages at most, the newest; an exchange is left out as a whole, but the last one is always there.
    """
    exchanges: list[list[Message]] = []
    for message in messages:
        if message["role"] == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    seen = [each for each in exchanges if _named(each[0]) in {"", agent, *sees}]
    found: list[Message] = []
    for exchange in reversed(seen):
        if found and len(found) + len(exchange) > limit:
            break
        found = [*exchange, *found]
    return found


def _named(message: Message) -> str:
    metadata = message.get("metadata")
    name = metadata.get(ADDRESSEE) if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
