"""Two tabs of one person, the worker and the network, in any order; and what must hold when all has come to rest."""

import re
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chat.models import Turn
from chat.turns.admission.tool_answers import ANSWERABLE
from fibers import context as contexts
from fibers.context import FiberContext
from fibers.core.states import TERMINAL
from fibers.testing import die
from sessions_app.core.messages.shapes import Message, Part
from tests.db.chat.fuzz.speaker import KINDS, SPEAKERS, Speaker
from tests.db.chat.fuzz.tab import Tab
from tests.inprocess.stage import Notification, Socket, Stage, person, staged, through
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

T = TypeVar("T")
TABS = st.integers(0, 1)
_people = count()
POLL = 2.5  # longer than a socket waits before it looks whether a turn that did not begin has ended
SHOWN = {
    "approval-responded": [CallStatus.APPROVED],
    "output-available": [CallStatus.SUCCEEDED],
    "output-error": [CallStatus.FAILED],
    "output-denied": [CallStatus.DENIED],
}
"""What the row of a call says where its part shows this."""

LOOK = 6.0  # longer than sockets go without looking at the rows


class TwoTabs(RuleBasedStateMachine):
    """A conversation with two tabs. Everything that is done to it goes on until nothing moves."""

    def __init__(self) -> None:
        super().__init__()
        self.block = staged()
        self.loop = self.block.__enter__()
        user, cookie = person(f"fuzz{next(_people)}")
        self.stage = Stage(self.loop, user, cookie, agent="fuzzed", name="room")
        self.stage.hear = self.notifications
        through(self.stage)
        self.speaker = SPEAKERS["current"] = Speaker()
        self.waiting: list[tuple[int, str]] = []
        self.tabs = [Tab(f"tab{n}", lambda text, n=n: self.waiting.append((n, text))) for n in range(2)]  # type: ignore[misc]
        self.sockets: dict[int, Socket] = {}
        self.numbers = count(1)
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.lost: list[str] = []
        self.doubled = 0
        self.deaths = 0
        self.slow: set[int] = set()  # tabs that do not read for a while
        self.has_lost = False  # a notification, and no one has looked at the rows since
        self.opened_at: dict[int, int] = {}
        contexts.recorded_probes.append(self.probe)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the example's loop."""
        return self.loop.run_until_complete(work)

    def notifications(self, notification: Notification) -> list[Notification]:
        """Lose or double a notification that tells of turns."""
        kind = notification[1]["type"]
        if kind in self.lost:
            self.lost.remove(kind)
            self.has_lost = True
            return []
        if self.doubled and kind.startswith("turn."):
            self.doubled -= 1
            return [notification, notification]
        return [notification]

    def probe(self, context: FiberContext, _key: str) -> None:
        """Die where a worker was asked to."""
        if self.deaths:
            self.deaths -= 1
            die(context)

    async def settle(self) -> None:
        """Until nothing moves: what comes is received, what that makes tabs send is sent."""
        while True:
            for number, text in self._take_waiting():
                if number in self.sockets:
                    await self.sockets[number].send(text)
                    if (line := self.tabs[number].line) is not None:
                        line.has_sent()
            await self.stage.quiet()
            received = False
            for number, socket in self.sockets.items():
                while socket.frames and number not in self.slow:
                    received = True
                    self.tabs[number].hear(socket.frames.pop(0))
            if not received and not self.waiting:
                return

    def _take_waiting(self) -> list[tuple[int, str]]:
        taken, self.waiting = self.waiting, []
        return taken

    async def connect_tab(self, number: int) -> None:
        self.opened_at[number] = await db(self._turn_count)
        self.tabs[number].opened()
        self.sockets[number] = await self.stage.connect(self.tabs[number].label)
        await self.settle()

    def _turn_count(self) -> int:
        return max((turn.position for turn in self._turns()), default=0)

    def _turns(self) -> list[Turn]:
        found = Turn.objects.filter(instance__owner_id=self.stage.key.owner_id)
        return list(found.select_related("fiber", "instance").order_by("position"))

    @initialize()
    def both_come(self) -> None:
        """Two tabs are open."""
        for number in range(2):
            self.run(self.connect_tab(number))


class Network(TwoTabs):
    """What happens to lines and notifications."""

    @rule(number=TABS)
    def connect(self, number: int) -> None:
        if number not in self.sockets:
            self.run(self.connect_tab(number))
            self.tabs[number].probe(next(self.numbers))
            self.run(self.settle())

    @rule(number=TABS)
    def drop(self, number: int) -> None:
        self.slow.discard(number)
        if number in self.sockets:
            self.run(self.stage.disconnect(self.sockets.pop(number)))
            self.tabs[number].lost()

    @rule(number=TABS)
    def look_away(self, number: int) -> None:
        """What comes to this tab is under way until it looks again."""
        self.slow.add(number)

    @rule()
    def look_again(self) -> None:
        self.slow.clear()
        self.run(self.settle())

    @rule(kind=st.sampled_from(["turn.accepted", "turn.settled"]))
    def lose_bell(self, kind: str) -> None:
        self.lost.append(kind)

    @rule()
    def double_bells(self) -> None:
        self.doubled = 3


