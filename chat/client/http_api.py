"""The client's HTTP requests: the transcript, and the rest of an answer that ended during a disconnect."""

from typing import Final
from urllib.parse import quote

import httpx

from chat.client.errors import ClientError, ConnectionFailed, RequestRefused, refusal_of
from chat.llm.adapters.sse import SSEDecoder
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

API: Final = "/api/v1"
RECENT_TURNS: Final = 200
SECONDS: Final = 30.0
_REFUSALS: Final = (404, 409, 422, 429)


class HttpApi:
    """HTTP of one conversation. `base`: the site, with its prefix; `path`: the conversation's below it."""

    def __init__(self, base: str, path: str, agent: str, name: str, headers: dict[str, str]) -> None:
        self._path = path
        self._agent = agent
        self._name = name
        self._http = httpx.AsyncClient(base_url=base, headers=headers, timeout=SECONDS, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def messages(self) -> list[Message]:
        """The transcript as stored: the window of the shown path, queued messages last."""
        found: list[Message] = await self._json("GET", f"{self._path}/get-messages")
        return found

    async def approve(self, call_id: str, edited_input: JSONObject) -> None:
        """Approve a call with changed arguments. Errors: `RequestRefused` with the server's words."""
        instance = await self._json("POST", f"{API}/instances", json={"agent": self._agent, "name": self._name})
        path = f"{API}/instances/{instance['id']}/calls/{quote(call_id, safe='')}/approval"
        body = {"approved": True, "edited_input": edited_input}
        try:
            response = await self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        if response.status_code in _REFUSALS:
            raise RequestRefused(str(load(response.content).get("detail", "")))
        if response.status_code != 200:
            raise refusal_of(response.status_code, f"HTTP status {response.status_code}")

    async def rest(self, request_id: str, offset: int) -> tuple[list[str], str]:
        """The chunks of an ended turn from an offset, as JSON text, and its outcome; `None` if the turn is gone."""
        instance = await self._json("POST", f"{API}/instances", json={"agent": self._agent, "name": self._name})
        page = await self._json("GET", f"{API}/instances/{instance['id']}/turns?limit={RECENT_TURNS}")
        turn = next((turn for turn in page["items"] if turn["request_id"] == request_id), None)
        return ([], "") if turn is None else await self._stream(turn["id"], offset)

    async def _stream(self, turn_id: str, offset: int) -> tuple[list[str], str]:
        """Errors: `ConnectionFailed` for a truncated stream, `ClientError` for a restarted one."""
        decoder, found, outcome = SSEDecoder(), [], None
        try:
            async with self._http.stream("GET", f"{API}/turns/{turn_id}/stream?offset={offset}") as response:
                if response.status_code != 200:
                    raise refusal_of(response.status_code, "The rest of the answer cannot be read.")
                async for data in response.aiter_bytes():
                    for event in decoder.feed(data):
                        if event.event == b"end":
                            outcome = str(load(event.data).get("outcome") or "")
                        elif event.event == b"reset":
                            raise ClientError("The log of the answer has begun anew.")
                        elif not event.event:
                            found.append(event.data.decode())
        except httpx.HTTPError as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        if outcome is None:
            raise ConnectionFailed("The stream was cut before its end.")
        return found, outcome

    async def _json(self, method: str, path: str, **options: JSONValue) -> JSONValue:
        try:
            response = await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        if response.status_code >= 500:
            raise ConnectionFailed(f"HTTP status {response.status_code}")
        if response.status_code >= 400:
            raise refusal_of(response.status_code, f"HTTP status {response.status_code}")
        try:
            return load(response.content)
        except ValueError as error:
            raise ClientError(f"No JSON at {path}") from error
