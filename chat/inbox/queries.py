"""Agents over tables of a developer's own: what is to be done comes from a query, and what was done is written back.

One fiber for each session of such an agent works at a time: it asks for what is pending, has the answer generated, and
writes it back in the transaction that records the cycle, until nothing is pending. It has no inbox.
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from chat.core.durable_names import QUERY_AGENT
from chat.core.loop.hooks import AgentContext, AgentInput
from chat.workers.memory import MemoryJob, run_in_memory, to_messages
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.services import start_fiber
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from tools_app.core.tool import Tool

logger = logging.getLogger(__name__)

MAX_RETRIES: Final = 3

Pending: TypeAlias = Callable[[str], Sequence[JSONObject]]
"""From the session to the rows that are to be done, as JSON; sync, in the database's thread."""

Respond: TypeAlias = Callable[[str, Sequence[JSONObject], AgentContext], None]
"""Takes the answer and its rows, and writes both back; sync, in the transaction that records the cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAgent:
    """An agent over tables of a developer's own. Made by `create_agent`."""

    name: str
    instructions: str
    model: Any
    pending_work: Pending
    build_messages: Callable[[Sequence[JSONObject], AgentContext], Any]
    on_response: Respond
    generate: Callable[[AgentInput], Awaitable[str]] | None = None
    on_error: Callable[[Exception, Sequence[JSONObject], AgentContext], Any] | None = None
    description: str = ""
    tools: Sequence[Tool] = field(default=())
    max_steps: int = 10

    def wake(self, session: str) -> None:
        """Have what is pending in a session done. Sync; in the caller's transaction, so that it comes with the rows.

        Nothing is started where a fiber waits already: it will find them.
        """
        waiting = Fiber.objects.live_in(self._lane(session)).filter(status=FiberStatus.PENDING, attempt=0)
        if not waiting.exists():
            start_fiber(
                f"{QUERY_AGENT}:{self.name}",
                {"session": session},
                lane=self._lane(session),
                scope=self._lane(session),
                max_retries=MAX_RETRIES,
            )

    async def has_pending_work(self, session: str) -> bool:
        """Whether anything is pending. One query of the developer's."""
        return bool(await db(self._pending, session))

    async def run_generation_cycle(self, context: FiberContext, number: int) -> bool:
        """Do one batch; false where nothing is pending. The rows of a batch are fixed before the model is asked."""
        session = str(context.payload["session"])
        about = AgentContext(agent_name=self.name, session=session)
        rows = await context.step(f"pending:{number}", partial(db, self._pending, session))
        if not rows:
            return False
        if await context.recorded(f"response:{number}") is None:
            try:
                text = await context.step(f"generate:{number}", partial(self._generate, rows, about))
            except Exception as error:
                if self.on_error is not None:
                    await call_user_code(self.on_error, error, rows, about)
                raise
            await db(self._respond, context, number, text, rows, about)
        return True

    def _lane(self, session: str) -> str:
        return f"{QUERY_AGENT}:{self.name}:{session}"

    def _pending(self, session: str) -> JSONValue:
        return load(dump([dict(row) for row in self.pending_work(session)]))

    async def _generate(self, rows: Sequence[JSONObject], about: AgentContext) -> str:
        messages = to_messages(await call_user_code(self.build_messages, rows, about))
        if self.generate is None:
            job = MemoryJob(
                model=self.model,
                instructions=self.instructions,
                messages=messages,
                tools=self.tools,
                max_steps=self.max_steps,
            )
            return (await run_in_memory(job)).text
        given = AgentInput(
            pending=rows,
            messages=messages,
            model=self.model,
            tools=self.tools,
            instructions=self.instructions,
            context=about,
        )
        return str(await call_user_code(self.generate, given))

    def _respond(
        self, context: FiberContext, number: int, text: str, rows: Sequence[JSONObject], about: AgentContext
    ) -> None:
        with context.fenced():
            self.on_response(text, rows, about)
            context.record_in(f"response:{number}", {})


declared: Final[dict[str, QueryAgent]] = {}
"""By name. Modules of agents declare them when they are imported, in every process."""


def members() -> tuple[str, ...]:
    """The names of the agents that this process has."""
    return tuple(declared)


async def run_query_agent(context: FiberContext) -> JSONValue:
    """Run the agent of a fiber until nothing is pending."""
    agent = declared[context.name.partition(":")[2]]
    for number in itertools.count():
        if not await agent.run_generation_cycle(context, number):
            return None
    return None
