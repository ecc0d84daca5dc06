"""What sockets receive of a session that is compacted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.core.wire.extension_frames import SessionError, SessionPhase
from chat.core.wire.server_frames import parse_server
from chat.instances.notifications import SessionPhaseChanged, group_of, notify_context_usage, send_notification
from chat.instances.rows import key_of
from chat.models import AgentInstance
from tests.db.chat.sockets import connection, cookie_of, frames_until
from thinkproject.kernel.jsonvalue import dump

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def talk_socket(alice: User, talk: AgentInstance) -> AsyncIterator[Any]:
    made = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    connected, _ = await made.connect(timeout=15)
    assert connected
    yield made
    await made.disconnect()


async def test_clients_receive_a_compaction(talk_socket: Any, talk: AgentInstance) -> None:
    await frames_until(talk_socket, "cf_agent_mcp_servers")
    group = group_of(key_of(talk))
    assert talk.session_id is not None
    begins: SessionPhaseChanged = {
        "type": "session.phase",
        "session_id": talk.session_id,
        "threshold": None,
        "phase": "compacting",
        "tokens": 90,
    }
    send_notification(group, begins)
    send_notification(group, {"type": "session.failed", "session_id": talk.session_id, "error": "No summary."})
    compacted = {"tokensBefore": 90, "compactionId": "cmp_1"}
    send_notification(group, {**begins, "phase": "idle", "tokens": 40, "compacted": compacted})
    begun = (await frames_until(talk_socket, "cf_agent_session"))[-1]
    failed = (await frames_until(talk_socket, "cf_agent_session_error"))[-1]
    over = (await frames_until(talk_socket, "cf_agent_session"))[-1]
    assert begun == {
        "type": "cf_agent_session",
        "phase": "compacting",
        "tokenEstimate": 90,
        "tokenThreshold": None,
    }
    assert failed == {"type": "cf_agent_session_error", "error": "No summary."}
    assert over["compacted"] == {"tokensBefore": 90, "compactionId": "cmp_1"}
    assert isinstance(parse_server(dump(begun)), SessionPhase)
    assert isinstance(parse_server(dump(failed)), SessionError)


async def test_clients_receive_nothing_of_a_session_they_do_not_show(talk_socket: Any, talk: AgentInstance) -> None:
    await frames_until(talk_socket, "cf_agent_mcp_servers")
    group = group_of(key_of(talk))
    assert talk.session_id is not None
    for session_id, tokens in (("ses_another", 1), (talk.session_id, 2)):
        send_notification(group, {"type": "session.failed", "session_id": session_id, "error": str(tokens)})
        await sync_to_async(notify_context_usage)(key_of(talk), session_id, tokens, None)
    received = await frames_until(talk_socket, "cf_agent_session")
    assert [frame["error"] for frame in received if frame["type"] == "cf_agent_session_error"] == ["2"]
    assert [frame["tokenEstimate"] for frame in received if frame["type"] == "cf_agent_session"] == [2]
