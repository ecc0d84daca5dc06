"""An undo takes back all that a turn did to files, wherever its worker died, and a redo brings all of it back."""

import pytest

from chat.agents import Assistant
from chat.crashing.everywhere import CrashEverywhere
from chat.instance.handle import AgentHandle

pytestmark = [pytest.mark.asyncio, pytest.mark.long]
WRITES = 'call tool write {"path": "/f", "content": "second"} id=one\nsay: Done.'


async def files_of(handle: AgentHandle) -> dict[str, str | None]:
    workspace = handle.workspace
    return {each.path: await workspace.read_file(each.path) for each in await workspace.glob("/**") if each.size}


async def test_an_undo_takes_back_what_a_crashed_turn_did(crash_everywhere: CrashEverywhere) -> None:
    async def begin(handle: AgentHandle) -> None:
        await handle.workspace.write_file("/f", "first")

    async def undo(handle: AgentHandle) -> None:
        last = await files_of(handle)  # a call that was cut has written nothing
        undone = await handle.undo()
        assert (await files_of(handle), undone.left, await handle.messages()) == ({"/f": "first"}, [], [])
        await handle.redo()
        assert await files_of(handle) == last
        assert len(await handle.messages()) == 2

    crashes = await crash_everywhere(Assistant, "", begin, WRITES, undo)
    assert "call:one" in {point.key for points in crashes.points for point in points}
