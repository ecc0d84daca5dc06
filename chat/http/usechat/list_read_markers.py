"""Closes the race between GET messages and GET stream of pages without a socket.

So it is kept, for half a minute in Django's cache, which turns the list was read without, and a page that asks then
follows these too, to their ends. Nothing in a request names the page: what is kept is of the user's last list of the
conversation. With an entry that is lost the answer comes with the next list.
"""

import logging
from typing import Final

from redis.exceptions import RedisError

from chat.models import AgentInstance, Turn
from chat.reads.snapshots import Snapshot
from chat.reads.transcript_windows import kept_windows
from chat.turns.state.active import turns_here
from thinkproject.kernel.cache import shared_cache

logger = logging.getLogger(__name__)

KEEP_SECONDS: Final = 30
AGAIN_SECONDS: Final = 2
"""For how long after the first question: React asks twice in development, and a cut line may ask again."""


def list_for_page(snapshot: Snapshot, user_id: int) -> str:
    """The transcript as a page loads it, as JSON; the answers of turns under way are not in it yet."""
    if snapshot.instance_id is None:
        return "[]"
    # The turns first, which the snapshot did: what ends while the list is read is in the list.
    listed = kept_windows.current(snapshot.version)
    _note(
        snapshot.instance_id, user_id, [turn.turn_id for turn in snapshot.turns if turn.assistant_id not in listed.ids]
    )
    return listed.text


def _note(instance_id: str, user_id: int, left_out: list[str]) -> None:
    try:
        if left_out:
            shared_cache().set(_name(instance_id, user_id), left_out, KEEP_SECONDS)
        else:
            shared_cache().delete(_name(instance_id, user_id))
    except (RedisError, OSError):
        logger.warning("not noted", extra={"action": "list_not_noted"})


def turns_for_page(instance: AgentInstance, user_id: int) -> list[Turn]:
    """Turns to stream to a page that has read its list, in order: active ones, and those ended since the read."""
    turns = {turn.pk: turn for turn in turns_here(instance)}
    ended = _left_out(instance, user_id) - turns.keys()
    if ended:
        rows = Turn.objects.filter(pk__in=ended, instance=instance, session_id=instance.session_id)
        rows = rows.filter(generation=instance.generation).select_related("fiber")  # none from before a clear
        turns |= {turn.pk: turn for turn in rows}
    return sorted(turns.values(), key=lambda turn: turn.position)


def _left_out(instance: AgentInstance, user_id: int) -> set[str]:
    name = _name(instance.pk, user_id)
    try:
        found = shared_cache().get(name)
        if found:
            shared_cache().touch(name, AGAIN_SECONDS)
    except (RedisError, OSError):
        logger.warning("not known", extra={"action": "list_not_known"})
        return set()
    return set(found or ())


def _name(instance_id: str, user_id: int) -> str:
    return f"think.list.{instance_id}.{user_id}"
