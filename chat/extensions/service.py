"""The extensions of one conversation, for its agent, for code of the server, and for people.

The rows are those of `tools_app.extensions`. Here they are brought together with what the agent's class has, and open
pages are notified of a change.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from chat.agent.base import InstanceKey
from chat.agent.think import Think
from chat.instances.notifications import notify_conversation
from chat.instances.rows import ensure_instance, find_instance
from chat.user_code.extensions import class_extensions
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.errors import BlockNotFound
from sessions_app.models import Session
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.extensions.manifest import parse_manifest
from tools_app.extensions import services
from tools_app.extensions.load_tools import listed
from tools_app.extensions.loaded import LoadedExtension, distinct, load_stored
from tools_app.extensions.services import Author, Holder
from tools_app.models.extensions import Extension, ExtensionAuthor, ExtensionLevel


@dataclass(frozen=True, slots=True)
class InstanceExtensions:
    """The extensions of an instance. `agent`: gives an object of its class; `None` where none that chats is served.

    The object is made where it is needed: for what the class brings, and for the labels of its context blocks.
    """

    key: InstanceKey
    agent: Callable[[], Awaitable[Think | None]]

    async def load(
        self,
        manifest: Any,
        source: str,
        *,
        via: str = "code",
        replaces: bool = False,
        user_id: int | None = None,
        granted: Any = None,
    ) -> JSONObject:
        """Load an extension for this conversation. Errors: as `tools_app.extensions.services.load_extension`."""
        holder = await db(self._holder, makes=True)
        author = Author(via=ExtensionAuthor(via), user_id=self.key.owner_id if user_id is None else user_id)
        others = tuple(await self.of_class())
        loaded = await services.load_extension(
            holder, manifest, source, author=author, others=others, replaces=replaces, granted=granted
        )
        await db(self._changed, holder)
        return listed(loaded)

    async def unload(self, name: str) -> bool:
        """Unload one of this conversation's own; false where there is none. The texts of its blocks go with it."""
        holder = await db(self._holder, makes=False)
        if holder is None:
            return False
        labels = await self._labels()
        row = await db(services.unload_extension, holder, name)
        if row is None:
            return False
        await db(partial(_forget_blocks, holder.scope, row, labels))
        await db(self._changed, holder)
        return True

    async def update(  # noqa: PLR0913 - callers name each
        self,
        name: str,
        *,
        source: str | None = None,
        manifest: Any = None,
        via: str = "code",
        user_id: int | None = None,
        expected: str | None = None,
        granted: Any = None,
    ) -> JSONObject:
        """Write a new version. Errors: as `tools_app.extensions.services.update_extension`."""
        holder = await db(self._holder, makes=True)
        author = Author(via=ExtensionAuthor(via), user_id=self.key.owner_id if user_id is None else user_id)
        loaded = await services.update_extension(
            holder, name, author=author, source=source, manifest=manifest, expected=expected, granted=granted
        )
        await db(self._changed, holder)
        return listed(loaded)

    async def list_all(self) -> list[JSONObject]:
        """Running ones, in load order, as models and code read them."""
        return [listed(each) for each in await self.running()]

    async def running(self) -> tuple[LoadedExtension, ...]:
        """Running ones, in load order."""
        holder = await db(self._holder, makes=False)
        scope = "" if holder is None else holder.scope
        return distinct([*await self.of_class(), *await db(load_stored, self.key.owner_id, scope)])

    async def of_class(self) -> list[LoadedExtension]:
        """The extensions that the class brings."""
        agent = await self.agent()
        return [] if agent is None else await class_extensions(agent)

    async def _labels(self) -> Mapping[str, str] | None:
        """Labels of the blocks that extensions brought; `None` where all may be taken for theirs."""
        agent = await self.agent()
        if agent is None:
            return None
        await agent.instance.open_context()
        return agent.instance.extension_state.labels

    def _holder(self, *, makes: bool) -> Any:
        instance = ensure_instance(self.key) if makes else find_instance(self.key)
        if instance is None:
            return None
        return Holder(level=ExtensionLevel.INSTANCE, owner_id=instance.owner_id, scope=instance.pk)

    def _changed(self, holder: Holder) -> None:
        """Have the next turn render its prompt anew, and tell open pages."""
        for session_id in Session.objects.filter(scope=holder.scope).values_list("pk", flat=True):
            store.forget_prompt(ContextOwner(session_id=session_id))
        notify_conversation(holder.owner_id, holder.scope)


def _forget_blocks(scope: str, row: Extension, labels: Mapping[str, str] | None) -> None:
    """Delete the texts of the blocks that an extension brought."""
    own = [label for label in parse_manifest(row.manifest).blocks if labels is None or labels.get(label) == row.prefix]
    for label in own:
        for session_id in Session.objects.filter(scope=scope).values_list("pk", flat=True):
            try:
                store.forget(ContextOwner(session_id=session_id), label)
            except BlockNotFound:
                continue  # it never wrote there
