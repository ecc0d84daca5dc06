"""`AgentLoop`: the loop of turns by itself, in memory: no rows, no sockets, no fibers. The same loop as that of turns.

    loop = AgentLoop(model="default", system="Be brief.", tools=[search])
    result = await loop.run([{"role": "user", "parts": [{"type": "text", "text": "Who wrote this?"}]}])

Durability: none. After a crash a run begins anew; calls that need a person's decision fail, since there is no one to
ask.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chat.core.context.context_policy import ContextPolicy, context_policy
from chat.core.wire.chunks import Chunk
from chat.core.wire.ndjson import line_of
from chat.errors import ModelError
from chat.llm.registry import AnyChoice
from chat.threads.done import is_done
from chat.threads.messages import summary_of, text_of_parts
from chat.workers.memory import MemoryJob, MemoryRun
from sessions_app.core.messages.shapes import Message, NewMessage
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool

ResultKind: TypeAlias = Literal["text", "tool-calls-pending", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """The outcome. `text`: of the last step, or the summary of `done`. `message`: the answer with all its parts.

    `tool_calls`: of a single step, calls that were not run: `{toolCallId, toolName, input}`. `error`: for people.
    """

    type: ResultKind
    text: str
    reasoning: str
    message: Message
    tool_calls: tuple[JSONObject, ...] = ()
    error: str = ""


class AgentLoop:
    """A model with a prompt and tools. Holds no conversation: each method is given the messages."""

    def __init__(
        self,
        *,
        model: AnyChoice,
        system: str = "",
        tools: Sequence[Tool] = (),
        max_steps: int = 10,
        policy: ContextPolicy | str = "coding",
    ) -> None:
        """`max_steps`: model calls of one run that may call tools. `policy`: what of the messages the model is sent.

        Errors: `TurnConfigInvalid` for an unknown policy.
        """
        self.model = model
        self.system = system
        self.tools = tuple(tools)
        self.max_steps = max_steps
        self.policy = context_policy(policy)

    async def step(self, messages: Sequence[NewMessage]) -> LoopResult:
        """Ask the model once. Calls that it makes are not run: `tool-calls-pending`. A failure is a result."""
        return await self._result(self._begin(messages, holds_calls=True), None)

    async def run(self, messages: Sequence[NewMessage], *, signal: asyncio.Event | None = None) -> LoopResult:
        """Ask the model and run its calls until it is done: no call, `done`, or `max_steps`. A failure is a result.

        Setting `signal` ends it; what was said until then is the result.
        """
        return await self._result(self._begin(messages), signal)

    def begin(self, messages: Sequence[NewMessage]) -> MemoryRun:
        """A run whose chunks the caller reads."""
        return self._begin(messages)

    async def stream(
        self, messages: Sequence[NewMessage], *, signal: asyncio.Event | None = None
    ) -> AsyncGenerator[str, None]:
        """Run to the end and yield lines of NDJSON (`chat/core/wire/ndjson.py`). Errors: `ModelError`."""
        async with aclosing(until_set(signal, self._begin(messages).chunks())) as chunks:
            async for chunk in chunks:
                line = line_of(chunk)
                if line:
                    yield line

    def _begin(self, messages: Sequence[NewMessage], *, holds_calls: bool = False) -> MemoryRun:
        named: list[Message] = [
            {**message, "id": message.get("id") or new_id("msg"), "role": message.get("role", "user")}
            for message in messages
        ]
        job = MemoryJob(
            model=self.model,
            instructions=self.system,
            messages=named,
            tools=self.tools,
            max_steps=self.max_steps,
            stop_when=(is_done,),
            holds_calls=holds_calls,
            policy=self.policy,
        )
        return MemoryRun(job)

    async def _result(self, run: MemoryRun, signal: asyncio.Event | None) -> LoopResult:
        try:
            async with aclosing(until_set(signal, run.chunks())) as chunks:
                async for _chunk in chunks:
                    pass
        except ModelError as error:
            return result_of(run, error=error.message)
        return result_of(run)


def result_of(run: MemoryRun, *, error: str = "") -> LoopResult:
    """The outcome of a run as far as it has come."""
    parts = run.fold.message["parts"]
    waiting: tuple[JSONObject, ...] = ()
    if run.fold.waits_for_answers:
        waiting = tuple(
            {
                "toolCallId": part["toolCallId"],
                "toolName": str(part.get("toolName") or part["type"].removeprefix("tool-")),
                "input": part.get("input"),
            }
            for part in parts
            if part.get("state") == "input-available"
        )
    kind: ResultKind = "error" if error else ("tool-calls-pending" if waiting else "text")
    return LoopResult(
        type=kind,
        text=run.fold.step_text() or summary_of(parts),
        reasoning=text_of_parts(parts, "reasoning"),
        message=run.fold.message,
        tool_calls=waiting,
        error=error,
    )


async def until_set(signal: asyncio.Event | None, source: AsyncGenerator[Chunk, None]) -> AsyncGenerator[Chunk, None]:
    """Yield from a source until it ends or the signal is set, and close it."""
    async with aclosing(source):
        if signal is None:
            async for chunk in source:
                yield chunk
            return
        stopped = asyncio.ensure_future(signal.wait())
        try:
            while not signal.is_set():
                step: asyncio.Future[Any] = asyncio.ensure_future(anext(source, None))
                await asyncio.wait({step, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not step.done():
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)
                    return
                if step.result() is None:
                    return
                yield step.result()
        finally:
            stopped.cancel()
            await asyncio.gather(stopped, return_exceptions=True)
