"""Requests about undos, as the owner of a conversation."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.models import AgentInstance, Turn
from tests.db.chat.conftest import ApiClient

from .conftest import Room


async def asked(room: Room, method: str, path: str, data: dict[str, Any] | None = None) -> Any:
    assert room.key.owner_id is not None
    user = await User.objects.aget(pk=room.key.owner_id)
    return await sync_to_async(lambda: ApiClient(user).send(method, path, data), thread_sensitive=False)()


async def instance_id(room: Room) -> str:
    return (await AgentInstance.objects.aget(name=room.key.name, agent=room.key.agent)).pk


async def undo(room: Room, turn: Turn, **body: Any) -> Any:
    return await asked(room, "POST", f"/turns/{turn.pk}/undo", body)


async def redo(room: Room, **body: Any) -> Any:
    found = (await asked(room, "GET", f"/instances/{await instance_id(room)}/redo")).json()["revert"]
    return await asked(room, "POST", f"/instances/{await instance_id(room)}/redo", {"revert_id": found["id"], **body})
