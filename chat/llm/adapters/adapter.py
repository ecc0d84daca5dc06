"""Base of the adapters: one streamed POST, sent again without what the server refuses of it.

An adapter says what the body is, which call of the `openai` client sends it, and how its events are read. Refusals are
lessons (`refusals.py`), and remembered by address and model: every kind of call profits from those of all others.
"""

import asyncio
import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final, Literal

import openai

from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    Prefilled,
    ToolCallContent,
)
from chat.core.model.overflow import was_cut
from chat.errors import ModelAuth, ModelError, ModelRejected, NetworkLost, RateLimited, SchemaRefused
from chat.llm.abilities import reads, sends_tools
from chat.llm.adapters.demands import demanding
from chat.llm.adapters.endings import AnswerReader, ended
from chat.llm.adapters.overflow_words import named_limit
from chat.llm.adapters.provider_errors import from_exception
from chat.llm.adapters.redaction import redact_body
from chat.llm.adapters.refusals import (
    REFUSING_STATUSES,
    Lesson,
    Refusal,
    Sent,
    as_learned,
    lesson_of,
    plain_words,
    read_refusal,
    too_long_answer,
)
from chat.llm.adapters.sse import SSEEvent, SSEOverflow
from chat.llm.adapters.transport import TRANSPORT_ERRORS, drain, posted, sse_batches
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import Learned, MemoryOfModel, ModelMemory, model_memory
from thinkproject.kernel.jsonvalue import JSONObject

TAIL_SECONDS = 3.0
MAX_LESSONS: Final = 8
"""Refusals of one request that are learned from; each costs a request, once."""

BEYOND: Final = 1.1
"""A count of so many times the known context is not that context's."""

WIDEN: Final = "Give it a larger context there; Ollama has OLLAMA_CONTEXT_LENGTH for it, and num_ctx in a model's file."
_SCHEMA_REFUSED: Final = re.compile(
    r"response_format|json_schema|text\.format|supplied: text\b|structured[ _]outputs?", re.IGNORECASE
)


class _Lessons:
    """Lessons of one request, and what would be known with them. `body`: of the request, by what is known."""

    def __init__(self, known: Learned, body: Callable[[Learned], JSONObject]) -> None:
        self._before = known
        self._known = known
        self._body = body
        self._made: list[Lesson] = []

    def learn(self, sent: Sent, refusal: Refusal) -> Sent | None:
        """The request as a refusal wants it; `None` when it holds no lesson."""
        shorter = too_long_answer(sent.body, refusal)
        if shorter is not None:
            return replace(sent, body=shorter)
        for lesson in (demanding(refusal.words), lesson_of(sent.body, refusal)):
            if lesson is None or len(self._made) >= MAX_LESSONS:
                continue
            known = lesson(self._known)
            again = as_learned(self._body(known), known)
            if again.body != sent.body:
                self._made.append(lesson)
                self._known = known
                return again
        return None

    async def keep(self, memory: MemoryOfModel, *, was_refused: bool = False, limit: int = 0) -> None:
        """Remember what was learned, but of a request that is refused all the same only the limit that was named."""
        made = [] if was_refused else list(self._made)
        if limit and not 0 < self._before.context_tokens <= limit:
            made.append(lambda learned: replace(learned, context_tokens=limit))
        if made:
            await memory.learn(lambda learned: _all(made, learned))


class _LastBody:
    """The body that was sent last, until it is described: that of a long conversation takes milliseconds."""

    def __init__(self, body: Callable[[ModelRequest, Learned], JSONObject]) -> None:
        self._body = body
        self._made: tuple[ModelRequest, Learned, JSONObject] | None = None

    def make(self, request: ModelRequest, known: Learned) -> JSONObject:
        """The body of a request, by what is known of the model."""
        body = self._body(request, known)
        self._made = request, known, body
        return body

    def take(self, request: ModelRequest, known: Learned) -> JSONObject:
        """The same, and made only if another one was made last. Then none is held."""
        made, self._made = self._made, None
        is_same = made is not None and made[0] is request and made[1] == known
        return made[2] if made is not None and is_same else self._body(request, known)


def _without_context(learned: Learned) -> Learned:
    return replace(learned, context_tokens=0, cuts_silently=False)


def _with(kind: bool, kinds: tuple[bool, ...]) -> tuple[bool, ...]:
    return kinds if kind in kinds else (*kinds, kind)


def _all(lessons: list[Lesson], learned: Learned) -> Learned:
    for lesson in lessons:
        learned = lesson(learned)
    return learned


