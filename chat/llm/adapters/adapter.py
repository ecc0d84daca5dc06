"""Base of the adapters: one streamed POST, retried without an option of ours that the server rejects.

An adapter says what the body is, which call of the `openai` client sends it, and how its events are read.
"""

import asyncio
import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol

import httpx2
import openai

from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ToolCallContent,
)
from chat.errors import ModelRejected, NetworkLost, SchemaRefused
from chat.llm.adapters.provider_errors import from_exception
from chat.llm.adapters.redaction import redact_body
from chat.llm.adapters.sse import SSEEvent, SSEOverflow
from chat.llm.adapters.transport import TRANSPORT_ERRORS, drain, sse_batches
from chat.llm.endpoint import Endpoint
from thinkproject.kernel.jsonvalue import JSONObject

TAIL_SECONDS = 3.0
_SCHEMA_REFUSED: Final = re.compile(
    r"response_format|json_schema|text\.format|supplied: text\b|structured[ _]outputs?", re.IGNORECASE
)


class Reader(Protocol):
    """The state of one answer. `finish_seen`: the answer is complete; `is_done`: nothing more can come."""

    is_done: bool

    @property
    def finish_seen(self) -> bool:
        """Whether the answer is complete."""
        ...

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Take the data of one event."""
        ...

    def feed_tail(self, data: bytes) -> None:
        """Take the data of an event after the end of the answer."""
        ...

    def end(self) -> list[ModelEvent]:
        """Flush the remaining events."""
        ...


class HttpModel(ABC):
    """A model behind an HTTP endpoint. Stateless; share it between turns. Nothing here retries a failure."""

    unsent: ClassVar[Mapping[str, str]] = {}
    """Settings that the API has no place for, with the name people know them by."""

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

    @property
    def accepts_documents(self) -> bool:
        """Whether PDF documents are sent."""
        return self._endpoint.accepts_documents

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body `stream` would send; long data URLs shortened, anything like a credential out."""
        return redact_body(self._body(request))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask the model.

        Errors: the `ModelError` family. Closing the generator, or cancelling the task in it, closes the connection.
        """
        provider, secrets = self._endpoint.provider, self._endpoint.secrets
        try:
            async with self._open(request) as response:
                reader = self._reader(request)
                async with contextlib.aclosing(sse_batches(response)) as batches:
                    async for batch in batches:
                        for event in batch:
                            for item in reader.feed(event.data):
                                yield item
                        if reader.finish_seen:
                            break
                    if not reader.finish_seen:
                        text = f"The connection to {provider} ended in the middle of the answer."
                        raise NetworkLost(text, provider=provider)
                    if not reader.is_done:
                        await self._read_tail(batches, reader)
                    for item in reader.end():
                        yield replace(item, warnings=self._warnings(request)) if isinstance(item, Finish) else item
                    await drain(batches)
        except TRANSPORT_ERRORS as error:
            # Without the cause: its text quotes the provider's body, which is for the log alone.
            raise from_exception(provider, error, secrets=secrets) from None
        except SSEOverflow as error:
            raise ModelRejected(f"{provider} sent more in one piece than can be held.") from error

    @contextlib.asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[httpx2.Response, None]:
        body = self._body(request)
        headers = {**self._endpoint.headers, **request.settings.headers, "Accept-Encoding": "identity"}
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._call(body, headers))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if request.settings.response_schema is not None and _SCHEMA_REFUSED.search(error.response.text):
                    provider = self._endpoint.provider
                    raise SchemaRefused(f"{provider} does not take a schema for the answer.") from None
                if not self._gives_in(body, error.response.text):
                    raise
                response = await stack.enter_async_context(self._call(self._body(request), headers))
            yield response.http_response

    def _warnings(self, request: ModelRequest) -> tuple[str, ...]:
        """Parts of the request that were left out."""
        settings = request.settings
        found = [
            f"{self.name} does not support {name}; it was not sent."
            for field, name in self.unsent.items()
            if getattr(settings, field) not in (None, ())
        ]
        if request.tools and not self._endpoint.can_call_tools:
            found.append(f"{self.name} cannot call tools; none were sent.")
        return tuple(found)

    def _own_options(self, settings: ModelSettings) -> JSONObject:
        """Options merged into the body unchanged: those for all providers, then those for this one."""
        return {**settings.extra, **settings.provider_options.get(self._endpoint.provider, {})}

    @abstractmethod
    def _body(self, request: ModelRequest) -> JSONObject:
        """The request on the wire."""

    @abstractmethod
    def _call(
        self, body: JSONObject, headers: dict[str, str]
    ) -> AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]]:
        """Send a body through the client.

        It travels as `extra_body`: the client's walk over each message's type is slow on long histories.
        """

    @abstractmethod
    def _reader(self, request: ModelRequest) -> Reader:
        """Begin an answer."""

    @abstractmethod
    def _gives_in(self, body: JSONObject, refusal: str) -> bool:
        """Whether a server refused an option that is ours alone: remember that, and the next body lacks it."""

    async def _read_tail(self, batches: AsyncGenerator[list[SSEEvent], None], reader: Reader) -> None:
        """Wait a while for the usage that may follow. The answer is complete: nothing that goes wrong here matters."""
        with contextlib.suppress(TimeoutError, SSEOverflow, *TRANSPORT_ERRORS):
            async with asyncio.timeout(TAIL_SECONDS):
                async for batch in batches:
                    for event in batch:
                        reader.feed_tail(event.data)
                    if reader.is_done:
                        return


def known_call_ids(messages: tuple[ModelMessage, ...]) -> set[str]:
    """Call ids that the conversation has used: a server that counts from zero each time must not repeat one."""
    return {
        item.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ToolCallContent)
    }
