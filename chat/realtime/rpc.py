"""The calls of one connection: each runs beside the others and beside the chat, and is answered when it ends."""

import asyncio
from collections.abc import Awaitable, Callable

from chat.agent.base import InstanceKey
from chat.agent.callables import CallableInfo, StreamResult, find_callable
from chat.agent.connection import ClientConnection
from chat.agent.invocation import call, stream
from chat.agent.registry import get_agent_class
from chat.core.wire import frames
from chat.core.wire.limited import with_wait
from chat.errors import AgentNotFound, CallRefused, limit_wait
from chat.instance.instance import make_agent
from chat.runtime.state import acting_for_client
from chat.user_code.call_hook import user_code_boundary
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

MAX_CALLS = 32
"""How many calls of one connection may run at a time; more are refused."""


class CallDispatcher:
    """Runs the methods that a client calls. Closing the connection cancels running calls, which have no receiver."""

    def __init__(
        self,
        key: InstanceKey,
        connection: ClientConnection,
        send: Callable[[str], Awaitable[None]],
        send_state: Callable[[], Awaitable[None]],
    ) -> None:
        self._key = key
        self._connection = connection
        self._send = send
        self._send_state = send_state
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, frame: frames.Rpc) -> None:
        """Begin a call, or refuse it at once."""
        try:
            info = find_callable(get_agent_class(self._key.agent), frame.method)
            if len(self._tasks) >= MAX_CALLS:
                raise CallRefused(f"Too many calls at a time: at most {MAX_CALLS}")
        except (AgentNotFound, CallRefused) as error:
            await self._send(frames.rpc_error(frame.id, translate(error.phrase)))
            return
        task = asyncio.create_task(self._run(frame, info))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel the running calls."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, frame: frames.Rpc, info: CallableInfo) -> None:
        with acting_for_client(self._key, self._connection) as asking:
            try:
                with user_code_boundary(info.attribute):
                    answer = await self._answer(frame, info)
            except ThinkError as error:  # of the developer's own, clients learn that it failed
                answer = with_wait(frames.rpc_error(frame.id, translate(error.phrase)), limit_wait(error))
        if asking.has_set_state:  # the caller sees the new state before the result, however late the notification is
            await self._send_state()
        await self._send(answer)

    async def _answer(self, frame: frames.Rpc, info: CallableInfo) -> str:
        agent = make_agent(self._key)
        if not info.is_streaming:
            result = await call(agent, info, frame.args)
            return frames.rpc_ok(frame.id) if result is None else _encoded(frame.id, result)
        end = frames.rpc_ok(frame.id)
        has_result = False
        async for item in stream(agent, info, frame.args):
            if has_result:
                raise CallRefused(f"Method {info.name} went on after its result")
            if isinstance(item, StreamResult):
                end, has_result = _encoded(frame.id, item.value), True
            else:
                await self._send(_encoded(frame.id, item, done=False))
        return end


def _encoded(call_id: str, result: object, *, done: bool = True) -> str:
    try:
        return frames.rpc_ok(call_id, result, done=done)
    except (TypeError, ValueError) as error:
        raise CallRefused(f"Result is not JSON-serializable: {error}") from error
