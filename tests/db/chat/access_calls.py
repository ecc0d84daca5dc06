"""Requests of one person for what may be another's."""

import json
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from chat.streams.logs.log import close_logs


def client_of(user: User | None) -> Client:
    """A browser of this person's, or of one who has not signed in."""
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """An event stream that was read to its end, as other replies are."""

    status_code: int
    content: bytes
    headers: Any

    def __getitem__(self, name: str) -> str:
        return str(self.headers[name])


def call(client: Client, method: str, path: str, body: Any) -> Any:
    """Send a request; a stream is read to its end."""
    if path.endswith(("/stream", "/export", "/exports")):
        return async_to_sync(_follow)(client, path)
    if isinstance(body, bytes):
        return client.generic(method, path, body, content_type="multipart/form-data; boundary=edge")
    data = b"" if body is None else json.dumps(body).encode()
    if "/workspace" in path and method == "GET":
        return async_to_sync(_follow)(client, path)  # bytes come in pieces
    return client.generic(method, path, data, content_type="application/json")


async def _follow(client: Client, path: str) -> Streamed:
    follower = AsyncClient()
    follower.cookies = client.cookies
    reply: Any = await follower.get(path)
    content = b"".join([piece async for piece in reply.streaming_content]) if reply.streaming else reply.content
    await close_logs()
    return Streamed(status_code=reply.status_code, content=content, headers=reply.headers)
