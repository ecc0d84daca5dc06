"""Transcripts that cross a request on its way: whatever is late, the question stands above its answer in every tab.

Nothing here is left to chance. The tab sends after each frame in turn, with all later ones under way to it; and each
transcript in turn is late to leave the server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from chat.llm.scripted import ScriptedModel
from chat.reads.transcript_windows import TranscriptText
from chat.realtime.shared_transcripts import SharedTranscripts
from tests.db.chat.conftest import text_message
from tests.db.chat.fuzz.tab import Tab
from tests.db.chat.turns.agents.everyday import MODELS
from tests.inprocess.quiet_loop import QuietLoop
from tests.inprocess.stage import Socket, Stage, person, staged
from thinkproject.kernel.jsonvalue import JSONObject

pytestmark = pytest.mark.django_db(transaction=True)
AFTER_ALL = 1_000
REQUESTS = ("one", "two")


@pytest.fixture
def loop() -> Iterator[QuietLoop]:
    MODELS["current"] = ScriptedModel("say: yes")
    with staged() as made:
        yield made


class Page:
    """One tab with its socket: what has come stays under way until it is received."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tab = Tab("tab", lambda text: self._sent.append(text))
        self._sent: list[str] = []
        self._socket: Socket
        self.received = 0
        self._has_cleared = False

    async def open(self) -> None:
        self.tab.opened()
        self._socket = await self.stage.connect()

    async def hear(self, count: int = AFTER_ALL) -> None:
        """Hear of so many frames at most."""
        for _ in range(min(count, len(self._socket.frames))):
            frame = self._socket.frames.pop(0)
            self.received += 1
            self.tab.hear(frame)
            is_start = '"type":"start"' in str(frame.get("body")) and frame["id"] in REQUESTS
            if is_start and not self._has_cleared:
                assert self.question(frame["id"]) in self.shown, f"{frame['id']} begins without its question"

    async def send(self, request_id: str) -> None:
        """Ask something at the end of what is shown."""
        question = text_message(self.question(request_id), "user")
        self.tab.ask(request_id, [*self.tab.messages, question], "submit-message")
        await self._socket.send(self._sent.pop())
        await self.stage.quiet()

    async def clear(self) -> None:
        """Empty the conversation, whatever is still under way to this tab."""
        self._has_cleared = True
        self.tab.clear()
        await self._socket.send(self._sent.pop())
        await self.stage.quiet()

    async def rest(self) -> None:
        """Let everything come, and compare."""
        await self.stage.work()
        await self.stage.quiet()
        await self.hear()
        stored = [message["id"] for message in await self.stage.transcript()]
        assert self.shown == stored
        assert [message["role"] for message in self.tab.messages] == ["user", "assistant"] * (len(stored) // 2)

    def question(self, request_id: str) -> str:
        """Id of what a request asks; no two conversations share one."""
        return f"question-{self.stage.key.name}-{request_id}"

    @property
    def shown(self) -> list[str]:
        """What the tab shows."""
        return [message["id"] for message in self.tab.messages]


def on_a_new_stage(loop: QuietLoop, name: str, play: Callable[[Stage], Awaitable[int]], user: Any) -> int:
    async def run() -> int:
        stage = Stage(loop, *user, agent="plain", name=name)
        try:
            return await play(stage)
        finally:
            await stage.leave()

    return loop.run_until_complete(run())


@pytest.mark.long
def test_a_question_that_is_sent_after_any_frame_stays_above_its_answer(loop: QuietLoop) -> None:
    """All later frames of the opening, and of the turn before, are under way to the tab when it sends."""
    user = person()

    async def play(stage: Stage, first: int, second: int) -> int:
        page = Page(stage)
        await page.open()
        await page.hear(first)
        await page.send("one")
        await stage.work()
        await stage.quiet()
        await page.hear(second)
        await page.send("two")
        received = page.received
        await page.rest()
        return received

    opening = 3
    for first in range(opening + 1):
        on_a_new_stage(loop, f"first-{first}", lambda stage, first=first: play(stage, first, AFTER_ALL), user)  # type: ignore[misc]  # defaults
    all_frames = on_a_new_stage(loop, "all", lambda stage: play(stage, opening, AFTER_ALL), user)
    assert all_frames > 2 * opening
    for second in range(all_frames - opening):
        on_a_new_stage(loop, f"second-{second}", lambda stage, second=second: play(stage, opening, second), user)  # type: ignore[misc]  # defaults


def test_a_question_stays_above_its_answer_whichever_transcript_is_late(
    loop: QuietLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read before the second question was stored, and would be sent after it."""
    user, read = person(), SharedTranscripts.current

    async def play(stage: Stage, late: int) -> int:
        calls, held, waits = 0, loop.create_future(), False

        async def current(self: SharedTranscripts, key: Any, snapshot: Any = None) -> TranscriptText:
            nonlocal calls, waits
            calls += 1
            is_late = calls == late
            found = await read(self, key, snapshot)
            if is_late:
                waits = True
                await held
            return found

        monkeypatch.setattr(SharedTranscripts, "current", current)
        page = Page(stage)
        await page.open()
        await page.hear()
        for request_id in REQUESTS:
            waited = waits
            await page.send(request_id)
            if waited and not held.done():
                held.set_result(None)
            await stage.work()
            await stage.quiet()
            await page.hear()
        if not held.done():
            held.set_result(None)
        await stage.quiet()
        await page.rest()
        return calls

    number = on_a_new_stage(loop, "none", lambda stage: play(stage, 0), user)
    assert number >= 5, "one for the opening, and two for each turn"
    for late in range(1, number + 1):
        on_a_new_stage(loop, f"late-{late}", lambda stage, late=late: play(stage, late), user)  # type: ignore[misc]  # defaults


@pytest.mark.parametrize("is_late", [False, True])
def test_an_answer_that_is_asked_for_again_stands_alone_below_its_question(
    loop: QuietLoop, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    """The transcript with the former answer was under way. `is_late`: the next one is read when the turn is over."""
    user, read = person(), SharedTranscripts.current
    may_read = asyncio.Event()
    may_read.set()

    async def current(self: SharedTranscripts, key: Any, snapshot: Any = None) -> TranscriptText:
        await may_read.wait()
        return await read(self, key, snapshot)

    monkeypatch.setattr(SharedTranscripts, "current", current)

    async def play(stage: Stage) -> int:
        page = Page(stage)
        await page.open()
        await page.hear()
        await page.send("one")
        await page.rest()
        (question, former) = page.tab.messages
        again = Page(stage)
        again.tab.messages = [question, former]
        await again.open()  # and receives nothing of it yet
        again.tab.ask("two", [question], "regenerate-message")
        if is_late:
            may_read.clear()
        await again._socket.send(again._sent.pop())
        await stage.work()
        if is_late:
            assert len(await stage.transcript()) == 2
            assert former["id"] not in [message["id"] for message in await stage.transcript()]
        may_read.set()
        await stage.quiet()
        shown: list[JSONObject] = again._socket.frames
        begins = next(at for at, frame in enumerate(shown) if '"type":"start"' in str(frame.get("body")))
        for _ in range(begins):
            again.tab.hear(shown.pop(0))
        assert again.shown == [question["id"]]
        while shown:
            again.tab.hear(shown.pop(0))
        assert again.shown == [message["id"] for message in await stage.transcript()]
        return 0

    on_a_new_stage(loop, "again", play, user)


def test_a_tab_that_clears_after_any_frame_shows_nothing(loop: QuietLoop) -> None:
    """All later frames of a turn are under way to the tab when it clears, also the transcript of one that is over."""
    user = person()

    async def play(stage: Stage, taken: int, *, is_over: bool) -> int:
        page = Page(stage)
        await page.open()
        await page.hear()
        opening = page.received
        await page.send("one")
        if is_over:
            await stage.work()
            await stage.quiet()
        await page.hear(taken)
        received = page.received - opening
        await page.clear()
        await page.rest()
        assert page.shown == []
        return received

    for is_over in (False, True):
        frames = on_a_new_stage(loop, f"all-{is_over}", lambda s, o=is_over: play(s, AFTER_ALL, is_over=o), user)  # type: ignore[misc]  # defaults
        for taken in range(frames):
            on_a_new_stage(loop, f"{taken}-{is_over}", lambda s, h=taken, o=is_over: play(s, h, is_over=o), user)  # type: ignore[misc]  # defaults
    assert frames > 5


@pytest.mark.parametrize("by", ["itself", "another tab"])
def test_a_tab_shows_nothing_after_a_clear_whichever_transcript_is_late(
    loop: QuietLoop, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It was read before the conversation was cleared, and would be sent after that."""
    user, read = person(), SharedTranscripts.current

    async def play(stage: Stage, late: int) -> int:
        calls, held = 0, loop.create_future()

        async def current(self: SharedTranscripts, key: Any, snapshot: Any = None) -> TranscriptText:
            nonlocal calls
            calls += 1
            is_late = calls == late
            found = await read(self, key, snapshot)
            if is_late:
                await held
            return found

        page, other = Page(stage), Page(stage)
        await page.open()
        await other.open()
        monkeypatch.setattr(SharedTranscripts, "current", current)
        await page.send("one")
        await stage.work()
        await stage.quiet()
        read_before = calls
        await page.hear()
        await (page if by == "itself" else other).clear()
        held.set_result(None)
        for each in (page, other):
            await each.rest()
            assert each.shown == []
        return read_before

    number = on_a_new_stage(loop, "none", lambda stage: play(stage, 0), user)
    assert number >= 3
    for late in range(1, number + 1):
        on_a_new_stage(loop, f"late-{late}", lambda stage, late=late: play(stage, late), user)  # type: ignore[misc]  # defaults
