"""Clients of providers: one for an address and key, shared between turns, and not kept for ever."""

import asyncio
from collections.abc import Callable

import pytest

from chat.llm.adapters import transport
from chat.llm.adapters.transport import client_of
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedServer


async def test_an_address_and_key_share_a_client(server: ScriptedServer, endpoint_of: Callable[..., Endpoint]) -> None:
    async with (
        client_of(endpoint_of(server, api_key="a")) as first,
        client_of(endpoint_of(server, api_key="a")) as same,
    ):
        assert first is same
        async with client_of(endpoint_of(server, api_key="b")) as other:
            assert other is not first
    async with client_of(endpoint_of(server, api_key="a")) as again:
        assert again is first


async def test_clients_that_were_not_used_for_long_are_closed(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEPT_CLIENTS", 2)
    clients = []
    for key in ("a", "b", "a", "c"):
        async with client_of(endpoint_of(server, api_key=key)) as client:
            clients.append(client)
    first, second, _, third = clients
    assert [client.is_closed() for client in (first, second, third)] == [False, True, False]


async def test_a_client_in_use_is_not_closed(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEPT_CLIENTS", 1)
    async with client_of(endpoint_of(server, api_key="a")) as used:
        for key in ("b", "c"):
            async with client_of(endpoint_of(server, api_key=key)):
                pass
        assert not used.is_closed()
        assert await asyncio.wait_for(used.models.list(), 10) is not None
    assert len(transport._clients[asyncio.get_running_loop()]) == 1
