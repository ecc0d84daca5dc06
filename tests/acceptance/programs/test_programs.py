"""Programs that use an agent over MCP, with the client of the protocol's authors."""

import asyncio
import contextlib
import json
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.acceptance.product import Product, wait_for
from tests.acceptance.programs.clients import HANDSHAKE, MODERN, connected

both_ways = pytest.mark.parametrize("mode", [MODERN, HANDSHAKE])
SECONDS = 90


def text_of(result: Any) -> str:
    """The text of a result."""
    return "".join(block.text for block in result.content if block.type == "text")


@both_ways
@pytest.mark.smoke
async def test_a_program_lists_and_calls_tools(shared_product: Product, mode: str) -> None:
    async with asyncio.timeout(SECONDS), connected(shared_product, mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"chat", "add", "pay_out", "read", "write"} <= listed.keys()
        assert not listed.keys() & {"secret_plan", "bash", "locate_me"}
        assert listed["add"].annotations is not None
        assert listed["add"].annotations.read_only_hint is True
        result = await client.call_tool("add", {"a": 20, "b": 22})
        assert result.structured_content == {"sum": 42}
        assert not result.is_error


@both_ways
async def test_a_program_talks_and_sees_the_answer_grow(shared_product: Product, mode: str) -> None:
    texts: list[str] = []
    numbers: list[float] = []

    async def on_progress(progress: float, _total: float | None, message: str | None) -> None:
        numbers.append(progress)
        texts.append(message or "")

    async with asyncio.timeout(SECONDS), connected(shared_product, mode=mode) as client:
        result = await client.call_tool(
            "chat",
            {"message": "stream 40 words at 20/s"},
            progress_callback=on_progress,  # type: ignore[arg-type]  # names of parameters
        )
        data = result.structured_content
        assert data["status"] == "completed"
        assert len(texts) > 1
        assert numbers == sorted(numbers)
        assert data["answer"].startswith("".join(texts)[:20])
        again = await client.call_tool("chat", {"message": "say: again", "conversation": data["conversation"]})
        assert again.structured_content["conversation_id"] == data["conversation_id"]
        history = await _history(client, data["conversation"])
        assert [message["role"] for message in history["messages"]] == ["user", "assistant"] * 2


async def test_failures_are_results_and_unknown_tools_errors(shared_product: Product) -> None:
    async with asyncio.timeout(SECONDS), connected(shared_product) as client:
        failed = await client.call_tool("fail", {})
        assert (failed.is_error, "no such thing" in text_of(failed)) == (True, True)
        wrong = await client.call_tool("add", {"a": "one"})
        assert wrong.is_error
        assert "b" in text_of(wrong)
        denied = await client.call_tool("forbidden", {})
        assert denied.is_error or denied.structured_content != "done"
        assert "done" not in text_of(denied)
        for name in ("secret_plan", "bash", "locate_me", "no_such"):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, {})
        broken = await client.call_tool("chat", {"message": "error 400"})
        assert (broken.is_error, broken.structured_content["status"]) == (True, "failed")


async def test_a_call_that_needs_an_approval_never_runs_without(shared_product: Product) -> None:
    async with asyncio.timeout(SECONDS), connected(shared_product, "carol") as client:
        waiting = await client.call_tool("pay_out", {"amount": 7})
        data = waiting.structured_content
        assert (data["status"], data["waits_for"]) == ("waiting", ["Payment"])
        assert data["page"].endswith(f"/c/{data['conversation_id']}")
        assert data["page"] in text_of(waiting)
        # Calls beside it use another conversation, so that the question stays.
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        second = (await client.call_tool("pay_out", {"amount": 8})).structured_content
        assert second["conversation_id"] != data["conversation_id"]
        for approved, conversation in ((True, data), (False, second)):
            await _decide(shared_product, "carol", conversation["conversation_id"], approved=approved)
        paid = await _settled(client, data["conversation"])
        assert (paid["state"], paid["output"]) == ("output-available", "paid 7")
        assert (await _settled(client, second["conversation"]))["state"] == "output-denied"
        messages = (await _history(client, data["conversation"]))["messages"]
        assert [message["text"] for message in messages if message["role"] == "assistant"] == [""]