class HttpModel(ABC):
    """A model behind an HTTP endpoint. Turns may share it. Nothing here retries a failure."""

    path: ClassVar[str]
    """Where requests are sent, below the endpoint's address."""

    unsent: ClassVar[Mapping[str, str]] = {}
    """Settings that the API has no place for, with the name people know them by."""

    tried_media: ClassVar[frozenset[str]] = frozenset({"image"})
    """Kinds of files that are sent to a model of which nothing is known: a refusal teaches."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        memory: ModelMemory = model_memory,
        observe: Callable[[str], None] = lambda _words: None,
    ) -> None:
        """`memory`: of what is known of the model and learned; the process' own for all but a probe.

        `observe` is called after each request that was answered: with the words of the refusal, empty for none.
        """
        self._endpoint = endpoint
        self._model = model
        self._memory = MemoryOfModel(memory, endpoint.base_url, model)
        self._observe = observe
        self._bodies = _LastBody(self._body)

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self._endpoint.provider}/{self._model}"

    @property
    def base_url(self) -> str:
        """The address that it is asked at."""
        return self._endpoint.base_url

    @property
    def model(self) -> str:
        """The model's name there."""
        return self._model

    @property
    def accepts_images(self) -> bool:
        """Whether pictures are sent."""
        return self._sends("image", self._memory.known)

    @property
    def accepts_documents(self) -> bool:
        """Whether PDF documents are sent."""
        return self._sends("document", self._memory.known)

    def _sends(self, medium: Literal["image", "document"], known: Learned) -> bool:
        found = reads(medium, self._endpoint, known)
        return medium in self.tried_media if found is None else found

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body `stream` would send; long data URLs shortened, anything like a credential out."""
        known = self._memory.known
        return redact_body(as_learned(self._bodies.take(request, known), known).body, request.forms)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask the model.

        Errors: the `ModelError` family. Closing the generator, or cancelling the task in it, closes the connection.
        """
        provider, secrets = self._endpoint.provider, self._endpoint.secrets
        try:
            async with self._open(request) as begun:
                reader, batches = begun.reader, begun.batches
                for item in (*self._begun(begun.sent.body, self._memory.known), *begun.items):
                    yield item
                if begun.error is not None:
                    raise begun.error
                while not reader.finish_seen:
                    for item in _fed(reader, await _next(batches, provider)):
                        yield item
                async for batch in _rest(batches, reader):
                    for item in _fed(reader, batch):
                        yield item
                for item in ended(self.name, reader, request):
                    yield await self._finished(item, request, begun.sent) if isinstance(item, Finish) else item
                await drain(batches)
        except TRANSPORT_ERRORS as error:
            # Without the cause: its text quotes the provider's body, which is for the log alone.
            raise from_exception(provider, error, secrets=secrets) from None
        except SSEOverflow as error:
            raise ModelRejected(f"{provider} sent more in one piece than can be held.") from error

    @contextlib.asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator["_Begun", None]:
        """Send the request; where it is refused with a lesson, by its status or in the stream, once more as it says.

        A lesson is kept when the next request is not refused as such, so a refusal that was misread teaches nothing.
        """
        headers = {**self._endpoint.headers, **request.settings.headers, "Accept-Encoding": "identity"}
        known = await self._memory.recall()
        sent, lessons = (
            as_learned(self._bodies.make(request, known), known),
            _Lessons(known, partial(self._body, request)),
        )
        while True:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    response = await stack.enter_async_context(posted(self._endpoint, self.path, sent.body, headers))
                    batches = await stack.enter_async_context(contextlib.aclosing(sse_batches(response)))
                    begun = await _begin(self._reader(request), batches, sent)
                except (openai.APIStatusError, ModelError) as error:
                    body = _words_of(error)
                    self._observe(body)
                    refusal = read_refusal(body)
                    await self._look_for_schema(request, refusal)
                    again = lessons.learn(sent, refusal) if body else None
                    if again is None:
                        await lessons.keep(self._memory, was_refused=bool(body), limit=named_limit(body))
                        raise
                    sent = again
                else:
                    self._observe("")
                    await lessons.keep(self._memory)
                    yield begun
                    return

    async def _look_for_schema(self, request: ModelRequest, refusal: Refusal) -> None:
        """Remember a refusal of the answer's schema, for requests as this one. Errors: `SchemaRefused`."""
        if request.settings.response_schema is not None and _SCHEMA_REFUSED.search(refusal.words):
            kind = bool(request.tools)
            await self._memory.learn(lambda known: replace(known, refused_schemas=_with(kind, known.refused_schemas)))
            raise SchemaRefused(f"{self._endpoint.provider} does not take a schema for the answer.") from None

    async def _finished(self, finish: Finish, request: ModelRequest, sent: Sent) -> Finish:
        """The end of an answer, with what was not sent, or was not read: a server that cuts counts too little."""
        warnings = self._warnings(request, sent)
        read, known = finish.usage.input_tokens, self._memory.known
        if read > known.context_tokens * BEYOND > 0:  # what was known was wrong, or the server was set up anew
            await self._memory.learn(_without_context)
        if not 0 < known.context_tokens <= read * BEYOND and was_cut(request, finish.usage):
            await self._memory.learn(lambda learned: replace(learned, context_tokens=read, cuts_silently=True))
            cut = f"{self.name} read {read} tokens, the end of what was sent, and nothing of the rest. {WIDEN}"
            warnings = (*warnings, cut)
        return replace(finish, warnings=warnings)

    def _warnings(self, request: ModelRequest, sent: Sent) -> tuple[str, ...]:
        """Parts of the request that were left out."""
        settings = request.settings
        names = [name for field, name in self.unsent.items() if getattr(settings, field) not in (None, ())]
        found = [f"{self.name} does not support {name}; it was not sent." for name in (*names, *sent.left_out)]
        found += [f"{self.name} does not take the tool {name}; it was not sent." for name in sent.tools]
        if request.tools and not sends_tools(self._endpoint, self._memory.known):
            found.append(f"{self.name} cannot call tools; none were sent.")
        return tuple(found)

    def _own_options(self, settings: ModelSettings) -> JSONObject:
        """Options merged into the body unchanged: those for all providers, then those for this one."""
        return {**settings.extra, **settings.provider_options.get(self._endpoint.provider, {})}

    def _begun(self, _body: JSONObject, _known: Learned) -> list[Prefilled]:
        """Events before the first word of the answer to a body."""
        return []

    @abstractmethod
    def _body(self, request: ModelRequest, known: Learned) -> JSONObject:
        """The request on the wire, with the media that the model is known to read."""

    @abstractmethod
    def _reader(self, request: ModelRequest) -> AnswerReader:
        """Begin an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """An answer that has begun: its first events, and the error that came in one piece with them."""

    reader: AnswerReader
    batches: AsyncGenerator[list[SSEEvent], None]
    sent: Sent
    items: list[ModelEvent]
    error: ModelError | None


async def _begin(reader: AnswerReader, batches: AsyncGenerator[list[SSEEvent], None], sent: Sent) -> _Begun:
    """Read up to the first event of the answer. Errors: one that comes before it, which may be a refusal."""
    items: list[ModelEvent] = []
    error: ModelError | None = None
    while not (items or reader.finish_seen):
        batch = await anext(batches, None)
        if batch is None:
            break
        try:
            items.extend(_fed(reader, batch))
        except ModelError as failed:
            if not items:
                raise
            error = failed
    return _Begun(reader=reader, batches=batches, sent=sent, items=items, error=error)


async def _next(batches: AsyncGenerator[list[SSEEvent], None], provider: str) -> list[SSEEvent]:
    """The next events. Errors: `NetworkLost` where there are none."""
    batch = await anext(batches, None)
    if batch is None:
        raise NetworkLost(f"The connection to {provider} ended in the middle of the answer.", provider=provider)
    return batch


def _words_of(error: openai.APIStatusError | ModelError) -> str:
    """The words of what may be a refusal with a lesson; empty where it cannot be one."""
    if isinstance(error, ModelError):
        return "" if isinstance(error, RateLimited | ModelAuth) else error.words
    return plain_words(error.response.text) if error.status_code in REFUSING_STATUSES else ""


def _fed(reader: AnswerReader, batch: list[SSEEvent]) -> Iterator[ModelEvent]:
    for event in batch:
        yield from reader.feed(event.data)


async def _rest(
    batches: AsyncGenerator[list[SSEEvent], None], reader: AnswerReader
) -> AsyncGenerator[list[SSEEvent], None]:
    """Read on after a finish, until the end mark, the close, or a while of silence; the close may be a break."""
    with contextlib.suppress(StopAsyncIteration, TimeoutError, SSEOverflow, *TRANSPORT_ERRORS):
        while not reader.is_done:
            async with asyncio.timeout(TAIL_SECONDS):
                batch = await anext(batches)
            yield batch


def known_call_ids(messages: tuple[ModelMessage, ...]) -> set[str]:
    """Call ids that the conversation has used: a server that counts from zero each time must not repeat one."""
    return {
        item.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ToolCallContent)
    }