class Worker(Network):
    """What happens to turns."""

    @rule(words=st.integers(0, 5))
    def work(self, words: int) -> None:
        self.speaker.let(words)
        self.run(self._work())

    async def _work(self) -> None:
        await self.stage.work()
        await self.settle()

    @rule()
    def die_soon(self) -> None:
        self.deaths = 1

    @rule()
    def wait_a_while(self) -> None:
        self.run(self._wait())

    async def _wait(self) -> None:
        self.slow.clear()  # nothing is under way for so long
        self.has_lost = False
        await self.settle()
        await self.stage.pass_time(LOOK)
        await self.settle()


class Person(Worker):
    """What a user does at a tab."""

    def open_tab(self, number: int) -> Tab | None:
        return self.tabs[number] if number in self.sockets else None

    @rule(number=TABS)
    def probe_again(self, number: int) -> None:
        if (tab := self.open_tab(number)) is not None:
            tab.probe(next(self.numbers))
            self.run(self.settle())

    @rule(number=TABS, kind=st.sampled_from(sorted(KINDS)))
    def send(self, number: int, kind: str) -> None:
        if (tab := self.open_tab(number)) is not None:
            number_ = next(self.numbers)
            message: Message = {
                "id": f"u{number_}",
                "role": "user",
                "parts": [{"type": "text", "text": f"{kind} {number_}"}],
            }
            self._ask(tab, [*tab.messages, message], "submit-message")

    @rule(number=TABS, kind=st.sampled_from(sorted(KINDS)), words=st.integers(1, 9))
    def send_and_work(self, number: int, kind: str, words: int) -> None:
        self.send(number, kind)
        self.work(words)

    @rule(number=TABS, who_stops=TABS)
    def send_two_and_stop_the_second(self, number: int, who_stops: int) -> None:
        self.send(number, "talk")
        self.send(number, "talk")
        self.cancel(who_stops, 0)

    @rule(number=TABS, who_clears=TABS, words=st.integers(0, 3))
    def clear_in_mid_answer(self, number: int, who_clears: int, words: int) -> None:
        self.send_and_work(number, "long", words)
        self.clear(who_clears, 2)

    @rule(number=TABS, kind=st.sampled_from(sorted(kind for kind, calls in KINDS.items() if calls)))
    def ask_for_calls(self, number: int, kind: str) -> None:
        """Until the calls are there to be answered."""
        self.send(number, kind)
        self.work(20)

    @rule(number=TABS)
    def come_back(self, number: int) -> None:
        """The line is cut and there again at once."""
        self.drop(number)
        self.connect(number)

    @rule(number=TABS)
    def regenerate(self, number: int) -> None:
        tab = self.open_tab(number)
        if tab is not None and tab.messages and tab.messages[-1]["role"] == "assistant":
            self._ask(tab, tab.messages[:-1], "regenerate-message")

    @rule(number=TABS, kind=st.sampled_from(sorted(KINDS)), at=st.integers(0, 3))
    def edit(self, number: int, kind: str, at: int) -> None:
        tab = self.open_tab(number)
        places = [n for n, message in enumerate(tab.messages) if message["role"] == "user"] if tab else []
        if tab is not None and places:
            place = places[at % len(places)]
            parts: list[Part] = [{"type": "text", "text": f"{kind} {next(self.numbers)}"}]
            edited: Message = {"id": tab.messages[place]["id"], "role": "user", "parts": parts}
            self._ask(tab, [*tab.messages[:place], edited], "submit-message")

    def _ask(self, tab: Tab, messages: list[Message], trigger: str) -> None:
        request_id = f"r{next(self.numbers)}"
        self.asked.append(request_id)
        tab.ask(request_id, messages, trigger)
        self.run(self.settle())

    @rule(number=TABS, back=st.integers(0, 2))
    def cancel(self, number: int, back: int) -> None:
        tab = self.open_tab(number)
        if tab is not None and len(self.asked) > back:
            tab.stop(self.asked[-1 - back])
            self.run(self.settle())

    @rule(number=TABS, sure=st.integers(0, 2))
    def clear(self, number: int, sure: int) -> None:
        if (tab := self.open_tab(number)) is not None and sure == 2:
            tab.clear()
            self.run(self.settle())

    @rule(number=TABS, continues=st.booleans(), fails=st.booleans())
    def answer(self, number: int, continues: bool, fails: bool) -> None:
        tab = self.open_tab(number)
        calls = tab.open_calls("input-available") if tab else []
        if tab is not None and calls:
            self._answer(tab, calls[0], continues=continues, fails=fails)

    @rule(number=TABS, continues=st.booleans())
    def answer_again(self, number: int, continues: bool) -> None:
        """Late, double or about nothing."""
        if (tab := self.open_tab(number)) is not None:
            call_id = self.answered[-1] if self.answered else "call-of-nobody"
            self._answer(tab, call_id, continues=continues, fails=False)

    def _answer(self, tab: Tab, call_id: str, *, continues: bool, fails: bool) -> None:
        self.answered.append(call_id)
        if fails:
            tab.answer(call_id, state="output-error", errorText="no", autoContinue=False)
        else:
            tab.answer(call_id, output={"at": next(self.numbers)}, autoContinue=continues)
        self.run(self.settle())

    @rule(number=TABS, approved=st.booleans())
    def decide(self, number: int, approved: bool) -> None:
        tab = self.open_tab(number)
        calls = tab.open_calls("approval-requested") if tab else []
        if tab is not None and calls:
            self.answered.append(calls[0])
            tab.decide(calls[0], approved=approved)
            self.run(self.settle())

    @rule(number=TABS, approved=st.booleans())
    def decide_again(self, number: int, approved: bool) -> None:
        tab = self.open_tab(number)
        if tab is not None and self.answered:
            tab.decide(self.answered[-1], approved=approved)
            self.run(self.settle())

    @rule(number=TABS, other=TABS, approved=st.booleans())
    def decide_both_ways(self, number: int, other: int, approved: bool) -> None:
        """The second decision comes before anything came of the first."""
        self.ask_for_calls(number, "asks")
        self.decide(number, approved)
        self.decide_again(other, not approved)


