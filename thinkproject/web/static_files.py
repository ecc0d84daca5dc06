"""Static files under ASGI, before Django: no middleware, session or thread for other requests.

WhiteNoise knows the files, their types, encodings and conditional requests; this is its ASGI face. On one's own machine
files are found where they are edited, in production among those of `collectstatic`. A file with a hash in its name is
kept by browsers for a year without asking; others are asked for again, and answered with 304 when they are the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.contrib.staticfiles import finders
from whitenoise.base import WhiteNoise

from thinkproject.web.hashed_names import has_hash

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BLOCK_BYTES = 256 * 1024


class Files(WhiteNoise):  # type: ignore[misc]  # the package has no types
    """WhiteNoise over the static files of this project."""

    FOREVER = 365 * 24 * 3600

    def __init__(self) -> None:
        self.prefix = "/" + settings.STATIC_URL.strip("/") + "/"
        self.is_live = not settings.IS_PRODUCTION
        super().__init__(None, autorefresh=self.is_live, max_age=0 if self.is_live else 60, allow_all_origins=False)
        if not self.is_live and Path(settings.STATIC_ROOT).is_dir():
            self.add_files(settings.STATIC_ROOT, prefix=self.prefix)

    def candidate_paths_for_url(self, url: str) -> Iterator[str]:
        """Find files where they are edited."""
        if url.startswith(self.prefix) and (path := finders.find(url.removeprefix(self.prefix))):
            yield str(path)

    def immutable_file_test(self, path: str, _url: str) -> bool:
        """Return whether a file's name carries the hash of its content."""
        return has_hash(path)

    def lookup(self, url: str) -> Any | None:
        """Return WhiteNoise's file for a path, or nothing. Touches the disk where files are live."""
        return self.find_file(url) if self.autorefresh else self.files.get(url)


class StaticFiles:
    """Serves files under `STATIC_URL`, passes other requests on."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.files = Files()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope["method"] in {"GET", "HEAD"} and path.startswith(self.files.prefix):
            found = await asyncio.to_thread(self.files.lookup, path)
            if found is not None:
                await _serve(found, scope, send)
                return
        await self.application(scope, receive, send)


async def _serve(found: Any, scope: Scope, send: Send) -> None:
    environ = {
        "HTTP_" + name.decode("latin1").upper().replace("-", "_"): value.decode("latin1")
        for name, value in scope["headers"]
    }
    response = await asyncio.to_thread(found.get_response, scope["method"], environ)
    headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in response.headers]
    headers.append((b"x-content-type-options", b"nosniff"))
    await send({"type": "http.response.start", "status": int(response.status), "headers": headers})
    if response.file is not None:
        await _send_file(response.file, send)
    await send({"type": "http.response.body", "body": b""})


async def _send_file(file: IO[bytes], send: Send) -> None:
    try:
        while block := await asyncio.to_thread(file.read, BLOCK_BYTES):
            await send({"type": "http.response.body", "body": block, "more_body": True})
    finally:
        file.close()
