"""At the end of a run: every path of every conversation is shown once more, and everybody's view of it is kept.

An edit or a new answer leaves a path; what was said there is no longer shown to anybody. Showing it again lets the
oracle hold each client and page to every answer, not only to those that were left at the end.
"""

import asyncio
import json
import urllib.request
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tests.acceptance.product import Product
from tests.chaos.evidence import query, read_rooms
from tests.chaos.views import path_of
from tests.chaos.waiting import wait_until

JSONObject = dict[str, Any]
VIEW_SECONDS = 10.0
_INSTANCES = "select name, id from think_chat_agentinstance"


class Viewer(Protocol):
    """A user in a conversation."""

    room: str

    async def ids(self) -> list[str]:
        """Ids of what is held; nothing while something is under way."""
        ...

    async def view(self, leaf: int | None) -> JSONObject:
        """What is held, for the oracle."""
        ...


async def stroll(product: Product, database: str, viewers: Iterable[Viewer]) -> list[JSONObject]:
    """Return the views of all viewers, path by path."""
    by_room: dict[str, list[Viewer]] = {}
    for viewer in viewers:
        by_room.setdefault(viewer.room, []).append(viewer)
    rows = await asyncio.to_thread(query, database, _INSTANCES)
    instances = {row[0]: row[1] for row in rows}
    views: list[JSONObject] = []
    for room, here in by_room.items():
        answers, seen = await _look(database, room, here, views)
        for answer in answers:
            if answer not in seen:
                await asyncio.to_thread(_show, product, instances[room], answer)
                seen |= (await _look(database, room, here, views))[1]
    return views


async def _look(
    database: str, room: str, viewers: Sequence[Viewer], views: list[JSONObject]
) -> tuple[list[str], set[str]]:
    """Keep everybody's view of the path that is shown. Returns all answers and the messages on the path."""
    found = (await asyncio.to_thread(read_rooms, database)).get(room, {"messages": [], "leaf": None})
    path = [message["id"] for message in path_of(found, found["leaf"])]

    async def shows(viewer: Viewer) -> bool:
        return await viewer.ids() == path

    for viewer in viewers:
        await wait_until(lambda viewer=viewer: shows(viewer), seconds=VIEW_SECONDS)  # type: ignore[misc]  # bound at once
        views.append(await viewer.view(found["leaf"]))
    return [message["id"] for message in found["messages"] if message["role"] == "assistant"], set(path)


def _show(product: Product, instance: str, message_id: str) -> None:
    headers = {"Authorization": f"Bearer {product.token('alice')}", "Content-Type": "application/json"}
    body = json.dumps({"message_id": message_id}).encode()
    url = product.url(f"/api/v1/instances/{instance}/leaf")
    with urllib.request.urlopen(urllib.request.Request(url, body, headers, method="PUT"), timeout=20) as answer:
        answer.read()
