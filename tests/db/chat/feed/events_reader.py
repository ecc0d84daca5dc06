"""The bytes of an event stream, as a browser reads them."""

import json
from collections.abc import AsyncIterator
from typing import Any


class EventsReader:
    """Events of a response: type, id and data."""

    def __init__(self, response: Any) -> None:
        self.source = response.streaming_content
        self._text = ""

    async def __aiter__(self) -> AsyncIterator[tuple[str, int | None, Any]]:
        async for piece in self.source:
            self._text += piece.decode()
            while "\n\n" in self._text:
                block, self._text = self._text.split("\n\n", 1)
                fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
                if fields:
                    yield fields["event"], int(fields["id"]) if "id" in fields else None, json.loads(fields["data"])

    async def all(self) -> list[tuple[str, int | None, Any]]:
        return [event async for event in self]