class Conversation(Person):
    """All of it, and what must hold at rest."""

    @invariant()
    def tabs_are_right_whenever_nothing_is_under_way(self) -> None:
        """Without a lost notification no one has to wait for anything."""
        if not self.has_lost and not self.slow:
            self.run(self._compare_if_at_rest())

    async def _compare_if_at_rest(self) -> None:
        if all(turn.fiber.status in TERMINAL for turn in await db(self._turns)):
            await self.stage.pass_time(POLL)
            await self.settle()
            await self._compare()

    @rule()
    def rest(self) -> None:
        """Let everything come to its end, and compare."""
        self.run(self._rest())
        self.speaker.free(is_free=False)

    async def _rest(self) -> None:
        self.deaths, self.doubled = 0, 0
        self.lost.clear()
        self.speaker.free(is_free=True)
        for _ in range(3):
            await self._work()
            await self._wait()
        await self._compare()

    async def _compare(self) -> None:
        stored = await self.stage.transcript()
        turns = await db(self._turns)
        for turn in turns:
            assert turn.fiber.status in TERMINAL, f"{turn.request_id} has not ended"
        for number in self.sockets:
            self._compare_tab(number, stored, turns)
        self._compare_words(stored)
        await db(self._compare_calls, stored)

    def _compare_tab(self, number: int, stored: list[Message], turns: list[Turn]) -> None:
        tab = self.tabs[number]
        line = tab.line
        assert line is not None
        assert not line.wrongs, f"{tab.label}: {line.wrongs}"
        ended = [(turn.request_id, turn.trigger, turn.fiber.status, turn.error_text) for turn in turns]
        assert tab.messages == stored, f"{tab.label} shows\n  {tab.messages}\nstored is\n  {stored}\nturns {ended}"
        due = line.sent | line.next_seq.keys()
        # Of turns that were cleared away before it learned of them it need not receive.
        newest = [turn for turn in turns if turn.generation == turn.instance.generation]
        due |= {turn.request_id for turn in newest if turn.position > self.opened_at[number]}
        missing = [request for request in sorted(due) if not line.ends[request]]
        assert not missing, f"{tab.label} was not told the end of {missing}"
        # Who is offered an answer that ends before the offer is taken is sent the end again.
        doubled = {request: times for request, times in line.ends.items() if times > 1 + (request in line.acknowledged)}
        assert not doubled, f"{tab.label} was told ends more than once: {doubled}"

    def _compare_words(self, stored: list[Message]) -> None:
        """Each word once; of each call of the model its beginning, and all of it when it came to its end."""
        for message in stored:
            text = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
            words = re.findall(r"w\d+ ", text) if message["role"] == "assistant" else []
            for said in self.speaker.said:
                mine = [word for word in words if word in said.words]
                assert mine == said.words[: len(mine)], f"{mine} of {said.words}"
                assert not (mine and said.is_finished and mine != said.words), f"{mine} of {said.words}"

    def _compare_calls(self, stored: list[Message]) -> None:
        """The row of each call that was asked outside says what its part shows; what is open can be answered."""
        rows = ToolCallRecord.objects.filter(owner_id=self.stage.key.owner_id)
        status = dict(rows.values_list("call_id", "status"))
        for part in (part for message in stored for part in message["parts"] if "toolCallId" in part):
            said = SHOWN.get(part["state"])
            found = status.get(part["toolCallId"])
            assert found in (said or ANSWERABLE), f"{part['toolCallId']} is {found}, shown as {part['state']}"

    def teardown(self) -> None:
        """Rest, then leave."""
        try:
            self.run(self._rest())
        finally:
            contexts.recorded_probes.remove(self.probe)
            self.run(self.stage.leave())
            self.block.__exit__(None, None, None)
