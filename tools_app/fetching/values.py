"""Limits, requests and responses as values, for modules that are there before the HTTP client is loaded."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

OnRedirect: TypeAlias = Literal["follow", "manual", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of one fetch. `seconds`: all of it, redirects included; `max_bytes`: sent, and again decompressed."""

    seconds: float = 10.0
    max_bytes: int = 1_000_000
    max_chars: int = 24_000
    max_redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    redirect: OnRedirect = "follow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A response, its body decompressed. `url`: where redirects have led. `charset`: of the header, or empty."""

    url: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    was_redirected: bool = False
    media_type: str = ""
    charset: str = ""
