"""Calls that this client runs or decides, against a scripted peer."""

from typing import Any

import pytest

from chat.client import ChatClient
from chat.client.client_tools import ClientTools
from chat.client.turn import Call
from chat.core.wire import frames
from tests.unit.chat.client.peer import Connection, answer, chunk, talking
from tools_app.errors import ToolDeclarationInvalid


async def get_location(precision: int) -> dict[str, Any]:
    """Say where the user is.

    Args:
        precision: Digits after the point.
    """
    return {"latitude": round(47.3769, precision)}


async def fails() -> None:
    """Fail."""
    raise LookupError("no such place")


def called(request_id: str, *calls: tuple[str, str, Any], approval: bool = False) -> list[str]:
    """The chunks of an answer that asks for calls: `(call id, tool, input)`."""
    chunks: list[tuple[str, dict[str, Any]]] = [("start", {"messageId": "a1"}), ("start-step", {})]
    for call_id, name, value in calls:
        chunks.append(("tool-input-available", {"toolCallId": call_id, "toolName": name, "input": value}))
        if approval:
            chunks.append(("tool-approval-request", {"toolCallId": call_id, "approvalId": f"p-{call_id}"}))
    chunks += [("finish-step", {}), ("finish", {"finishReason": "tool-calls"})]
    return [chunk(request_id, seq, kind, **fields) for seq, (kind, fields) in enumerate(chunks)]


async def continued(connection: Connection, text: str) -> None:
    """Answer the question for what goes on: not yet, then the offer, then the replay."""
    probe = await connection.expect("cf_agent_stream_resume_request")
    await connection.send(frames.pending("K", probe["probeId"]), frames.resuming("K"))
    assert (await connection.expect("cf_agent_stream_resume_ack"))["id"] == "K"
    await connection.send(
        *answer("K", text, replay=True, message_id="a2"), frames.replay_complete("K"), frames.done("K")
    )


async def test_the_schema_comes_from_the_signature() -> None:
    [declared] = ClientTools({"get_location": get_location}).declared or ()
    assert declared.name == "get_location"
    assert declared.description == "Say where the user is."
    assert declared.parameters["properties"] == {
        "precision": {"type": "integer", "description": "Digits after the point."}
    }
    assert ClientTools({}).declared is None


def test_a_tool_that_is_not_async_is_refused() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="async"):
        ChatClient("http://127.0.0.1:1", agent="assistant", tools={"len": len})


async def test_calls_that_fail_or_do_not_fit_are_error_results() -> None:
    tools = ClientTools({"get_location": get_location, "fails": fails})
    failed = await tools.run(Call(call_id="c", tool_name="fails", input={}))
    assert (failed.state, failed.error_text) == ("output-error", "no such place")
    misfit = await tools.run(Call(call_id="c", tool_name="get_location", input={"precision": "many"}))
    assert misfit.state == "output-error"
    assert "precision" in (misfit.error_text or "")


async def test_a_tool_runs_and_the_answer_goes_on() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        assert [tool["name"] for tool in request["clientTools"]] == ["get_location"]
        await connection.handled()
        await connection.send(
            *called(request["id"], ("c1", "get_location", {"precision": 1})), frames.done(request["id"])
        )
        result = await connection.expect("cf_agent_tool_result")
        assert result["output"] == {"latitude": 47.4}
        assert (result["toolCallId"], result["state"], result["autoContinue"]) == ("c1", "output-available", True)
        await connection.handled()
        await continued(connection, "You are in Zurich.")

    async with talking(script, tools={"get_location": get_location}) as (chat, _):
        turn = await chat.send("Where am I?")
        final = await turn.final()
        assert final["id"] == "a2"
        assert final["parts"][-1]["text"] == "You are in Zurich."
        assert (await turn.message())["id"] == "a1"


async def test_parallel_calls_are_all_answered_before_anything_goes_on() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        calls = [
            ("c1", "get_location", {"precision": 1}),
            ("c2", "fails", {}),
            ("c3", "get_location", {"precision": 0}),
        ]
        await connection.send(*called(request["id"], *calls), frames.done(request["id"]))
        answered = set()
        for _ in calls:
            answered.add((await connection.expect("cf_agent_tool_result"))["toolCallId"])
            await connection.handled()
        assert answered == {"c1", "c2", "c3"}
        await continued(connection, "done")

    async with talking(script, tools={"get_location": get_location, "fails": fails}) as (chat, _):
        assert (await (await chat.send("Go")).final())["parts"][-1]["text"] == "done"


async def test_a_continuation_that_came_before_it_was_asked_for() -> None:
    """It is sent live, and has ended when the client asks; no one learns that it is another user's."""

    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(
            *called(request["id"], ("c1", "get_location", {"precision": 1})), frames.done(request["id"])
        )
        await connection.expect("cf_agent_tool_result")
        await connection.send(*answer("K", "quick", message_id="a2"), frames.done("K"))
        await connection.handled()
        probe = await connection.expect("cf_agent_stream_resume_request")
        await connection.send(frames.resume_none(reason="idle", probe_id=probe["probeId"]))

    async with talking(script, tools={"get_location": get_location}) as (chat, _):
        assert (await (await chat.send("Go")).final())["parts"][-1]["text"] == "quick"


async def test_a_result_whose_line_was_cut_is_sent_again() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        if connection.number == 0:
            request = await connection.request()
            await connection.handled()
            await connection.send(
                *called(request["id"], ("c1", "get_location", {"precision": 1})), frames.done(request["id"])
            )
            await connection.expect("cf_agent_tool_result")
            connection.cut()
            return
        assert (await connection.expect("cf_agent_tool_result"))["toolCallId"] == "c1"
        await connection.handled()
        await continued(connection, "after all")

    async with talking(script, tools={"get_location": get_location}) as (chat, _):
        assert (await (await chat.send("Go")).final())["parts"][-1]["text"] == "after all"


@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_decision_and_what_goes_on_from_it(is_approved: bool) -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(*called(request["id"], ("c1", "delete_all", {"now": True}), approval=True))
        await connection.send(frames.done(request["id"]))
        decision = await connection.expect("cf_agent_tool_approval")
        assert decision == {
            "type": "cf_agent_tool_approval",
            "toolCallId": "c1",
            "approved": is_approved,
            "autoContinue": True,
        }
        await connection.handled()
        await continued(connection, "as you say")

    async with talking(script) as (chat, _):
        turn = await chat.send("Delete")
        await turn.final()  # it does not wait for people
        assert turn.approvals == [Call(call_id="c1", tool_name="delete_all", input={"now": True})]
        following = await (chat.approve("c1") if is_approved else chat.deny("c1"))
        assert following is not None
        assert (await following.final())["parts"][-1]["text"] == "as you say"


async def test_a_tool_of_another_client_is_ignored() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        request = await connection.request()
        await connection.handled()
        await connection.send(*called(request["id"], ("c1", "of_the_browser", {})), frames.done(request["id"]))

    async with talking(script, tools={"get_location": get_location}) as (chat, scripted):
        turn = await chat.send("Go")
        await turn.final()
        assert [call.tool_name for call in turn.open_calls] == ["of_the_browser"]
        assert "cf_agent_tool_result" not in [frame["type"] for frame in scripted.connections[0].received]
