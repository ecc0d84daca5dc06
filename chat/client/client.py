"""`ChatClient`: one conversation with one agent, from Python.

    async with ChatClient("http://127.0.0.1:8000", agent="assistant", token=token) as chat:
        turn = await chat.send("Hello")
        async for text in turn.texts():
            ...
        answer = await turn.final()

It connects again whenever the connection is lost, and continues where it was. Nothing here needs Django or its
settings.
"""

import asyncio
import secrets
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

from chat.client.answering import Answering
from chat.client.bounded_queue import Backpressure
from chat.client.client_tools import ClientTools
from chat.client.completion import Completion
from chat.client.conversation_state import ConversationState
from chat.client.errors import CallFailed, RequestRefused
from chat.client.http_api import HttpApi
from chat.client.options import Options
from chat.client.requests import ModelRequests, RequestChannel
from chat.client.turn import Turn
from chat.core.wire.client_intent import REGENERATE
from chat.core.wire.frames import Cancel, Clear, StateUpdate, ToolApproval
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.zones import HEADER


class ChatClient(ModelRequests):
    """A client of one conversation; use it with `async with`, in one event loop.

    `url`: the site, with the prefix it is mounted under, if any. `agent`: its name in the address (kebab case). `name`:
    the conversation's. `token`: a bearer token. `tools`: async functions that the model may call and this client runs,
    by name. Errors: entering raises `ConnectionFailed` when there is no connection in time, and `Refused`
    (`NotSignedIn`, `NotYours`, `NoSuchAgent`) when the server refuses for good; after that every method does.
    """

    def __init__(
        self,
        url: str,
        *,
        agent: str,
        name: str = "default",
        token: str = "",
        tools: Mapping[str, Callable[..., Any]] | None = None,
        options: Options | None = None,
    ) -> None:
        self._options = options or Options()
        self._tools = ClientTools(tools or {})
        sent = dict(self._options.headers) | ({"Authorization": f"Bearer {token}"} if token else {})
        if self._options.time_zone:
            sent[HEADER] = self._options.time_zone
        base, path = url.rstrip("/"), f"/agents/{quote(agent, safe='')}/{quote(name, safe='')}"
        self._http_api = HttpApi(base, path, agent, name, sent)
        self._backpressure = Backpressure()
        self._setting = asyncio.Lock()
        self._completion = Completion(self._http_api, self._options)
        self._channel = RequestChannel(
            f"{_socket_base(base)}{path}?_pk={uuid.uuid4()}&_frames=1",
            headers=sent,
            options=self._options,
            backpressure=self._backpressure,
            conversation=ConversationState(
                self._backpressure, fetch_rest=self._completion.fetch_rest, on_ended=self._completion.ended
            ),
        )
        self._conversation = self._completion.conversation = self._channel.conversation
        self._answering = self._completion.answering = Answering(self._channel, self._tools)

    async def __aenter__(self) -> Self:
        self._channel.connection.open()
        try:
            await self._channel.connection.first_ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect. Turns continue on the server; callers that wait here get `ClientClosed`."""
        await self._channel.close()
        await self._completion.close()
        await self._http_api.close()

    # What the client knows

    @property
    def messages(self) -> list[Message]:
        """The messages as last received: the active path, then pending ones; without the running answer."""
        return list(self._conversation.messages)

    @property
    def state(self) -> JSONValue:
        """The agent's state as last received; `None` while it has none."""
        return self._conversation.state

    @property
    def identity(self) -> tuple[str, str] | None:
        """Agent and name, as confirmed by the server; `None` before the first connection."""
        return self._conversation.identity

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._channel.connection.is_ready

    async def get_messages(self) -> list[Message]:
        """Read the messages over HTTP, as they are stored now. Errors: `ConnectionFailed`, `Refused`."""
        return await self._http_api.messages()

    # Turns

    async def send(self, content: str | Sequence[Part], *, message_id: str = "", **body: JSONValue) -> Turn:
        """Send a message. Once this returns the message is stored, and its turn runs even if this client goes away.

        `content`: a text, or parts of a message. `body`: custom fields of this request. A connection that is lost on
        the way is made again and the same request is sent again: it is one turn. Errors: `RequestRefused` with the
        server's reason, and then nothing has changed; `Refused`.
        """
        message = user_message(content, message_id)
        turn = await self._answering.ask([message], self._options.body | body)
        if all(known.get("id") != message["id"] for known in self._conversation.messages):
            self._conversation.messages = [*self._conversation.messages, message]
        return turn

    async def edit(self, message_id: str, content: str | Sequence[Part], **body: JSONValue) -> Turn:
        """Edit an earlier user message: a new version is stored beside the old one. Otherwise as `send`."""
        return await self._answering.ask([user_message(content, message_id)], self._options.body | body)

    async def regenerate(self, message_id: str = "", **body: JSONValue) -> Turn:
        """Have a message answered once more (the last one of yours if none is named); both answers are kept. As `send`.

        `message_id` is that of the user's message.
        """
        mine = [m for m in self._conversation.messages if m.get("role") == "user" and message_id in {"", m.get("id")}]
        if not mine:
            raise RequestRefused(f"There is no message of yours {message_id!r} in this conversation.")
        return await self._answering.ask([mine[-1]], self._options.body | body, trigger=REGENERATE)

    async def turns(self) -> AsyncGenerator[Turn, None]:
        """Give the turns that others ask for (people, other clients, the server itself), from now on, as they begin."""
        watcher = self._conversation.registry.watch()
        try:
            async with aclosing(watcher.read()) as found:
                async for turn in found:
                    yield turn
        finally:
            self._conversation.registry.unwatch(watcher)

    async def cancel(self, turn: Turn | str) -> None:
        """Stop a turn (or the request of this id), also one of others.

        The partial answer is kept. Safe to call twice.
        """
        request_id = turn if isinstance(turn, str) else turn.request_id
        await self._channel.deliver(Cancel(id=request_id), repeats=True)

    async def clear(self) -> None:
        """Delete all messages; active turns end as aborted. Errors: `Disconnected`, when the outcome is unknown."""
        await self._channel.deliver(Clear(), repeats=False)
        self._conversation.messages = []

    async def approve(
        self,
        call_id: str,
        *,
        edited_input: JSONObject | None = None,
        always: Literal["conversation", "owner"] | None = None,
        answers: Sequence[Sequence[str]] | None = None,
    ) -> Turn | None:
        """Let a call run that waits for approval; returns the turn that goes on from it, if one does already.

        The first decision of anybody wins; a later one changes nothing. `edited_input`: all arguments that the call
        runs with instead, where its tool lets people change them. `always`: add the rules that the question offers, for
        this conversation or for all. `answers`: to a question with choices, texts for each. What the server refuses
        changes nothing. Errors, for changed arguments alone: `RequestRefused` when they may not be changed like this or
        the call has been decided already.
        """
        if edited_input is not None:
            return await self._answering.after(self._http_api.approve(call_id, edited_input))
        given = None if answers is None else [list(texts) for texts in answers]
        return await self._answering.deliver([_decision(call_id, is_approved=True, always=always, answers=given)])

    async def deny(self, call_id: str, *, reason: str = "", all_open: bool = False) -> Turn | None:
        """Refuse a call that waits for approval; the model sees the refusal and its reason. As `approve`.

        `all_open`: refuse all that is open in the conversation.
        """
        return await self._answering.deliver([_decision(call_id, is_approved=False, reason=reason, deny_all=all_open)])

    # State and methods

    async def set_state(self, value: JSONValue) -> None:
        """Set the agent's state; stored when this returns. Errors: `RequestRefused`, `Disconnected`."""
        async with self._setting:
            self._conversation.state_error = None
            await self._channel.deliver(
                StateUpdate(state=value), repeats=False, on_handled=lambda: self._conversation.state_is(value)
            )
            if self._conversation.state_error is not None:
                raise RequestRefused(self._conversation.state_error)

    async def call(self, method: str, *args: JSONValue, seconds: float | None = None) -> JSONValue:
        """Call a method of the agent; of a streaming one the last item is returned. Never repeated.

        Errors: `CallFailed` with the method's words, or after `seconds` (`Options.call_seconds`); `Disconnected`.
        """
        limit = self._options.call_seconds if seconds is None else seconds
        result = None
        try:
            async with asyncio.timeout(limit):
                with self._backpressure.awaiting():
                    async with aclosing(self.stream(method, *args)) as answers:
                        async for answer in answers:
                            result = answer
        except TimeoutError as error:
            raise CallFailed(f"RPC call to {method} timed out after {limit:g} s") from error
        return result

    async def stream(self, method: str, *args: JSONValue) -> AsyncGenerator[JSONValue, None]:
        """Call a streaming method and give its items. Errors: `CallFailed`, `Disconnected`."""
        async with aclosing(self._channel.call(method, args)) as answers:
            async for answer in answers:
                yield answer


def user_message(content: str | Sequence[Part], message_id: str = "") -> Message:
    """A person's message: a text or parts, under a new id unless one is given."""
    parts: list[Part] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return {"id": message_id or secrets.token_hex(8), "role": "user", "parts": parts}


def _decision(call_id: str, *, is_approved: bool, **more: Any) -> ToolApproval:
    return ToolApproval(tool_call_id=call_id, approved=is_approved, auto_continue=True, **more)


def _socket_base(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError(f"{url!r} is no address like 'https://chat.example.com'.")
    return url.replace("http", "ws", 1)
