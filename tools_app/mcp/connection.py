"""One connection to a server: opened, used by any number of calls at a time, closed, all in a task of its own.

The task is needed because the client of the protocol must be left where it was entered. Questions of the server, for
words of a person or of a model, go to the call that caused them and are answered in that call's own task, so that it
may park its turn.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tools_app.errors import McpUnavailable
from tools_app.mcp.answers import ServerError
from tools_app.mcp.transports import Way

# The client logs each broken connection with a traceback, and what servers send; we log changes of state, once.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)

R = TypeVar("R")
Question: TypeAlias = types.ElicitRequestParams | types.CreateMessageRequestParams
"""What a server asks within a call."""
Answer: TypeAlias = Callable[[Question], Awaitable[Any]]
"""Answers a question; runs in the task of the call. What it raises ends the call."""
CLIENT_INFO: Final = types.Implementation(name="think-for-django", version="1")
REFUSED: Final = types.ErrorData(code=types.INVALID_REQUEST, message="No person can be asked about this.")
UNREADABLE: Final = "Its answer cannot be read: it is no message of the protocol."
CLOSE_SECONDS: Final = 10.0

_call: ContextVar["_Call | None"] = ContextVar("think_mcp_call", default=None)


@dataclass(eq=False, slots=True)
class _Call:
    """A call that is under way, and the questions that it has caused. `can_ask`: there is one who answers them."""

    can_ask: bool
    questions: "asyncio.Queue[tuple[Question, asyncio.Future[Any]]]" = field(default_factory=asyncio.Queue)


class McpConnection:
    """A connection for the loop in which it is made.

    `on_list_changed`: called when the server says that it offers something else.
    """

    def __init__(self, way: Way, *, on_list_changed: Callable[[], None]) -> None:
        self.last_used = 0.0
        self._way = way
        self._on_list_changed = on_list_changed
        self._client: Client | None = None
        self._listening: asyncio.Task[None] | None = None
        self._has_stopped_listening = False
        self._calls: set[_Call] = set()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        is_there = self._client is not None and not self._closing.is_set() and not self._way.ended.is_set()
        return is_there and not self._way.has_lost_session

    @property
    def has_lost_session(self) -> bool:
        """Whether the server has forgotten the session. What it refused for that reason it has not done."""
        return self._way.has_lost_session

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._calls

    async def open(self) -> None:
        """Connect. Errors: `McpUnavailable` with the reason, within `CONNECT_SECONDS`.

        A program may take `THINK_MCP_START_SECONDS`.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready))
        self._task.add_done_callback(_read)
        done, _ = await asyncio.wait({ready, self._task}, timeout=self._way.seconds, return_when="FIRST_COMPLETED")
        if ready.done():
            self.last_used = asyncio.get_running_loop().time()
            return
        if not done:
            self._task.cancel()
            raise McpUnavailable(self._way.reason_of_silence)
        error = None if self._task.cancelled() else self._task.exception()
        raise McpUnavailable(self._way.reason or _words(error)) from error

    async def close(self) -> None:
        """Close it and end the server's program. Calls that are under way fail."""
        self._closing.set()
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1.0)

    async def request(self, make: Callable[[Client], Awaitable[R]], answer: Answer | None = None) -> R:
        """Send a request and wait for its result. A cancel is passed on to the server.

        Errors: `McpUnavailable` where the connection ends; `ServerError` for an error that the server gives; those of
        `answer`.
        """
        client = self._client
        if client is None or not self.is_open:
            raise McpUnavailable(self._way.reason or "The connection to the server has ended.")
        call = _Call(can_ask=answer is not None)
        self._calls.add(call)
        sent = asyncio.create_task(self._send(make, client, call))
        try:
            return await self._result(sent, call, answer)
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED or self._way.ended.is_set():
                raise McpUnavailable(self._way.reason or "The connection to the server has ended.") from error
            raise ServerError(UNREADABLE if _is_unread(error) else error.error.message) from error
        except ValidationError as error:
            raise ServerError(f"(an answer that does not follow the protocol: {_place(error)})") from error
        finally:
            self._calls.discard(call)
            self.last_used = asyncio.get_running_loop().time()
            if not sent.done():
                sent.cancel()
                await asyncio.wait({sent}, timeout=0.2)

    async def _send(self, make: Callable[[Client], Awaitable[R]], client: Client, call: _Call) -> R:
        _call.set(call)
        return await make(client)

    async def _result(self, sent: "asyncio.Task[R]", call: _Call, answer: Answer | None) -> R:
        while True:
            asking = asyncio.create_task(call.questions.get())
            try:
                await asyncio.wait({sent, asking}, return_when="FIRST_COMPLETED")
                if sent.done():
                    return sent.result()
                question, answered = asking.result()
            finally:
                asking.cancel()
            value = REFUSED if answer is None else await answer(question)
            if not answered.done():
                answered.set_result(value)

    async def _live(self, ready: "asyncio.Future[None]") -> None:
        """Be connected until it is to be closed or the server ends it. Raises whatever the transport does."""
        try:
            async with Client(
                self._way.open(),
                elicitation_callback=self._asked,
                sampling_callback=self._asked,
                message_handler=self._heard,
                client_info=CLIENT_INFO,
                cache=None,
            ) as client:
                self._client, self._way.version = client, client.protocol_version
                if not ready.done():
                    ready.set_result(None)
                await self._until_closed(client)
        finally:
            self._client = None
            self._way.ended.set()

    async def _until_closed(self, client: Client) -> None:
        waits = {asyncio.create_task(self._closing.wait()), asyncio.create_task(self._way.ended.wait())}
        self._start_listening(client)
        try:
            await asyncio.wait(waits, return_when="FIRST_COMPLETED")
        finally:
            ending = waits if self._listening is None else {*waits, self._listening}
            for task in ending:
                task.cancel()
            await asyncio.wait(ending, timeout=1.0)

    def listen_again(self) -> bool:
        """Listen to changes again where that has ended; whether some may have been missed."""
        if not self._has_stopped_listening or self._client is None or not self.is_open:
            return False
        self._start_listening(self._client)
        return True

    def _start_listening(self, client: Client) -> None:
        self._has_stopped_listening = False
        self._listening = asyncio.create_task(self._listen(client))
        self._listening.add_done_callback(_read)  # a server need not offer it: its catalogue is read again at times

    async def _listen(self, client: Client) -> None:
        """Follow changes of a server of the newer protocol, which sends them only to those who ask."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or client.server_capabilities.tools is None:
            return
        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
            try:
                async for _ in events:
                    self._on_list_changed()
            finally:
                self._has_stopped_listening = True

    async def _heard(self, message: Any) -> None:
        changes = (
            types.ToolListChangedNotification
            | types.PromptListChangedNotification
            | types.ResourceListChangedNotification
        )
        if isinstance(message, changes):
            self._on_list_changed()

    async def _asked(self, context: Any, params: Any) -> Any:
        """Have the call that caused a question answer it. An older server does not say which one that is."""
        del context  # it knows the connection, not the call
        call = _call.get()
        if call is None:  # the catalogue may be read meanwhile, which causes no questions
            asking = [each for each in self._calls if each.can_ask]
            call = asking[0] if len(asking) == 1 else None
        if call is None:
            return REFUSED
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call.questions.put_nowait((params, answered))
        return await answered


def _is_unread(error: MCPError) -> bool:
    """Whether the client of the protocol made this error of what it could not read."""
    return error.error.code == types.PARSE_ERROR and error.error.message.startswith("Failed to parse")


def _place(error: ValidationError) -> str:
    """Name the place of an answer that is wrong, and what is wanted there: words of ours and names of the protocol."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}"


def _read(task: "asyncio.Task[None]") -> None:
    """Read how a task ended, so that it is not reported as never retrieved."""
    if not task.cancelled():
        task.exception()


def _words(error: BaseException | None) -> str:
    """Words about an error, the innermost one of a group: nothing of what the server or a header may have said."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    match error:
        case MCPError() if _is_unread(error):
            return UNREADABLE
        case MCPError():
            return f"The server answers with an error: {error.error.message[:200]}"
        case FileNotFoundError() | PermissionError():
            return "The program of the server cannot be started."
        case RuntimeError() if "protocol version" in str(error):  # of the client, with the server's version
            return f"{error}."[:300]
        case None:
            return "The server ended the connection."
    return f"The connection failed: {type(error).__name__}"
