"""Addresses: split the raw path first, decode each segment after."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.errors import AgentNotFound
from chat.instances.addresses import Address, Hop, parse_address


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/agents/my-chat-agent/room-1", Address(agent="my-chat-agent", name="room-1")),
        (b"/agents/chat-agent/default?token=x", Address(agent="chat-agent", name="default")),
        ("/agents/chat-agent/a%20b/%C3%BC", Address(agent="chat-agent", name="a b", rest=("ü",))),
        ("/agents/chat-agent/a%2Fb/get-messages", Address(agent="chat-agent", name="a/b", rest=("get-messages",))),
        ("/agents/agents/agents/", Address(agent="agents", name="agents")),
        ("/mounted/here/agents/x/y", Address(agent="x", name="y")),
    ],
)
def test_a_path_is_an_address(path: str | bytes, expected: Address) -> None:
    assert parse_address(path) == expected


def test_sub_agent_markers_are_read() -> None:
    address = parse_address("/agents/inbox/u1/sub/chat-agent/c%201%2F%C3%A9/sub/x/y/extra")
    assert address.hops == (Hop(agent="chat-agent", name="c 1/é"), Hop(agent="x", name="y"))
    assert parse_address("/agents/inbox/u1/sub/chat-agent").hops == ()
    assert parse_address("/agents/inbox/u1/settings").hops == ()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/agents",
        "/agents/",
        "/agents/x",
        "/agents/x/",
        "/agents//y",
        "/agents/x/.",
        "/agents/x/..",
        "/agents/x/sub",
        "/agents/x/%2E%2E",
        "/agents/x/a%00b",
        "/agents/x/%FF",
        "/agents/sub/y",
        "/elsewhere/x/y",
        "/agents/x/" + "a" * 256,
    ],
)
def test_what_names_no_agent_is_not_found(path: str) -> None:
    with pytest.raises(AgentNotFound):
        parse_address(path)


@given(name=st.text(min_size=1, max_size=60).filter(lambda t: t not in {".", "..", "sub"} and "\x00" not in t))
def test_any_encoded_name_comes_back(name: str) -> None:
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError:
        return
    assert parse_address(f"/agents/x/{quoted}/rest").name == name


@given(path=st.binary(max_size=80))
def test_any_bytes_are_an_address_or_not_found(path: bytes) -> None:
    try:
        parse_address(b"/agents/" + path)
    except AgentNotFound:
        return