async def test_an_approval_within_a_chat_is_told_too(shared_product: Product) -> None:
    async with asyncio.timeout(SECONDS), connected(shared_product) as client:
        waiting = await client.call_tool("chat", {"message": 'call tool pay_out {"amount": 9}\nsay: done'})
        assert waiting.structured_content["status"] == "waiting"
        assert waiting.structured_content["waits_for"] == ["Payment"]
        assert not waiting.is_error
        browsers = await client.call_tool("chat", {"message": "call tool locate_me {}\nsay: done"})
        assert browsers.structured_content["waits_for"] == ["Locate me"]


async def test_calls_share_files_even_when_they_overlap(shared_product: Product) -> None:
    async with asyncio.timeout(SECONDS), connected(shared_product, "dave") as client:
        await client.call_tool("write", {"path": "/notes.txt", "content": "kept"})
        slow = asyncio.create_task(client.call_tool("take_time", {"seconds": 3}))
        await _running(client, "mcp-tools", "take_time")
        read = await client.call_tool("read", {"path": "/notes.txt"})
        assert "kept" in text_of(read)
        assert text_of(await slow) == "took 3 in mcp-tools"


@both_ways
async def test_cancelling_stops_the_turn(shared_product: Product, mode: str) -> None:
    name = f"cancelled-{mode}"
    async with asyncio.timeout(SECONDS), connected(shared_product, mode=mode) as client:
        message = {"message": "stream 2000 words at 20/s", "conversation": name}
        call = asyncio.create_task(client.call_tool("chat", message))
        turn = await asyncio.to_thread(wait_for, lambda: _turn(shared_product, "alice", name))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        ended = await asyncio.to_thread(wait_for, lambda: _ended(shared_product, "alice", turn["id"]))
        assert ended["status"] == "aborted"
        assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"sum": 2}


async def test_any_process_serves_any_request_and_cancels_what_another_runs(make_product: Any) -> None:
    product = make_product(webs=2)
    headers = {
        "Authorization": f"Bearer {product.token('alice')}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
        "Mcp-Session-Id": "a-session-of-the-program",
    }

    async with asyncio.timeout(SECONDS), httpx2.AsyncClient(headers=headers, timeout=60) as http:

        async def send(web: int, body: dict[str, Any]) -> httpx2.Response:
            return await http.post(product.url("/mcp/counter", web=web), json={"jsonrpc": "2.0", **body})

        for web in (0, 1, 0, 1):
            arguments = {"message": "say: hello", "conversation": "two-processes"}
            reply = await send(
                web, {"id": web, "method": "tools/call", "params": {"name": "chat", "arguments": arguments}}
            )
            assert "hello" in reply.text
        long = {"message": "stream 2000 words at 20/s", "conversation": "left"}
        running = asyncio.create_task(
            send(0, {"id": "long", "method": "tools/call", "params": {"name": "chat", "arguments": long}})
        )
        turn = await asyncio.to_thread(wait_for, lambda: _turn(product, "alice", "left"))
        await asyncio.sleep(0)
        bob = {**headers, "Authorization": f"Bearer {product.token('bob')}"}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}}
        assert (await http.post(product.url("/mcp/counter", web=1), json=note, headers=bob)).status_code == 202
        assert _api(product, "alice", f"/turns/{turn['id']}")["status"] == "running"
        assert (await send(1, {"method": note["method"], "params": note["params"]})).status_code == 202
        assert '"status": "stopped"' in (await running).text or '"status":"stopped"' in (await running).text


