"""Clients of providers: one for an address and key, shared between turns, and not kept for ever."""

import asyncio
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from chat.llm.adapters import transport
from chat.llm.adapters.transport import client_of, encoded
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedServer
from thinkproject.kernel.jsonvalue import dump


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


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts, lambda inner: st.lists(inner))
messages = st.lists(st.dictionaries(texts, values, max_size=3), max_size=4)


@given(messages, st.sampled_from(["messages", "input"]))
def test_messages_are_encoded_as_all_else_is(sent: list[dict[str, Any]], key: str) -> None:
    body = {"model": "m", key: sent, "tools": [{"step": 0.1}], "top_p": 1e-05}
    assert encoded(body) == dump(body).encode()


def test_half_a_character_is_sent_as_json_writes_it() -> None:
    assert encoded({"messages": [{"content": "a\ud83d"}]}) == b'{"messages":[{"content":"a\\ud83d"}]}'
