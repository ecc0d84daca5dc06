"""Messages that came one after the other and are one for the model (`message_concurrency = "merge"`).

What is stored stays separate. The turn that answers them names those before its own in its options; a caller that asks
a model about that stretch of the conversation, then or later, joins them.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from chat.models import Turn
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages import selectors

MERGED: Final = "merged"
"""Name in a turn's options: ids of the messages that are joined with the turn's own, in order."""

GAP: Final = "\n\n"


def merge_history(session_id: str, history: list[Message]) -> list[Message]:
    """Join adjacent user messages. Two queries if there are any, else none."""
    beside = _side_by_side(history)
    if not beside:
        return history
    owners = {found.id: found.turn_id for found in selectors.find_messages(session_id, beside).values()}
    options = dict(Turn.objects.filter(pk__in=set(owners.values())).values_list("pk", "options"))
    into = {message_id: frozenset(options.get(turn_id, {}).get(MERGED, ())) for message_id, turn_id in owners.items()}
    return join_merged(history, {message_id: ids for message_id, ids in into.items() if ids})


def join_merged(history: Iterable[Message], into: Mapping[str, frozenset[str]]) -> list[Message]:
    """Join each message with those directly before it that it names. It keeps its id and its metadata.

    Shape: `into` is a message's id to the ids of those that are one with it.
    """
    joined: list[Message] = []
    beginnings: list[set[str]] = []  # for each of `joined`: the ids that are in it
    for message in history:
        ids = {message["id"]}
        named = into.get(message["id"], frozenset())
        while joined and beginnings[-1] & named:
            message = {**message, "parts": _together(joined.pop()["parts"], message["parts"])}  # noqa: PLW2901 - grows
            ids |= beginnings.pop()
        joined.append(message)
        beginnings.append(ids)
    return joined


def _together(first: list[Part], second: list[Part]) -> list[Part]:
    """All parts in order; where two texts meet they are one, with a blank line between them."""
    if first and second and first[-1].get("type") == second[0].get("type") == "text":
        text = GAP.join((str(first[-1].get("text", "")), str(second[0].get("text", ""))))
        return [*first[:-1], {"type": "text", "text": text}, *second[1:]]
    return [*first, *second]


def _side_by_side(history: list[Message]) -> list[str]:
    """Ids of users' messages that have another one as their neighbour."""
    found: dict[str, None] = {}
    for first, second in pairwise(history):
        if first["role"] == second["role"] == "user":
            found |= {first["id"]: None, second["id"]: None}
    return list(found)
