"""A program that uses `/v1/stream/` in this process, with a token or without."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from chat.access.api_tokens import create_token

ROOT = "/v1/stream/"
JSON = "application/json"


class Program:
    """Sends requests; `user`: whose token it has, limited to the door unless `scopes` says otherwise."""

    def __init__(self, user: User | None = None, scopes: tuple[str, ...] = ("streams",)) -> None:
        self.http = AsyncClient()
        self.user = user
        self.scopes = scopes
        self.headers: dict[str, str] = {}

    async def sign_in(self) -> "Program":
        """Get the token."""
        if self.user is not None:
            _, secret = await sync_to_async(create_token)(self.user, name="program", scopes=self.scopes)
            self.headers = {"Authorization": f"Bearer {secret}"}
        return self

    async def send(self, method: str, path: str, body: bytes = b"", *, type_: str = "", **headers: str) -> Any:
        """Send a request below the root; `Stream_Closed="true"` is the header `Stream-Closed`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = type_ or (JSON if body[:1] in {b"[", b"{", b'"'} else "text/plain" if body else "")
        if kind and not body:  # Django's client leaves it out
            sent["Content-Type"] = kind
        return await self.http.generic(method, ROOT + path, body, content_type=kind, headers={**self.headers, **sent})

    async def put(self, path: str, body: bytes = b"", *, type_: str = "text/plain", **headers: str) -> Any:
        """Make a stream."""
        return await self.send("PUT", path, body, type_=type_, **headers)

    async def read(self, path: str, query: str = "") -> bytes:
        """Read all there is at once."""
        reply = await self.send("GET", path + query)
        assert reply.status_code == 200, reply.content
        return bytes(reply.content)


async def events_of(reply: Any) -> str:
    """An event stream, read to its end."""
    return b"".join([piece async for piece in reply.streaming_content]).decode()
