"""A page with `useChat` over plain HTTP, as the AI SDK's transport speaks, and what a worker does behind it."""

import asyncio
import json
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import transaction
from django.test import AsyncClient
from django.utils import timezone

from chat.core.wire.chunks import validate
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.reads.snapshots import current_transcript
from chat.streams.reader import close_stream
from chat.streams.writing.writer import StreamWriter
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages.services import Leaf, place_messages, put_assistant

Json = dict[str, Any]

API = "/agents/assistant/talk/chat"
STREAM = f"{API}/a-chat-of-the-page/stream"
HERE = "http://testserver"
TEXT: Part = {"type": "text", "text": "An answer."}


class Page:
    """A page with a cookie of one user's: posts, follows, stops, and reads chunks."""

    def __init__(self, user: User | None = None, **headers: str) -> None:
        self.http = AsyncClient()
        self.user = user
        self.headers = {"Origin": HERE, **headers}

    async def sign_in(self) -> "Page":
        if self.user is not None:
            await self.http.aforce_login(self.user)
        return self

    async def post(self, body: Any, path: str = API, **headers: str) -> Any:
        text = body if isinstance(body, str) else json.dumps(body)
        return await self.http.generic(
            "POST", path, text, content_type="application/json", headers=self.headers | headers
        )

    async def say(self, message_id: str, text: str = "hello", *earlier: Message, **more: Any) -> Any:
        return await self.post(asks([*earlier, user(message_id, text)], **more))

    async def resume(self, path: str = STREAM) -> Any:
        return await self.http.get(path, headers=self.headers)

    async def stop(self, path: str = STREAM) -> Any:
        return await self.http.delete(path, headers=self.headers)


def user(message_id: str, text: str = "hello") -> Message:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def assistant(message_id: str, *parts: Part) -> Message:
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


def asks(messages: list[Message], trigger: str = "submit-message", **more: Any) -> Json:
    return {"id": "a-chat-of-the-page", "messages": messages, "trigger": trigger, **more}


async def lines_of(response: Any) -> list[str]:
    assert response.status_code == 200, getattr(response, "content", response)
    async with asyncio.timeout(15):
        raw = b"".join([piece async for piece in response.streaming_content])
    return [block.removeprefix("data: ") for block in raw.decode().split("\n\n") if block.startswith("data: ")]


async def chunks_of(response: Any) -> list[Json]:
    *chunks, done = await lines_of(response)
    assert done == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def problem_of(response: Any) -> tuple[int, str, str]:
    assert response["Content-Type"] == "application/problem+json"
    body = json.loads(response.content)
    return response.status_code, body["code"], body["detail"]


@sync_to_async
def turns() -> list[Turn]:
    return list(Turn.objects.select_related("fiber").order_by("position"))


async def last_turn() -> Turn:
    return (await turns())[-1]


async def write(turn: Turn, *chunks: Json) -> None:
    async with StreamWriter(turn.id, fence=1, ctx_fenced=transaction.atomic) as writer:
        for chunk in chunks:
            writer.write(validate(chunk))
        await writer.flush()


async def answer(turn: Turn, text: str = "An answer.", *, also: tuple[Json, ...] = ()) -> None:
    """Write a plain answer to the log, as the loop does."""
    await write(
        turn,
        {"type": "start", "messageId": turn.assistant_id},
        {"type": "start-step"},
        *also,
        {"type": "text-start", "id": "p0"},
        {"type": "text-delta", "id": "p0", "delta": text},
        {"type": "text-end", "id": "p0"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    )


async def end(turn: Turn, status: str = "completed", *, reason: str = "", text: str = "", parts: Any = None) -> None:
    """End a turn as the runner does: its input placed, its answer stored, its stream closed."""

    def settle() -> None:
        if turn.input_ids:
            place_messages(
                turn.session_id, turn.input_ids, after=turn.base_id if turn.base_is_explicit else Leaf.ACTIVE
            )
        if parts is not None:
            after = turn.input_ids[-1] if turn.input_ids else turn.base_id
            assert after is not None
            put_assistant(turn.session_id, assistant(turn.assistant_id, *parts), after=after, turn_id=turn.id)
        now = timezone.now()
        Fiber.objects.filter(pk=turn.fiber_id).update(status=status, reason=reason, finished_at=now)
        Turn.objects.filter(pk=turn.pk).update(started_at=now, finished_at=now, error_text=text)

    await sync_to_async(settle)()
    await close_stream(turn.id)


@sync_to_async
def transcript() -> list[Message]:
    return current_transcript(key_of(AgentInstance.objects.get()))
