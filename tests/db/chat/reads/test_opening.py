"""When a socket opens: at once, whatever its first frames take; a client that waits for long comes back for ever."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.access import api_tokens
from chat.models import AgentInstance
from chat.reads import snapshots
from sessions_app.messages.services import queue_messages
from tests.db.chat.conftest import make_turn, say, text_message
from tests.db.chat.openings import kinds, opened
from tests.db.chat.sockets import answered, connection, cookie_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The transcript of a database that is busy until the event is set."""
    go_on = threading.Event()
    read = snapshots.window_of

    def slow(*arguments: Any) -> Any:
        go_on.wait(10)
        return read(*arguments)

    monkeypatch.setattr(snapshots, "window_of", slow)
    yield go_on
    go_on.set()


async def test_a_socket_opens_before_its_transcript_is_read(
    alice: User, talk: AgentInstance, slow_rows: threading.Event
) -> None:
    socket = connection(f"/agents/assistant/{talk.name}", cookie=await sync_to_async(cookie_of)(alice))
    assert await socket.connect(timeout=15) == (True, None)
    assert await socket.receive_nothing(timeout=0.3)
    slow_rows.set()
    texts = await answered(socket)
    assert "cf_agent_chat_messages" in texts[0]
    assert "q1" in texts[0]
    assert "cf_agent_identity" in "".join(texts[1:])
    await socket.disconnect()


@pytest.mark.parametrize("label", ["", "&_pk=mine"])
async def test_a_socket_opens_with_two_statements_and_its_transcript_is_read_once(
    alice: User, talk: AgentInstance, label: str
) -> None:
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    here, query = f"/agents/assistant/{talk.name}", f"token={secret}{label}"
    await opened("/agents/assistant/warm", query=query)  # which notes that the token is used
    assert kinds(await opened(here, query=query)) == ["token and user", "snapshot", "window"]
    assert kinds(await opened(here, query=query)) == ["token and user", "snapshot"]
    await sync_to_async(say)(talk, "q2", "a2")
    assert kinds(await opened(here, query=query)) == ["token and user", "snapshot", "window"]
    assert kinds(await opened("/agents/assistant/new", query=query)) == ["token and user", "snapshot"]


async def test_a_cookie_costs_one_statement_more(alice: User, talk: AgentInstance) -> None:
    cookie = await sync_to_async(cookie_of)(alice)
    here = f"/agents/assistant/{talk.name}"
    assert kinds(await opened(here, cookie=cookie)) == ["session", "user", "snapshot", "window"]
    assert kinds(await opened(here, cookie=cookie)) == ["session", "user", "snapshot"]
    assert kinds(await opened("/agents/assistant/new", cookie=cookie)) == ["session", "user", "snapshot"]


async def test_a_waiting_message_costs_one_look_at_its_turn(alice: User, talk: AgentInstance) -> None:
    assert talk.session_id is not None
    turn = await sync_to_async(make_turn)(talk, status="pending", started_at=None)
    await sync_to_async(queue_messages)(talk.session_id, [text_message("q2", "user")], turn_id=turn.pk)
    cookie = await sync_to_async(cookie_of)(alice)
    found = kinds(await opened(f"/agents/assistant/{talk.name}", cookie=cookie))
    # The feed waits for the turn meanwhile: whether its log and its end are there.
    waits = [sql for sql in found if "WITH newest" in sql or "t.finished_at IS NOT NULL" in sql]
    assert [sql for sql in found if sql not in waits][:4] == ["session", "user", "snapshot", "window"]
    [stopped] = [sql for sql in found if sql not in waits][4:]
    assert "think_fibers_fiber" in stopped
    assert len(waits) <= 2
