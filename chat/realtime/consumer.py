"""The sockets at `/agents/{agent}/{name}`: let in, parse, hand over.

Frames and notifications are handled one after another. What takes long, such as following a stream, runs in the
connection's `TurnFeed`.
"""

import logging
from typing import Any, Protocol

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils.translation import activate

from chat.access.auth import Credential, authenticate_scope, check_address, open_key_for, open_shared
from chat.agent.base import InstanceKey
from chat.agent.connection import ClientConnection
from chat.agent.registry import is_served
from chat.core.loop.hooks import ChatErrorContext
from chat.core.wire import frames
from chat.errors import AgentNotFound, AgentUnavailable, FrameInvalid, OriginDenied, Unauthenticated
from chat.instance.resolve import resolve, resolve_now
from chat.instances.addresses import parse_address
from chat.instances.notifications import EVERYONE, group_of, list_group, user_group
from chat.members.selectors import owners_of_shared
from chat.realtime.commands import ClientCommands
from chat.realtime.connection import FAILED, UNAUTHENTICATED, UNKNOWN, Admitted, Connection
from chat.realtime.events import InstanceEvents
from chat.realtime.inbound import AGENTS, Dialect, FrameRefusal, Inbound
from chat.realtime.resume_memory import (
    client_label,
    client_query,
    named_instance,
    reads_own_frames,
    shows_list,
    zone_of_scope,
)
from chat.user_code.call_hook import user_facing_error
from thinkproject.kernel.aio import db
from thinkproject.kernel.languages import language_of
from thinkproject.kernel.zones import enter_zone

logger = logging.getLogger(__name__)

AUTHORITY_SECONDS = 1.0
"""How old the last check of authority may be when a frame comes."""


def raw_path(scope: dict[str, Any]) -> bytes:
    """The path as the client wrote it, where the server keeps it."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path


class _Commands(Protocol):
    async def handle(self, frame: Any, /) -> None: ...

    async def close(self) -> None: ...


class AgentSocket(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """One socket of one user to one instance, whatever its frames are. Subclasses name their dialect."""

    dialect: Dialect[Any]
    connection: Admitted | None = None
    _commands: _Commands
    _events: _Commands

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Route instance notifications to the event handlers, and server messages to this consumer.

        Nothing here uses a database connection of the loop's, so none is looked after as channels would.
        """
        if message["type"].startswith("websocket."):
            await getattr(self, get_handler_name(message))(message)
        elif self.connection is not None:
            await self._events.handle(message)

    async def connect(self) -> None:
        """Let in who may come in. Refusals are accepted and closed, since clients retry a refused upgrade for ever.

        Errors are sent in the language that is asked for now; codes and reasons of closing are part of the protocol.
        """
        activate(language_of(self.scope["headers"]))  # of this connection's task alone
        enter_zone(zone_of_scope(self.scope))  # likewise
        try:
            credential = await db(authenticate_scope, self.scope)
        except OriginDenied:
            await self.close()  # before accepting: 403
            return
        await self.accept()
        if credential is None:
            await self.close(UNAUTHENTICATED, "Sign in first.")
            return
        try:
            key = await self._opened(credential)
        except AgentNotFound as error:
            await self.close(UNKNOWN, error.message)
        except AgentUnavailable as error:
            await self.close(FAILED, error.message)
        except Unauthenticated as error:  # gone since the credential was read
            await self.close(UNAUTHENTICATED, error.message)
        else:
            await self._open(credential, key)

    async def _opened(self, credential: Credential) -> InstanceKey:
        """The address that the URL names, which this user may use. Errors: as `resolve`, `open_key` and `open_shared`.

        With `?instance=` a member opens another's conversation, whose address it is.
        The credential was read a moment ago. Where code of a developer's took its time since, or an instance has to
        exist because its class is gone, the rows are read again.
        """
        address = parse_address(raw_path(self.scope))
        if instance_id := named_instance(self.scope):
            return await db(open_shared, credential.user_id, instance_id, address)
        key = resolve_now(credential.user_id, address)
        if key is not None and is_served(key.agent):
            check_address(credential.user_id, key, exists=False)
            return key
        key = await resolve(credential.user_id, address)
        await db(open_key_for, credential.user_id, key)
        return key

    async def _open(self, credential: Credential, key: InstanceKey) -> None:
        client = ClientConnection(
            id=str(self.channel_name), query=client_query(self.scope), sender=self.send, closer=self.close
        )
        self._inbound = Inbound(credential.user_id, self.dialect)
        # Subscribe first, read second: what happens in between is notified, and handling it twice does no harm.
        self._groups: list[str] = []
        await self.join(group_of(key), user_group(credential.user_id), EVERYONE)
        await self.let_in(credential, key, client)

    async def let_in(self, credential: Credential, key: InstanceKey, client: ClientConnection) -> None:
        """Set what handles frames and notifications; what comes before is not handled."""
        raise NotImplementedError

    async def join(self, *groups: str) -> None:
        """Receive the notifications of further groups."""
        self._groups += groups
        for group in groups:
            await self.channel_layer.group_add(group, self.channel_name)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The client is gone."""
        await self.disconnect(message["code"])
        raise StopConsumer

    async def disconnect(self, code: int) -> None:
        """Leave. Nothing stops: turns belong to the server."""
        if self.connection is None:
            return
        await self._commands.close()
        await self._events.close()
        for group in self._groups:
            await self.channel_layer.group_discard(group, self.channel_name)
        await self.connection.leave(code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one frame. Binary is ignored; a broken frame changes nothing and never closes the socket."""
        del bytes_data
        if text_data is None or self.connection is None or await self._is_refused(self._inbound.refusal(text_data)):
            return
        try:
            frame = await self._inbound.parse(text_data)
            if not await self._is_refused(self._inbound.refusal_of_kind(text_data, frame)):
                await self._commands.handle(frame)
        except FrameInvalid as error:
            logger.info("frame refused", extra={"action": "frame_refused", "reason": error.message})
            context = ChatErrorContext(
                request_id=error.request_id or "", stage="parse", messages_persisted=False, code=error.code
            )
            await self.refuse(error, context)

    async def refuse(self, error: FrameInvalid, context: ChatErrorContext) -> None:
        """Answer a broken frame, if it can be."""
        raise NotImplementedError

    async def _is_refused(self, refusal: FrameRefusal | None) -> bool:
        """Close the socket of a client that sends too much, or whose user may not be here any more."""
        assert self.connection is not None
        if refusal is None:
            seconds = 0.0 if self.connection.is_member else AUTHORITY_SECONDS  # a role may be revoked at any moment
            return not await self.connection.check_authority(max_age_seconds=seconds)
        logger.info("socket closed", extra={"action": "frame_refused", "reason": refusal.reason})
        await self.close(refusal.code, refusal.reason)
        return True


