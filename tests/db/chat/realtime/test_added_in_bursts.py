"""Messages that programs add in quick succession: tabs get them in few transcripts, each read once a process."""

from collections.abc import Iterator
from typing import Any

import pytest

from chat.instance.handle import AgentHandle
from chat.llm.scripted import ScriptedModel
from chat.reads import snapshots
from chat.realtime.path_changes import PAUSE_SECONDS
from tests.db.chat.conftest import text_message
from tests.db.chat.turns.agents.everyday import MODELS
from tests.inprocess.stage import Stage, person, staged

pytestmark = pytest.mark.django_db(transaction=True)
TABS = 3
CALLS = 10


@pytest.fixture
def stage() -> Iterator[Stage]:
    MODELS["current"] = ScriptedModel("say: yes")
    with staged() as loop:
        made = Stage(loop, *person(), agent="plain", name="burst")
        yield made
        loop.run_until_complete(made.leave())


async def add(stage: Stage, *ids: str) -> None:
    handle = AgentHandle(stage.key)
    for message_id in ids:
        await handle.add_messages(text_message(message_id, "assistant"))


async def taken(stage: Stage) -> list[list[list[str]]]:
    """The lists that each tab was sent since, as ids."""
    await stage.quiet()
    found = []
    for socket in stage.sockets:
        lists = [frame["messages"] for frame in socket.frames if frame["type"] == "cf_agent_chat_messages"]
        found.append([[message["id"] for message in messages] for messages in lists])
        socket.frames.clear()
    return found


def test_a_burst_is_sent_as_two_transcripts_and_read_once_for_all_tabs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"added-{number}" for number in range(CALLS)]
    reads, read = [], snapshots.window_of

    def counted(session_id: str) -> Any:
        reads.append(session_id)
        return read(session_id)

    monkeypatch.setattr(snapshots, "window_of", counted)

    async def play() -> None:
        for _ in range(TABS):
            await stage.connect()
        await taken(stage)
        await add(stage, ids[0])
        assert await taken(stage) == [[ids[:1]]] * TABS
        await add(stage, *ids[1:])
        assert await taken(stage) == [[]] * TABS
        reads.clear()
        await stage.pass_time(PAUSE_SECONDS)
        assert await taken(stage) == [[ids]] * TABS
        assert len(reads) == 1
        await stage.pass_time(10 * PAUSE_SECONDS)
        assert await taken(stage) == [[]] * TABS

    stage.loop.run_until_complete(play())


def test_a_tab_that_was_sent_a_change_with_the_end_of_a_turn_is_not_sent_it_again(stage: Stage) -> None:
    async def play() -> None:
        await stage.connect()
        await taken(stage)
        handle = AgentHandle(stage.key)
        await handle.submit_messages("Hello?")
        await taken(stage)
        await add(stage, "note")
        assert await taken(stage) == [[]]
        await stage.work()
        await stage.quiet()
        frames = list(stage.sockets[0].frames)
        ended = next(at for at, frame in enumerate(frames) if frame.get("done"))
        lists = [at for at, frame in enumerate(frames) if frame["type"] == "cf_agent_chat_messages"]
        assert "note" in [message["id"] for message in frames[lists[-1]]["messages"]]
        assert lists[-1] < ended  # with the end, and not again after it
        stage.sockets[0].frames.clear()
        await stage.pass_time(10 * PAUSE_SECONDS)
        assert await taken(stage) == [[]]

    stage.loop.run_until_complete(play())
