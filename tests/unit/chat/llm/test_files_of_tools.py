"""Files that tools return, on both wires, against a real server on loopback."""

import base64
from collections.abc import Callable

import pytest

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelRequest,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.content import NO_OUTPUT
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedServer
from chat.llm.testing import collect, text_of

PICTURE = FileContent(media_type="image/png", data=b"\x89PNG", filename="a.png")
PLAN = FileContent(media_type="application/pdf", data=b"%PDF", filename="plan.pdf")
DRAWING = FileContent(media_type="image/tiff", data=b"II*", filename="b.tiff")
PICTURE_URL = "data:image/png;base64," + base64.b64encode(PICTURE.data).decode()
PLAN_URL = "data:application/pdf;base64," + base64.b64encode(PLAN.data).decode()
ADAPTERS = (ChatCompletionsModel, ResponsesModel)


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(content=tuple(ToolCallContent(call_id=c, tool_name="draw", input={}) for c in ids))


def result(call_id: str, *files: FileContent, output: str = "drawn") -> ToolMessage:
    return ToolMessage(call_id=call_id, tool_name="draw", output=output, files=files)


def asked(*messages: AssistantMessage | ToolMessage | UserMessage) -> ModelRequest:
    question = UserMessage(content=(TextContent(text="call tool draw {}\nsay: It is {result}."),))
    return ModelRequest(system="", messages=(question, *messages))


@pytest.fixture
def seeing(server: ScriptedServer, endpoint_of: Callable[..., Endpoint]) -> Endpoint:
    return endpoint_of(server, accepts_documents=True)


async def test_chat_completions_sends_them_after_the_last_result(server: ScriptedServer, seeing: Endpoint) -> None:
    request = asked(calls("c1", "c2"), result("c1", PICTURE), result("c2", PLAN, output="planned"))
    events = await collect(ChatCompletionsModel(seeing, "scripted"), request)
    assert server.requests()[-1]["messages"][-3:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "drawn"},
        {"role": "tool", "tool_call_id": "c2", "content": "planned"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Files that the tool draw returned for the call c1:]"},
                {"type": "image_url", "image_url": {"url": PICTURE_URL}},
                {"type": "text", "text": "[Files that the tool draw returned for the call c2:]"},
                {"type": "file", "file": {"filename": "plan.pdf", "file_data": PLAN_URL}},
            ],
        },
    ]
    assert text_of(events) == "It is planned."


async def test_chat_completions_puts_them_before_what_the_user_says_next(
    server: ScriptedServer, seeing: Endpoint
) -> None:
    request = asked(calls("c1"), result("c1", PICTURE), UserMessage(content=(TextContent(text="say: next"),)))
    events = await collect(ChatCompletionsModel(seeing, "scripted"), request)
    last = server.requests()[-1]["messages"][-1]
    assert (last["role"], [part["type"] for part in last["content"]]) == ("user", ["text", "image_url", "text"])
    assert text_of(events) == "next"


async def test_chat_completions_keeps_each_steps_files_with_it(server: ScriptedServer, seeing: Endpoint) -> None:
    request = asked(calls("c1"), result("c1", PICTURE), calls("c2"), result("c2"))
    await collect(ChatCompletionsModel(seeing, "scripted"), request)
    roles = [message["role"] for message in server.requests()[-1]["messages"]]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "tool"]


async def test_responses_sends_them_in_the_result(server: ScriptedServer, seeing: Endpoint) -> None:
    request = asked(calls("c1", "c2"), result("c1", PICTURE, PLAN), result("c2", output=""))
    events = await collect(ResponsesModel(seeing, "scripted"), request)
    assert server.requests()[-1]["input"][-2:] == [
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "drawn"},
                {"type": "input_image", "image_url": PICTURE_URL},
                {"type": "input_file", "filename": "plan.pdf", "file_data": PLAN_URL},
            ],
        },
        {"type": "function_call_output", "call_id": "c2", "output": NO_OUTPUT},
    ]
    assert text_of(events).startswith("It is")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_model_that_cannot_see_reads_a_note_instead(
    adapter: type[ChatCompletionsModel | ResponsesModel], server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    blind = adapter(endpoint_of(server, accepts_images=False, accepts_documents=False), "scripted")
    await collect(blind, asked(calls("c1"), result("c1", PICTURE, PLAN)))
    body = str(server.requests()[-1])
    assert "[A file is attached that you cannot see: 'a.png', image/png, 4 bytes]" in body
    assert "'plan.pdf', application/pdf, 4 bytes" in body
    assert "base64" not in body


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_picture_that_no_provider_takes_is_named(
    adapter: type[ChatCompletionsModel | ResponsesModel], server: ScriptedServer, seeing: Endpoint
) -> None:
    await collect(adapter(seeing, "scripted"), asked(calls("c1"), result("c1", DRAWING)))
    assert "'b.tiff', image/tiff, 3 bytes" in str(server.requests()[-1])


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_description_has_their_size_and_not_their_bytes(
    adapter: type[ChatCompletionsModel | ResponsesModel], seeing: Endpoint
) -> None:
    large = FileContent(media_type="image/png", data=b"x" * 1_000, filename="a.png")
    described = str(adapter(seeing, "scripted").describe(asked(calls("c1"), result("c1", large))))
    assert "[1000 bytes, sha256 " in described