async def test_a_server_that_stops_stops_no_turn(make_product: Any) -> None:
    product = make_product()
    turn: Any = None
    async with asyncio.timeout(SECONDS):
        with contextlib.suppress(ExceptionGroup):  # of a client that loses its server
            async with connected(product) as client:
                message = {"message": "stream 60 words at 20/s", "conversation": "kept"}
                call = asyncio.create_task(client.call_tool("chat", message))
                turn = await asyncio.to_thread(wait_for, lambda: _turn(product, "alice", "kept"))
                await asyncio.to_thread(product.webs[0].stop)
                await asyncio.gather(call, return_exceptions=True)
        await asyncio.to_thread(product.webs[0].stop)  # its client may have given up before it had ended
        product.webs[0].start()
        product.wait_until_ready()
        ended = await asyncio.to_thread(wait_for, lambda: _ended(product, "alice", turn["id"]))
        assert ended["status"] == "completed"


async def test_a_lost_connection_of_a_program_with_a_handshake_stops_nothing(shared_product: Product) -> None:
    headers = {
        "Authorization": f"Bearer {shared_product.token('alice')}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    arguments = {"message": "stream 40 words at 20/s", "conversation": "lost"}
    params = {"name": "chat", "arguments": arguments, "_meta": {"progressToken": 1}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with asyncio.timeout(SECONDS), httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with http.stream("POST", shared_product.url("/mcp/counter"), json=body) as response:
            async for line in response.aiter_lines():
                if "notifications/progress" in line:
                    break
        turn = await asyncio.to_thread(wait_for, lambda: _turn(shared_product, "alice", "lost"))
        ended = await asyncio.to_thread(wait_for, lambda: _ended(shared_product, "alice", turn["id"]))
        assert ended["status"] == "completed"


async def _history(client: Client, name: str) -> dict[str, Any]:
    read = await client.read_resource(f"think://counter/{name}")
    found: dict[str, Any] = json.loads(read.contents[0].text)  # type: ignore[union-attr]  # text
    return found


async def _settled(client: Client, name: str) -> dict[str, Any]:
    """The call of a conversation, once it has ended."""
    while True:
        calls = [call for message in (await _history(client, name))["messages"] for call in message.get("calls", [])]
        if calls and calls[-1]["state"].startswith("output-"):
            found: dict[str, Any] = calls[-1]
            return found
        await asyncio.sleep(0.05)


async def _running(client: Client, name: str, tool: str) -> None:
    while True:
        messages = (await _history(client, name))["messages"]
        if messages and tool in messages[-1]["text"]:
            return
        await asyncio.sleep(0.05)


async def _decide(product: Product, person: str, instance_id: str, *, approved: bool) -> None:
    pending = _api(product, person, "/approvals")["items"]
    call = next(item for item in pending if item["instance_id"] == instance_id)
    path = f"/instances/{instance_id}/calls/{call['call_id']}/approval"
    reply = httpx2.post(
        product.url(f"/api/v1{path}"),
        json={"approved": approved},
        headers={"Authorization": f"Bearer {product.token(person)}"},
    )
    assert reply.status_code < 300, reply.text


def _api(product: Product, person: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {product.token(person)}"}
    reply = httpx2.get(product.url(f"/api/v1{path}"), headers=headers, timeout=30)
    assert reply.status_code == 200, reply.text
    return reply.json()


def _turn(product: Product, person: str, name: str) -> Any:
    """The newest turn of a conversation of the counter's, once it has begun."""
    listed = _api(product, person, "/instances?limit=60")["items"]
    found = [item for item in listed if (item["agent"], item["name"]) == ("counter", name)]
    turns = _api(product, person, f"/instances/{found[0]['id']}/turns")["items"] if found else []
    return turns[0] if turns and turns[0]["started_at"] else None


def _ended(product: Product, person: str, turn_id: str) -> Any:
    turn = _api(product, person, f"/turns/{turn_id}")
    return turn if turn["finished_at"] else None
