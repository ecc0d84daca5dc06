"""Files of pages as a client gets them: compressed, and cached."""

import gzip
import http.client
import re
from dataclasses import dataclass

import brotli

BROWSER = {"Accept-Encoding": "gzip, deflate, br, zstd", "Sec-Fetch-Site": "same-origin"}
FOR_EVER = {"public", "max-age=31536000", "immutable"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    sent: bytes

    @property
    def body(self) -> bytes:
        """What the client sees, decoded."""
        decode = {"br": brotli.decompress, "gzip": gzip.decompress}.get(self.headers.get("content-encoding", ""), bytes)
        return bytes(decode(self.sent))

    @property
    def caching(self) -> set[str]:
        return set(self.headers.get("cache-control", "").split(", "))


def get(port: int, path: str, *, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


def linked(page: bytes) -> list[str]:
    """The addresses of what a page loads, in order."""
    return list(dict.fromkeys(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.decode())))
