"""When a socket opens: at once, whatever its first frames take; a client that waits for long comes back for ever."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.models import AgentInstance
from chat.reads import snapshots
from tests.db.chat.test_access_sockets import connection, cookie_of, received

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The transcript of a database that is busy until the event is set."""
    go_on = threading.Event()
    read = snapshots.version_of

    def slow(*arguments: Any) -> Any:
        go_on.wait(10)
        return read(*arguments)

    monkeypatch.setattr(snapshots, "version_of", slow)
    yield go_on
    go_on.set()


async def test_a_socket_opens_before_its_transcript_is_read(
    alice: User, talk: AgentInstance, slow_rows: threading.Event
) -> None:
    socket = connection(f"/agents/assistant/{talk.name}", cookie=await sync_to_async(cookie_of)(alice))
    assert await socket.connect(timeout=5) == (True, None)
    assert await socket.receive_nothing(timeout=0.3)
    slow_rows.set()
    texts = await received(socket)
    assert "cf_agent_chat_messages" in texts[0]
    assert "q1" in texts[0]
    assert "cf_agent_identity" in "".join(texts[1:])
    await socket.disconnect()
