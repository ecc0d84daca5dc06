"""Readers that are slow: memory is bounded, the peer waits, and no one waits for ever."""

import asyncio
import json

import pytest

from chat.client import Options
from chat.core.wire import frames
from tests.unit.chat.client.peer import Connection, answer, chunk, talking


async def test_a_slow_reader_holds_the_peer_back() -> None:
    """The peer can send no more than the buffers on the way hold, until the reader reads."""
    sent = 0
    words = 4000
    word = "x" * 8192

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(
            chunk(request["id"], 0, "start", messageId="a1"), chunk(request["id"], 1, "text-start", id="t")
        )
        for seq in range(words):
            await connection.send(chunk(request["id"], seq + 2, "text-delta", id="t", delta=word))
            sent += 1
        await connection.send(chunk(request["id"], words + 2, "finish"), frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        texts = turn.texts()
        said = len(await anext(texts))
        before = -1
        while sent != before:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.3)  # buffers of the system fill unseen: only standing still shows that they are full
        assert sent < words
        assert chat._backpressure.is_closed
        said += sum([len(text) async for text in texts])
        assert said == words * len(word)
        assert sent == words


async def test_awaiting_the_message_delays_no_other() -> None:
    word = "x" * 8192

    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(*answer(request["id"], *([word] * 1000)), frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert len(turn.text) == 1000 * len(word)
        with pytest.raises(RuntimeError, match="let go"):
            aiter(turn)


async def test_a_loop_that_calls_the_server_for_each_chunk_ends() -> None:
    """The reader is far behind, and what it waits for comes behind what it has not read."""
    word = "x" * 16_384

    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()

        async def tell() -> None:
            await connection.send(*answer(request["id"], *([word] * 500)), frames.done(request["id"]))

        telling = asyncio.create_task(tell())
        async for text in connection.socket:
            await connection.send(frames.rpc_ok(json.loads(text)["id"], "yes"))
        await telling

    async with talking(script, options=Options(frames_per_second=5000)) as (chat, _):
        turn = await chat.send("Hello")
        said = 0
        async for text in turn.texts():
            said += len(text)
            assert await chat.call("is_it_so") == "yes"
        assert said == 500 * len(word)
