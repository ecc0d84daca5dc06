"""`AgentFacet`: an agent without a chat that keeps values by key, for parts of a larger one.

    class Index(AgentFacet):
        async def rebuild(self) -> None:
            await self.storage.put("built", {"files": 12})

It is an `Agent`: state, schedules, `retry`, fibers and sub-agents are the same.
"""

from typing import Any
from urllib.parse import quote, unquote

from chat.agent.base import Agent
from chat.instances.rows import find_instance
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue, dump, load
from tools_app.core.files.workspace import Workspace

FOLDER = "/storage"


class FacetStorage:
    """JSON values by key, one file each below `/storage` of the workspace of the agent. Durable when a call returns."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def get(self, key: str, default: JSONValue = None) -> JSONValue:
        """The value, or the default where there is none."""
        text = await self._workspace.read_file(_path(key))
        return default if text is None else load(text)

    async def put(self, key: str, value: JSONValue) -> None:
        """Store a value in place of the one before. Errors: `FileFailed` for a key or a value that is too long."""
        await self._workspace.write_file(_path(key), dump(value), media_type="application/json")

    async def delete(self, key: str) -> bool:
        """Forget a value; false where there is none."""
        return await self._workspace.delete_file(_path(key))

    async def keys(self) -> list[str]:
        """The keys, sorted; 1,000 at most."""
        return sorted(unquote(entry.name.removesuffix(".json")) for entry in await self._workspace.read_dir(FOLDER))


class AgentFacet(Agent, abstract=True):
    """An agent without a chat that keeps values by key."""

    @property
    def storage(self) -> FacetStorage:
        """Its values. Nothing is made before the first write."""
        return FacetStorage(self.workspace)

    def on_error(self, error: Exception) -> Any:
        """Run after a method that a schedule calls has failed for good. The failure stays in the schedule's outcome.

        What it raises takes the place of the failure. The schedule goes on. May be sync or async.
        """

    async def is_destroyed(self) -> bool:
        """Whether the instance was deleted, or was never written: its state and its schedules are gone."""
        return await db(find_instance, self.key) is None


def _path(key: str) -> str:
    return f"{FOLDER}/{quote(key, safe='')}.json"
