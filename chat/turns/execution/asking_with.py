"""The keys with which models are asked: of the person who asked for a turn; for other work the owner's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from chat.access.provider_keys import keys_for_work
from chat.llm.own_keys import own_key_providers, under_own_keys
from chat.members.selectors import user_key
from chat.models import Turn
from fibers.context import FiberContext
from thinkproject.kernel.aio import db


@asynccontextmanager
async def with_keys_of_turn(context: FiberContext) -> AsyncIterator[None]:
    """Run a turn with the keys of whom it answers. Two queries; none where the site takes no keys of people."""
    keys = await db(_keys_of_turn, context.fiber_id) if own_key_providers() else {}
    with under_own_keys(keys):
        yield


@asynccontextmanager
async def with_keys_of_owner(context: FiberContext) -> AsyncIterator[None]:
    """Run other work of a conversation with its owner's keys. One query; none where the site takes none."""
    keys = await db(keys_for_work, context.owner_id) if own_key_providers() else {}
    with under_own_keys(keys):
        yield


def _keys_of_turn(fiber_id: str) -> Any:
    found = Turn.objects.filter(fiber_id=fiber_id).values_list("author", "instance__owner_id").first()
    if found is None:
        return {}
    author, owner_id = found
    return keys_for_work(user_key(author) or owner_id)
