"""Adapter for the Chat Completions wire, which nearly every model server speaks.

Servers differ in many small ways; the tolerance is in `chat_reader`. Nothing here retries except one thing that is no
failure: a server which does not know `stream_options` is asked again without it, and remembered.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import assert_never

import httpx2
import openai

from chat.core.language_model import (
    AssistantMessage,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from chat.errors import ModelRejected, NetworkLost
from chat.llm.chat_reader import ChatReader
from chat.llm.content import data_url, file_note, is_image, output_text, plain_text
from chat.llm.errors import from_exception
from chat.llm.redaction import redact_body
from chat.llm.sse import SSEEvent, SSEOverflow
from chat.llm.transport import TRANSPORT_ERRORS, Endpoint, client_for, drain, sse_batches
from thinkproject.kernel.jsonvalue import JSONObject, dump

# How long to wait for the usage that follows the end of the answer.
TAIL_SECONDS = 3.0

_without_stream_options: set[str] = set()


class ChatCompletionsModel:
    """A model behind `POST {base_url}/chat/completions`. Stateless; share it between turns."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self._endpoint.provider}/{self._model}"

    @property
    def accepts_images(self) -> bool:
        """Whether pictures are sent."""
        return self._endpoint.accepts_images

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body `stream` would send; long data URLs shortened, anything like a credential out."""
        return redact_body(self._body(request))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask the model.

        Errors: the `ModelError` family. Closing the generator, or cancelling the task in it, closes the connection.
        """
        try:
            async with self._open(request) as response:
                reader = ChatReader(self._endpoint.provider, self._secrets, known_call_ids(request.messages))
                async with contextlib.aclosing(sse_batches(response)) as batches:
                    async for batch in batches:
                        for event in batch:
                            for item in reader.feed(event.data):
                                yield item
                        if reader.finish_seen:
                            break
                    if not reader.is_done:
                        await self._read_tail(batches, reader)
                    for item in reader.end():
                        yield item
                    await drain(batches)
        except TRANSPORT_ERRORS as error:
            # Without the cause: its text quotes the provider's body, which is for the log alone.
            raise from_exception(self._endpoint.provider, error, secrets=self._secrets) from None
        except SSEOverflow as error:
            raise ModelRejected(f"{self._endpoint.provider} sent more in one piece than can be held.") from error

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self._endpoint.secrets

    @contextlib.asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[httpx2.Response, None]:
        body = self._body(request)
        headers = {**self._endpoint.headers, **request.settings.headers, "Accept-Encoding": "identity"}
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await self._send(stack, body, headers)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if "stream_options" not in body or "stream_options" not in error.response.text:
                    raise
                _without_stream_options.add(self._endpoint.base_url)
                response = await self._send(stack, self._body(request), headers)
            yield response

    async def _send(
        self, stack: contextlib.AsyncExitStack, body: JSONObject, headers: dict[str, str]
    ) -> httpx2.Response:
        # The body travels as `extra_body`: the client's walk over each message's type is slow on long histories.
        create = client_for(self._endpoint).chat.completions.with_streaming_response.create
        call = create(messages=[], model=self._model, stream=True, extra_body=body, extra_headers=headers)
        return (await stack.enter_async_context(call)).http_response

    async def _read_tail(self, batches: AsyncGenerator[list[SSEEvent], None], reader: ChatReader) -> None:
        """Wait for usage after the finish. The answer is complete: nothing that goes wrong here matters."""
        if not reader.finish_seen:
            raise NetworkLost(
                f"The connection to {self._endpoint.provider} ended in the middle of the answer.",
                provider=self._endpoint.provider,
            )
        with contextlib.suppress(TimeoutError, SSEOverflow, *TRANSPORT_ERRORS):
            async with asyncio.timeout(TAIL_SECONDS):
                async for batch in batches:
                    for event in batch:
                        reader.feed_tail(event.data)
                    if reader.is_done:
                        return

    def _body(self, request: ModelRequest) -> JSONObject:
        settings = request.settings
        body: JSONObject = {
            "model": self._model,
            "messages": chat_messages(request, accepts_images=self.accepts_images),
            "stream": True,
        }
        if self._endpoint.base_url not in _without_stream_options:
            body["stream_options"] = {"include_usage": True}
        if request.tools and self._endpoint.can_call_tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
            if settings.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = settings.parallel_tool_calls
        optional = {
            self._endpoint.max_tokens_field: settings.max_output_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "stop": list(settings.stop_sequences) or None,
            "seed": settings.seed,
            "reasoning_effort": settings.reasoning_effort,
        }
        body.update({key: value for key, value in optional.items() if value is not None})
        if settings.response_schema is not None:
            schema = {"name": "answer", "schema": settings.response_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body.update(settings.extra)
        return body


def known_call_ids(messages: tuple[ModelMessage, ...]) -> set[str]:
    """Call ids that the conversation has used: a server that counts from zero each time must not repeat one."""
    return {
        item.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ToolCallContent)
    }


def chat_messages(request: ModelRequest, *, accepts_images: bool) -> list[JSONObject]:
    """The request's messages on the Chat Completions wire, the system prompt first."""
    messages: list[JSONObject] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        match message:
            case UserMessage():
                _add_user(messages, _user_content(message, accepts_images=accepts_images))
            case AssistantMessage():
                said = _assistant(message)
                if said["content"] or "tool_calls" in said:
                    messages.append(said)  # a message of reasoning alone is empty here, which servers refuse
            case ToolMessage():
                content = output_text(message.output, is_error=message.is_error)
                messages.append({"role": "tool", "tool_call_id": message.call_id, "content": content})
            case _:
                assert_never(message)
    return messages


def _add_user(messages: list[JSONObject], content: str | list[JSONObject]) -> None:
    """Add what a person said; to the message before, if that is theirs too: many templates want roles to alternate."""
    last = messages[-1] if messages else None
    if last is None or last["role"] != "user":
        messages.append({"role": "user", "content": content})
    elif isinstance(last["content"], str) and isinstance(content, str):
        last["content"] += f"\n\n{content}"
    else:
        last["content"] = [*_parts(last["content"]), *_parts(content)]


def _parts(content: str | list[JSONObject]) -> list[JSONObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _user_content(message: UserMessage, *, accepts_images: bool) -> str | list[JSONObject]:
    if not (accepts_images and any(not isinstance(item, TextContent) and is_image(item) for item in message.content)):
        return plain_text(message.content)
    parts: list[JSONObject] = []
    for item in message.content:
        if isinstance(item, TextContent):
            parts.append({"type": "text", "text": item.text})
        elif is_image(item):
            parts.append({"type": "image_url", "image_url": {"url": data_url(item)}})
        else:
            parts.append({"type": "text", "text": file_note(item)})
    return parts


def _assistant(message: AssistantMessage) -> JSONObject:
    text, calls = "", []
    for item in message.content:
        match item:
            case TextContent():
                text += item.text
            case ToolCallContent():
                function = {"name": item.tool_name, "arguments": dump(item.input)}
                calls.append({"id": item.call_id, "type": "function", "function": function})
            case ReasoningContent():
                pass  # this wire has no place for it that servers agree on
            case _:
                assert_never(item)
    if calls:
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": "assistant", "content": text}


def _tool(tool: ToolSpec) -> JSONObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> str | JSONObject:
    if choice in ("none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
