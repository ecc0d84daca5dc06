"""`agent_chat AGENT`: talk to an agent in the terminal. The turns are ordinary ones: web pages show them too."""

import asyncio
import signal
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand, CommandError

from chat.agent import registry
from chat.agent.appearance import appearance_of
from chat.agent.base import InstanceKey
from chat.conversations.changes import rename_instance
from chat.instance.handle import AgentHandle, ChatResult, TypedMessage
from chat.instances.addresses import is_root_name
from chat.instances.notifications import group_of
from chat.instances.rows import ensure_instance
from chat.instances.waiting import leave_all, wait_until
from chat.llm.adapters.transport import close_clients
from chat.management.inline import agent_name, alone, quiet
from chat.management.questions import ANSWERS, TerminalQuestions
from chat.management.terminal import BOLD, RESET, Screen
from chat.management.users import find_user
from chat.models import Turn
from chat.reads import snapshots
from chat.runtime.turn_callbacks import CallbackCaller, follow_turn, report_end
from chat.runtime.undo import Undone, sentences_of
from chat.turns.state.status import TurnStatus
from fibers.core.states import TERMINAL, FiberStatus
from fibers.execution.own_worker import working_for
from fibers.models import Fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError

PATIENCE_SECONDS = 4.0
PROMPT = "> "
HELP = (
    "Ctrl-C stops an answer, Ctrl-D or /quit leaves, /clear empties the conversation, /compact summarises it, "
    "/title names it, "
    "/undo [files|messages] takes the last answer back, /redo brings it back. While an answer is written elsewhere, "
    "/queue, /steer or /interrupt before a message says what it does. Questions: /once, /always, /reject, /answer."
)
PARTS = {"": (True, True), "files": (True, False), "messages": (False, True)}
DELIVERIES = frozenset({"/queue", "/steer", "/interrupt"})
COMPACT = frozenset({"/compact", "/summarize", "/summarise"})


class Leave(Exception):
    """The person wants to go."""


class Command(BaseCommand):
    help = "Chat with an agent in the terminal; with a pipe, one message a line, answers on standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="Route name or class name of the agent, such as assistant.")
        parser.add_argument("--user", default="", help="Whose conversation; without: the only user's.")
        parser.add_argument("--name", default="terminal", help="Name of the conversation; it goes on where it was.")
        parser.add_argument("--inline", action="store_true", help="Answer in this process; no worker is needed.")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not is_root_name(options["name"]):
            raise CommandError(f"A conversation cannot be named {options['name']!r}.")
        key = InstanceKey(
            owner_id=find_user(options["user"]).pk, agent=agent_name(options["agent"]), name=options["name"]
        )
        # The wrappers of Django's commands add line ends of their own.
        is_terminal = sys.stdin.isatty() and self.stdout.isatty()
        out, err = cast("TextIO", self.stdout._out), cast("TextIO", self.stderr._out)
        screen = Screen(out=out, err=err, is_terminal=is_terminal)
        with ExitStack() as stack:
            if options["inline"]:
                stack.enter_context(alone())
            if options["verbosity"] < 2:
                stack.enter_context(quiet())
            runner = stack.enter_context(asyncio.Runner())
            stack.callback(lambda: runner.run(_close()))
            Talk(key, screen, runner, is_inline=options["inline"]).run()


async def _close() -> None:
    """Leave the channel layer, and close the connections of answers that were written here."""
    await leave_all()
    await close_clients()


