"""The client and a peer that drops, doubles, forgets and makes things up."""

import asyncio
import json

import pytest

from chat.client import (
    CallFailed,
    ChatClient,
    ClientClosed,
    ConnectionFailed,
    Disconnected,
    NoSuchAgent,
    NotSignedIn,
    NotYours,
    Options,
    Refused,
    RequestRefused,
    TooManyFrames,
    TurnFailed,
)
from chat.core.wire import frames
from tests.unit.chat.client.peer import Connection, answer, peer, talking

NOISE = ["no json", "[1]", '{"type": "new_in_2030"}', '{"type": "cf_agent_use_chat_response"}', '{"no": "type"}']


async def test_what_is_unknown_is_ignored() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(*NOISE)
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        pieces = answer(request["id"], "one ", "two")
        for piece in pieces:
            await connection.send(*NOISE, piece)
        await connection.send(
            frames.chunk_frame(request["id"], "no json", None),
            frames.chunk_frame(request["id"], '{"type":"from-version-9"}', None),
            frames.chunk_frame(request["id"], '{"type":"text-delta"}', len(pieces)),
        )
        await connection.socket.send(b"binary")
        await connection.send(frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert turn.text == "one two"


async def test_doubled_and_repeated_chunks_count_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        pieces = answer(request["id"], "one ", "two ", "three")
        for number, piece in enumerate(pieces):
            await connection.send(piece, piece, *pieces[:number])
        await connection.send(frames.done(request["id"]), frames.done(request["id"]), pieces[2])

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        assert "".join([text async for text in turn.texts()]) == "one two three"
        assert turn.text == "one two three"


async def test_a_chunk_that_was_lost_is_asked_for_again() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        pieces = answer(request["id"], "one ", "two ", "three")
        await connection.send(*pieces[:2], *pieces[3:])
        assert (await connection.expect("cf_agent_stream_resume_ack"))["id"] == request["id"]
        await connection.send(*answer(request["id"], "one ", "two ", "three", replay=True))
        await connection.send(frames.replay_complete(request["id"]), frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert turn.text == "one two three"


async def test_resume_goes_on_where_it_was() -> None:
    """Resuming, acknowledgement, replay, live: chunks of the replay that were there before count once."""
    sent: dict[str, str] = {}

    async def script(connection: Connection) -> None:
        if connection.number == 0:
            await connection.introduce()
            request = await connection.request()
            await connection.handled()
            sent["id"] = request["id"]
            await connection.send(*answer(request["id"], "one ", "two ", "three")[:4])
            connection.cut()
            return
        pieces = answer(sent["id"], "one ", "two ", "three", replay=True)
        await connection.introduce(frames.resuming(sent["id"]))
        assert (await connection.expect("cf_agent_stream_resume_ack"))["id"] == sent["id"]
        await connection.send(frames.resuming(sent["id"], "other"))  # offered twice, acknowledged once
        await connection.send(
            *pieces[:4], frames.replay_complete(sent["id"]), *answer(sent["id"], "one ", "two ", "three")[4:]
        )
        await connection.send(frames.done(sent["id"]))

    async with talking(script) as (chat, scripted):
        turn = await chat.send("Hello")
        assert "".join([text async for text in turn.texts()]) == "one two three"
        assert turn.outcome == "completed"
        assert [f["type"] for f in scripted.connections[1].received] == ["cf_agent_stream_resume_ack"]


async def test_a_request_that_was_not_accepted_is_sent_again_under_its_id() -> None:
    seen: list[str] = []

    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        seen.append(request["id"])
        if connection.number < 2:
            connection.cut()
            return
        await connection.handled()
        await connection.send(*answer(request["id"], "here"), frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert len(seen) == 3
        assert len(set(seen)) == 1


async def test_an_accepted_turn_is_asked_after_and_not_sent_again() -> None:
    sent: dict[str, str] = {}

    async def script(connection: Connection) -> None:
        await connection.introduce()
        if connection.number == 0:
            sent["id"] = (await connection.request())["id"]
            await connection.handled()
            connection.cut()
            return
        assert (await connection.expect("cf_agent_stream_resume_ack"))["id"] == sent["id"]  # it waits: no answer
        await connection.send(frames.resuming(sent["id"]))  # and begins now
        assert (await connection.expect("cf_agent_stream_resume_ack"))["id"] == sent["id"]
        await connection.send(*answer(sent["id"], "late", replay=True), frames.replay_complete(sent["id"]))
        await connection.send(frames.done(sent["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert turn.text == "late"


async def test_a_refused_request_is_an_error_with_its_reason() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.send(frames.refusal(request["id"], "You have reached a limit."))
        await connection.handled()

    async with talking(script) as (chat, _):
        with pytest.raises(RequestRefused, match="You have reached a limit"):
            await chat.send("Hello")


async def test_a_failed_turn_is_an_error_and_keeps_its_text() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(*answer(request["id"], "half")[:3])
        await connection.send(frames.error(request["id"], "The model fell silent.", done=False, message_ids=["u1"]))
        await connection.send(frames.done(request["id"], "error", message_ids=["u1"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        with pytest.raises(TurnFailed, match="fell silent"):
            [chunk async for chunk in turn]
        with pytest.raises(TurnFailed, match="fell silent"):
            await turn.final()
        assert turn.text == "half"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (4401, NotSignedIn),
        (4403, NotYours),
        (4404, NoSuchAgent),
        (4429, TooManyFrames),
        (1008, Refused),
        (4999, Refused),
    ],
)
async def test_terminal_closes_are_errors_and_not_tried_again(code: int, error: type[Refused]) -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.request()
        await connection.socket.close(code, "Go away.")

    async with talking(script) as (chat, scripted):
        with pytest.raises(error, match="Go away"):
            await chat.send("Hello")
        with pytest.raises(error):
            await chat.call("anything")
        connecting = chat._channel.connection._task
        assert connecting is not None
        await asyncio.wait_for(connecting, 15)  # it has ended, so nothing can connect again
        assert len(scripted.connections) == 1


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, 1012, 1013])
async def test_other_closes_are_lost_lines(code: int) -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        if connection.number == 0:
            await connection.request()
            if code == 1006:
                connection.cut()
            else:
                await connection.socket.close(code)
            return
        request = await connection.request()
        await connection.handled()
        await connection.send(*answer(request["id"], "back"), frames.done(request["id"]))

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        await turn.message()
        assert turn.text == "back"


async def test_a_refusal_before_any_output() -> None:
    async def script(connection: Connection) -> None:
        await connection.socket.close(4404, "There is no agent of this name.")

    with pytest.raises(NoSuchAgent, match="There is no agent of this name"):
        async with talking(script):
            pass


async def test_no_server_listens() -> None:
    async def script(connection: Connection) -> None: ...

    async with peer(script) as scripted:
        port = scripted.port
    options = Options(first_delay=0.01, longest_delay=0.02, ready_seconds=0.2)
    with pytest.raises(ConnectionFailed):
        async with ChatClient(f"http://127.0.0.1:{port}", agent="assistant", options=options):
            pass


async def test_a_frame_that_is_too_large_is_not_sent() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.handled()
        await connection.socket.recv()

    async with talking(script) as (chat, scripted):
        with pytest.raises(RequestRefused, match="bytes"):
            await chat.send("x" * (16 * 1024 * 1024))
        assert scripted.connections[0].received == []


async def test_a_frame_that_the_server_finds_too_large_is_not_sent_for_ever() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.request()
        await connection.socket.close(1009)

    async with talking(script) as (chat, scripted):
        with pytest.raises(RequestRefused, match="too large"):
            await chat.send("x" * 100_000)
        assert len(scripted.connections) == 1


async def test_state_is_read_received_and_set() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce(state={"count": 1})
        assert (await connection.expect("cf_agent_state"))["state"] == {"count": 2}
        await connection.handled()
        await connection.expect("cf_agent_state")
        await connection.send(frames.state_error("State update rejected"))
        await connection.handled()
        await connection.send(frames.state({"count": 3}))
        frame = await connection.expect("rpc")
        await connection.send(frames.rpc_ok(frame["id"], None))

    async with talking(script) as (chat, _):
        assert chat.state == {"count": 1}
        await chat.set_state({"count": 2})
        assert chat.state == {"count": 2}
        with pytest.raises(RequestRefused, match="State update rejected"):
            await chat.set_state("bad")
        await chat.call("after")
        assert chat.state == {"count": 3}


async def test_calls_and_their_ends() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        if connection.number:
            return
        call = await connection.expect("rpc")
        assert (call["method"], call["args"]) == ("add", [1, 2])
        await connection.send(frames.rpc_ok("nobody's", 1), frames.rpc_ok(call["id"], 3))
        call = await connection.expect("rpc")
        await connection.send(*(frames.rpc_ok(call["id"], n, done=False) for n in range(3)), frames.rpc_ok(call["id"]))
        call = await connection.expect("rpc")
        await connection.send(frames.rpc_error(call["id"], "Method nope does not exist"))
        await connection.expect("rpc")  # and no answer
        await connection.expect("rpc")
        connection.cut()

    async with talking(script) as (chat, _):
        assert await chat.call("add", 1, 2) == 3
        assert [item async for item in chat.stream("lines")] == [0, 1, 2]
        with pytest.raises(CallFailed, match="does not exist"):
            await chat.call("nope")
        with pytest.raises(CallFailed, match="timed out"):
            await chat.call("slow", seconds=0.05)
        with pytest.raises(Disconnected):
            await chat.call("cut")


async def test_closing_ends_every_wait() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.request()
        await connection.handled()

    async with talking(script) as (chat, _):
        turn = await chat.send("Hello")
        waiting = asyncio.create_task(turn.final())
        await asyncio.sleep(0)
        await chat.close()
        with pytest.raises(ClientClosed):
            await waiting
        with pytest.raises(ClientClosed):
            await chat.send("more")


async def test_a_peer_that_gives_no_sign_of_life_is_left() -> None:
    """The first peer opens the socket, introduces itself and then receives nothing any more."""

    async def script(connection: Connection) -> None:
        await connection.introduce()
        if connection.number == 0:
            connection.socket.transport.pause_reading()
            return
        request = await connection.request()
        await connection.handled()
        await connection.send(*answer(request["id"], "alive"), frames.done(request["id"]))

    options = Options(first_delay=0.01, longest_delay=0.05, heartbeat_seconds=0.1)
    async with talking(script, options=options) as (chat, scripted):
        turn = await chat.send("Hello")
        await turn.message()
        assert turn.text == "alive"
        assert len(scripted.connections) > 1


async def test_what_is_sent_keeps_a_pace() -> None:
    moments: list[float] = []

    async def script(connection: Connection) -> None:
        await connection.introduce()
        async for text in connection.socket:
            moments.append(asyncio.get_running_loop().time())
            frame = json.loads(text)
            if frame["type"] == "rpc":
                await connection.send(frames.rpc_ok(frame["id"]))

    async with talking(script, options=Options(frames_per_second=10)) as (chat, _):
        await asyncio.gather(*(chat.call("anything") for _ in range(25)))
    most = max(sum(1 for other in moments if 0 <= other - moment < 0.9) for moment in moments)
    assert most <= 10


async def test_turns_of_others_are_given_as_they_begin() -> None:
    begin = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.introduce()
        await begin.wait()
        for number in range(3):
            await connection.send(
                *answer(f"other{number}", str(number), message_id=f"a{number}"), frames.done(f"other{number}")
            )
        await connection.send(frames.done("of nobody"), frames.clear())

    async with talking(script) as (chat, _):
        found = []

        async def watch() -> None:
            async for turn in chat.turns():
                found.append("".join([text async for text in turn.texts()]))
                if len(found) == 3:
                    return

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        begin.set()
        await watching
        assert found == ["0", "1", "2"]


async def test_without_the_api_the_answer_is_the_stored_one() -> None:
    """It ended while the client was away, and the peer has nothing at `/api/v1`."""
    sent: dict[str, str] = {}

    async def script(connection: Connection) -> None:
        if connection.number == 0:
            await connection.introduce()
            sent["id"] = (await connection.request())["id"]
            await connection.handled()
            await connection.send(*answer(sent["id"], "one ", "two")[:3])
            connection.cut()
            return
        await connection.introduce(frames.done(sent["id"], "completed", replay=True), frames.messages([], connect=True))

    async with talking(script) as (chat, scripted):
        scripted.stored = [{"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "one two"}]}]
        turn = await chat.send("Hello")
        assert await turn.message() == scripted.stored[0]
        assert turn.text == "one two"
        assert turn.outcome == "completed"
