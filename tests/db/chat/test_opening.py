"""When a socket opens: with all that its client is told at first, so that no question comes before the transcript."""

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat import live, opening
from chat.models import AgentInstance
from tests.db.chat.test_access_sockets import connection, cookie_of, received

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The transcript of a database that is busy until the event is set."""
    go_on = threading.Event()
    read = live.versioned_transcript

    def slow(*arguments: Any) -> Any:
        go_on.wait(10)
        return read(*arguments)

    monkeypatch.setattr(live, "versioned_transcript", slow)
    yield go_on
    go_on.set()


@pytest.fixture
async def socket(alice: User, talk: AgentInstance, slow_rows: threading.Event) -> AsyncIterator[Any]:
    del slow_rows
    made = connection(f"/agents/assistant/{talk.name}", cookie=await sync_to_async(cookie_of)(alice))
    await made.send_input({"type": "websocket.connect"})
    yield made
    await made.disconnect()


async def test_a_socket_opens_with_its_transcript_and_not_before(socket: Any, slow_rows: threading.Event) -> None:
    assert await socket.receive_nothing(timeout=0.5)
    slow_rows.set()
    assert (await socket.receive_output(timeout=5))["type"] == "websocket.accept"
    texts = await received(socket)
    assert "cf_agent_chat_messages" in texts[0]
    assert "q1" in texts[0]
    assert "cf_agent_identity" in "".join(texts[1:])


async def test_a_socket_does_not_wait_for_ever(socket: Any, slow_rows: threading.Event) -> None:
    assert (await socket.receive_output(timeout=opening.PATIENCE_SECONDS + 5))["type"] == "websocket.accept"
    assert await socket.receive_nothing(timeout=0.3)
    slow_rows.set()
    texts = await received(socket)
    assert "cf_agent_chat_messages" in texts[0]
    assert sum("cf_agent_chat_messages" in text for text in texts) == 1