class AgentConsumer(AgentSocket):
    """The socket of the page and of the published clients of agents."""

    dialect = AGENTS
    _lists_of_others: set[str] = set()

    async def let_in(self, credential: Credential, key: InstanceKey, client: ClientConnection) -> None:
        """Follow the instance."""
        connection = Connection(
            credential, key, client, label=client_label(self.scope), shows_list=shows_list(self.scope)
        )
        connection.reads_own_frames = reads_own_frames(self.scope)
        self._commands = ClientCommands(connection)
        self._events = InstanceEvents(connection)
        self.connection = connection
        if connection.shows_list:
            await self.join(list_group(credential.user_id))
            await self._follow_shared()
        await connection.open()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle as every socket does. A change of the user's rights may be one of what is shared with the user."""
        await super().dispatch(message)
        if message["type"] == "authority.changed":
            await self._follow_shared()

    async def _follow_shared(self) -> None:
        """Have a client that shows the list notified of the lines of what others share with its user."""
        connection = self.connection
        if isinstance(connection, Connection) and connection.shows_list:
            owners = await db(owners_of_shared, connection.user_id)
            connection.shared = frozenset(owners)
            wanted = {list_group(owner_id) for owner_id in owners.values()}
            for group in self._lists_of_others - wanted:
                self._groups.remove(group)
                await self.channel_layer.group_discard(group, self.channel_name)
            await self.join(*(wanted - self._lists_of_others))
            self._lists_of_others = wanted

    async def refuse(self, error: FrameInvalid, context: ChatErrorContext) -> None:
        """End the request that a broken frame opened; others change nothing."""
        if context.request_id and self.connection is not None:
            text = await user_facing_error(self.connection.agent, error, context)
            await self.send(frames.refusal(context.request_id, text))
