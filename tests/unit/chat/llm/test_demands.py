"""Servers that refuse a history for what it lacks get it as they want it, at once and from then on."""

import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chat.core.model.language_model import AssistantMessage, ReasoningContent, TextContent, ToolCallContent, ToolMessage
from chat.core.model.provider_data import ProviderData
from chat.errors import ModelRejected
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import model_memory
from chat.llm.testing import collect, collect_until_error, make_request, text_of, user
from thinkproject.kernel.jsonvalue import JSONObject

Check = Callable[[JSONObject], str]
ANSWER = (
    b'data: {"choices":[{"delta":{"content":"Found."}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


class Refusing(BaseHTTPRequestHandler):
    """Refuses with the words that the server's check has for a body."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server.bodies.append(body)
        words = server.check(body)
        data = json.dumps({"error": {"message": words}}).encode() if words else ANSWER
        self.send_response(400 if words else 200)
        self.send_header("content-type", "application/json" if words else "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
async def refusing() -> AsyncIterator[Callable[[Check], tuple[ChatCompletionsModel, list[JSONObject]]]]:
    model_memory.clear()
    servers: list[Any] = []

    def make(check: Check) -> tuple[ChatCompletionsModel, list[JSONObject]]:
        server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
        server.check, server.bodies = check, []
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        return ChatCompletionsModel(Endpoint(provider="acme", base_url=address), "m"), server.bodies

    yield make
    await close_clients()
    for server in servers:
        server.shutdown()
        server.server_close()


def history(call_id: str = "call_1", model: str = "other/m") -> list[Any]:
    metadata = ProviderData(model=model, fields={"text_in": "reasoning_content"}).metadata()
    call = ToolCallContent(call_id=call_id, tool_name="lookup", input={"q": "a"})
    reasoning = ReasoningContent(text="Look.", provider_metadata=metadata)
    return [
        user("Look it up."),
        AssistantMessage(content=(reasoning, TextContent(text="I look."), call)),
        ToolMessage(call_id=call_id, tool_name="lookup", output="found"),
    ]


def calls(body: JSONObject) -> list[JSONObject]:
    return [call for message in body["messages"] for call in message.get("tool_calls", ())]


def nine_letters(body: JSONObject) -> str:
    results = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    ids = [call["id"] for call in calls(body)]
    odd = next((found for found in ids + results if not re.fullmatch("[a-zA-Z0-9]{9}", found)), None)
    return "" if odd is None and ids == results else f"Tool call id was {odd} but must be a-z, A-Z, 0-9, length 9."


def signed(body: JSONObject) -> str:
    lacks = any("extra_content" not in call for call in calls(body))
    return "Function call is missing a thought_signature in functionCall parts." if lacks else ""


def with_reasoning(body: JSONObject) -> str:
    lacks = any("tool_calls" in message and not message.get("reasoning_content") for message in body["messages"])
    return "thinking is enabled but reasoning_content is missing in assistant tool call message" if lacks else ""


def without_reasoning(body: JSONObject) -> str:
    has = any("reasoning_content" in message for message in body["messages"])
    return "property 'reasoning_content' is unsupported" if has else ""


@pytest.mark.parametrize("check", [nine_letters, signed, with_reasoning])
async def test_a_refusal_is_learned_from_once(refusing: Any, check: Check) -> None:
    model, bodies = refusing(check)
    for _ in range(2):
        assert text_of(await collect(model, make_request(*history()))) == "Found."
    assert [bool(check(body)) for body in bodies] == [True, False, False]


@pytest.mark.parametrize("call_id", ["functions.lookup:0", "x" * 80])
async def test_ids_of_other_models_are_taken_at_once(refusing: Any, call_id: str) -> None:
    model, bodies = refusing(nine_letters)
    await collect(model, make_request(*history(call_id)))
    await collect(model, make_request(*history(call_id), "And?"))
    assert [calls(body)[0]["id"] for body in bodies] == [calls(bodies[0])[0]["id"]] * 2


async def test_a_field_that_a_server_does_not_know_is_left_out(refusing: Any) -> None:
    model, bodies = refusing(without_reasoning)
    assert text_of(await collect(model, make_request(*history(model="acme/m")))) == "Found."
    assert [bool(without_reasoning(body)) for body in bodies] == [True, False]


async def test_a_refusal_of_something_else_teaches_nothing(refusing: Any) -> None:
    model, bodies = refusing(lambda _body: "The project id is invalid.")
    _, error = await collect_until_error(model, make_request(*history()))
    assert isinstance(error, ModelRejected)
    assert len(bodies) <= 2
