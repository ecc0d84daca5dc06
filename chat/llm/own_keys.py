"""Keys of people for providers, while something runs that one of them asked for.

A site lets people bring keys for a provider by `own_keys` in its entry of `THINK_PROVIDERS`. The keys are entered for
one task and those that it starts; `chat.llm.registry` alone reads them, where it makes an adapter.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import httpx2

from chat.llm.conf import llm_settings
from chat.llm.endpoint import Endpoint, is_loopback

TRY_SECONDS: Final = 10.0
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_present: ContextVar[Mapping[str, str]] = ContextVar("think_own_keys", default=_NONE)


class KeyTrial(StrEnum):
    """The outcome of asking a provider with a key."""

    WORKS = "works"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@contextmanager
def under_own_keys(keys: Mapping[str, str]) -> Iterator[None]:
    """Have models of these providers be asked with these keys, within the block."""
    token = _present.set(keys)
    try:
        yield
    finally:
        _present.reset(token)


def own_key(provider: str) -> str:
    """The key of the person whom the present work is for; empty where there is none, or the site takes none."""
    keys = _present.get()
    return keys.get(provider, "") if keys and takes_own_keys(provider) else ""


def has_own_keys() -> bool:
    """Whether the present work is done with keys of a person's."""
    return bool(_present.get())


def takes_own_keys(provider: str) -> bool:
    """Whether the site lets people bring keys for this provider."""
    return llm_settings.providers.get(provider, {}).get("own_keys") is True


def own_key_providers() -> list[str]:
    """The providers for which the site lets people bring keys."""
    return sorted(provider for provider in llm_settings.providers if takes_own_keys(provider))


async def try_key(endpoint: Endpoint) -> KeyTrial:
    """Ask a provider for its models, with the key of this endpoint. Never raises, and logs nothing of the key."""
    is_here = is_loopback(endpoint.base_url)
    headers = {**endpoint.headers, "Authorization": f"Bearer {endpoint.api_key}"}
    try:
        async with asyncio.timeout(TRY_SECONDS), httpx2.AsyncClient(trust_env=not is_here) as client:
            response = await client.get(f"{endpoint.base_url}/models", headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError):
        return KeyTrial.UNREACHABLE
    if response.status_code == 200:
        return KeyTrial.WORKS
    return KeyTrial.REFUSED if response.status_code in (401, 403) else KeyTrial.UNREACHABLE