class Talk:
    """One sitting. Between turns no loop runs, so that line editing and Ctrl-C are the terminal's own."""

    def __init__(self, key: InstanceKey, screen: Screen, runner: asyncio.Runner, *, is_inline: bool) -> None:
        self._key = key
        self._handle = AgentHandle(key)
        self._appearance = appearance_of(registry.get_agent_class(key.agent))
        self._screen = screen
        self._runner = runner
        self._is_inline = is_inline
        self._questions = TerminalQuestions(key=key, screen=screen)

    def run(self) -> None:
        """Read lines and answer them until the end. Errors: `CommandError` for a failed turn on a pipe."""
        if self._screen.is_terminal:
            with suppress(ImportError):
                import readline  # noqa: F401, PLC0415 - line editing for input(), where there is one
            self._screen.note(f"{self._key.agent}, conversation {self._key.name!r}.")
            self._help()
        with suppress(Leave):
            for line in self._lines():
                self._do(line)

    def _lines(self) -> Iterator[str]:
        if not self._screen.is_terminal:
            yield from (line.strip() for line in sys.stdin)
            return
        while True:
            try:
                # \x01 and \x02 mark what has no width for readline.
                yield input(f"\x01{BOLD}\x02{PROMPT}\x01{RESET}\x02").strip()
            except (EOFError, KeyboardInterrupt):
                self._screen.out.write("\n")
                return

    def _do(self, line: str) -> None:
        if line == "/quit":
            raise Leave
        word, _, rest = line.partition(" ")
        plain = {"/clear": self._clear, "/help": self._help, "/redo": self._redo}
        try:
            if line in plain:
                plain[line]()
            elif word == "/title":
                self._entitle(rest.strip())
            elif word in COMPACT:
                self._runner.run(self._compact(rest.strip()))
            elif line in {"/undo", "/undo files", "/undo messages"}:
                files, messages = PARTS[rest]
                self._report(self._runner.run(self._handle.undo(files=files, messages=messages)), "Undone")
            elif word in ANSWERS:
                self._runner.run(self._reply(line))
            elif line:
                self._runner.run(self._turn(line))
        except ThinkError as error:
            self._fail(error.message)

    def _clear(self) -> None:
        self._runner.run(self._handle.clear())
        self._screen.note("The conversation is empty.")

    def _help(self) -> None:
        own = [f"/{command.name} {command.description}".strip() for command in self._appearance.commands]
        if self._appearance.has_shell:
            own.append("!command runs it, and no model is asked")
        self._screen.note(HELP + (f" Of this agent: {', '.join(own)}." if own else ""))

    def _redo(self) -> None:
        self._report(self._runner.run(self._handle.redo()), "Redone")

    def _entitle(self, title: str) -> None:
        rename_instance(ensure_instance(self._key), title)
        self._screen.note(f"The conversation is called {title!r}.")

    def _report(self, undone: Undone, word: str) -> None:
        for sentence in sentences_of(undone, word):
            self._screen.note(sentence)

    def _fail(self, text: str) -> None:
        if not self._screen.is_terminal:
            raise CommandError(text)
        self._screen.complain(text)

    async def _turn(self, line: str) -> None:
        """Send a message, and show the answer."""
        word, _, rest = line.partition(" ")
        delivery, text = (word[1:], rest.strip()) if word in DELIVERIES else (None, line)
        # An answer that is interrupted takes its questions with it: they are none of this message's.
        gone = {each.id for each in await self._questions.pending()} if delivery == "interrupt" else set()
        stop = asyncio.Event()
        await self._talk(
            self._handle.chat(TypedMessage(text), self._screen, signal=stop, delivery=delivery), stop, gone
        )

    async def _reply(self, line: str) -> None:
        """Answer the question that was shown, and show how the answer goes on."""
        turn, was_parked = await self._questions.reply(line)
        if turn is None:
            await self._questions.show()
            return
        if was_parked:
            self._screen.goes_on()
        else:
            self._screen.on_start(turn.request_id)
        stop = asyncio.Event()
        await self._talk(self._followed(turn, stop), stop)

    async def _followed(self, turn: Turn, stop: asyncio.Event) -> ChatResult:
        ended = await follow_turn(self._key, turn, CallbackCaller(callback=self._screen, signal=stop))
        await report_end(self._screen, ended)
        return ChatResult(
            request_id=ended.request_id,
            turn_id=ended.turn_id,
            status=ended.status,
            message=None,
            error=ended.error_text or None,
        )

    async def _talk(
        self, answer: Coroutine[Any, Any, ChatResult], stop: asyncio.Event, gone: Collection[str] = ()
    ) -> None:
        """Wait for an answer, or for a question in the middle of it; then show what is asked.

        `gone`: ids of questions that do not count.
        """
        talking = asyncio.ensure_future(answer)
        result = None
        async with self._working(), _interrupts(stop, talking):
            watching = asyncio.create_task(self._watch())
            asking = asyncio.create_task(wait_until(partial(self._questions.in_code, gone), group=group_of(self._key)))
            try:
                await asyncio.wait({talking, asking}, return_when=asyncio.FIRST_COMPLETED)
                result = await talking if talking.done() else None
            except asyncio.CancelledError:
                self._screen.end_line()
                raise Leave from None
            finally:
                for task in (watching, asking, talking):
                    task.cancel()  # a turn that waits goes on by itself
        if result is not None and result.status is TurnStatus.ERROR:
            self._fail(result.error or "The turn failed.")
        elif result is not None and result.status is not TurnStatus.COMPLETED:
            self._screen.note("(stopped)")
        await self._questions.show()

    async def _compact(self, instructions: str) -> None:
        """Have older messages summarised, and wait for it; Ctrl-C waits no longer."""
        stop = asyncio.Event()
        compacting = asyncio.ensure_future(self._compacted(instructions))
        async with self._working(), _interrupts(stop, compacting):
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({compacting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        if not compacting.done():
            compacting.cancel()
            self._screen.note("(it goes on by itself)")
            return
        fiber = await compacting
        if fiber.status == FiberStatus.COMPLETED:
            text = "Older messages were summarised." if fiber.result else "There is nothing to summarise yet."
            self._screen.note(text)
        else:
            self._fail((fiber.error or {}).get("message") or "It was stopped.")

    async def _compacted(self, instructions: str) -> Fiber:
        fiber_id = await self._handle.compact(instructions)
        group = group_of(self._key)
        if not await wait_until(partial(_has_begun, fiber_id), group=group, timeout_seconds=PATIENCE_SECONDS):
            self._screen.note("(waiting for a worker, or for what was asked before)")
        await wait_until(partial(_has_ended, fiber_id), group=group)
        return await db(Fiber.objects.get, pk=fiber_id)

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        if not self._is_inline:
            yield
            return
        async with working_for(self._key.owner_id):
            yield

    async def _watch(self) -> None:
        """Print a hint, once, when no worker takes the message."""
        await asyncio.sleep(PATIENCE_SECONDS)
        if self._screen.has_begun:
            return
        turn = await db(snapshots.find_turn, self._key, request_id=self._screen.request_id)
        if turn is None or turn.status is not TurnStatus.PENDING:
            return
        waiting = (await db(snapshots.snapshot, self._key, self._key.owner_id or 0)).turns
        if waiting and waiting[0].status is TurnStatus.RUNNING:
            self._screen.note("(waiting for an earlier answer in this conversation)")
        else:
            self._screen.note(
                f"(no worker has taken this up for {PATIENCE_SECONDS:.0f} s. Start one with `make run`, or answer here "
                f"with --inline. Ctrl-C stops waiting)"
            )


@asynccontextmanager
async def _interrupts(stop: asyncio.Event, talking: "asyncio.Future[Any]") -> AsyncIterator[None]:
    """Ctrl-C stops the answer; once more leaves without waiting for it."""

    def interrupted() -> None:
        if stop.is_set():
            talking.cancel()
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _has_begun(fiber_id: str) -> bool:
    return not await db(Fiber.objects.filter(pk=fiber_id, status=FiberStatus.PENDING).exists)


async def _has_ended(fiber_id: str) -> bool:
    return await db(Fiber.objects.filter(pk=fiber_id, status__in=TERMINAL).exists)
