"""A stream that is offered to a tab that follows it live, as when it asks for the turn behind its answer to a call.

Between the offer and the replay nothing of it may come: a published client reports an error at a chunk without its
beginning, and shows the text of an answer twice that came live after its acknowledgement, and then by the replay.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from chat.llm.scripted import ScriptedModel
from chat.realtime.frame_sender import FrameSender
from chat.realtime.turn_feed import TurnFeed
from tests.db.chat.conftest import text_message
from tests.db.chat.fuzz.tab import Tab
from tests.db.chat.turns.agents.everyday import MODELS
from tests.inprocess.quiet_loop import QuietLoop
from tests.inprocess.stage import Stage, person, staged
from thinkproject.kernel.jsonvalue import JSONObject

pytestmark = pytest.mark.django_db(transaction=True)
OFFER, RESPONSE = "cf_agent_stream_resuming", "cf_agent_use_chat_response"


@pytest.fixture
def offered_loop() -> Iterator[QuietLoop]:
    MODELS["current"] = ScriptedModel("stream 12 words at 10/s")
    with staged() as made:
        yield made


class Follower:
    """A tab that follows a turn which another client has asked for."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.wanted: list[str] = []
        self.tab = Tab("follower", self.wanted.append)
        self.frames: list[JSONObject] = []

    async def open(self) -> None:
        """Come, and see the first words."""
        self.tab.opened()
        self._socket = await self.stage.connect()
        asking = await self.stage.connect()
        body = json.dumps({"messages": [text_message("q", "user")], "trigger": "submit-message"})
        request = {"type": "cf_agent_use_chat_request", "id": "r", "init": {"method": "POST", "body": body}}
        await asking.send(json.dumps(request))
        await self.stage.quiet()
        await self.stage.disconnect(asking)
        await self.stage.work()
        await self.stage.pass_time(0.35)
        self.hear()
        assert len(self.text()) > 0

    def hear(self) -> None:
        """Take what has come."""
        while self._socket.frames:
            self.frames.append(self._socket.frames.pop(0))
            self.tab.hear(self.frames[-1])

    async def probe(self) -> None:
        """Ask for the stream, and get the offer."""
        self.tab.probe(1)
        await self._socket.send(self.wanted.pop())
        await self.stage.quiet()
        self.hear()
        assert self.frames[-1]["type"] == OFFER

    async def acknowledge(self) -> None:
        """Take the offer."""
        await self._socket.send(self.wanted.pop())
        assert self.tab.line is not None
        self.tab.line.has_sent()

    async def end(self) -> None:
        """See the turn to its end, and compare."""
        await self.stage.pass_time(5)
        await self.stage.quiet()
        self.hear()
        assert self.tab.line is not None
        assert self.tab.line.wrongs == []
        assert self.tab.messages == await self.stage.transcript()

    def text(self) -> str:
        """What the tab shows of the answer."""
        return "".join(part["text"] for part in self.tab.messages[-1]["parts"] if part["type"] == "text")

    def behind_the_offer(self) -> list[JSONObject]:
        """Chunks that came behind the offer."""
        at = next(at for at, frame in enumerate(self.frames) if frame["type"] == OFFER)
        return [frame for frame in self.frames[at:] if frame["type"] == RESPONSE and "seq" in frame]


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_chunk_that_is_about_to_be_sent_when_an_offer_is_taken_comes_by_the_replay_alone(
    offered_loop: QuietLoop, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    """It goes on in the moment in which the gate opens. `has_ended`: the turn is over by then."""
    user = person()
    may_send, send, take = asyncio.Event(), FrameSender.chunks, TurnFeed.acknowledged
    may_send.set()

    async def chunks(self: FrameSender, *arguments: Any, **options: Any) -> None:
        await may_send.wait()
        await send(self, *arguments, **options)

    def acknowledged(self: TurnFeed, *arguments: Any) -> None:
        may_send.set()
        take(self, *arguments)

    monkeypatch.setattr(FrameSender, "chunks", chunks)
    monkeypatch.setattr(TurnFeed, "acknowledged", acknowledged)

    async def play() -> None:
        stage = Stage(offered_loop, *user, agent="plain", name="held")
        follower = Follower(stage)
        await follower.open()
        may_send.clear()
        await stage.pass_time(0.2)  # the next words are in hand
        await follower.probe()
        if has_ended:
            await stage.pass_time(5)
        await follower.acknowledge()
        await follower.end()
        seen = [(frame["seq"], frame.get("replay", False)) for frame in follower.behind_the_offer()]
        assert seen[0] == (0, True)
        assert [seq for seq, _ in seen] == list(range(len(seen)))
        await stage.leave()

    offered_loop.run_until_complete(play())


def test_who_has_a_piece_and_an_offer_when_the_turn_ends_gets_the_answer_as_stored(offered_loop: QuietLoop) -> None:
    """A published client may prefer its piece to the transcript; the whole comes behind the end."""
    user = person()

    async def play() -> None:
        stage = Stage(offered_loop, *user, agent="plain", name="piece")
        follower = Follower(stage)
        await follower.open()
        await follower.probe()
        before = len(follower.frames)
        await follower.end()
        kinds = [frame["type"] for frame in follower.frames[before:]]
        assert kinds == ["cf_agent_chat_messages", RESPONSE, "cf_agent_message_updated"]
        assert follower.frames[-2]["done"]
        assert follower.frames[-1]["message"] == (await stage.transcript())[-1]
        await stage.leave()

    offered_loop.run_until_complete(play())
