"""Sockets that open, and the statements that this costs."""

from tests.db.chat.sockets import connection, frames_until
from tests.db.statements import statements


async def opened(path: str, **credential: str) -> list[str]:
    """Open a socket and take what it is sent first; the statements that this cost."""
    socket = connection(path, **credential)
    with statements() as found:
        assert await socket.connect(timeout=15) == (True, None)
        await frames_until(socket, "cf_agent_mcp_servers")
    await socket.disconnect()
    return found


def kinds(found: list[str]) -> list[str]:
    """What each is for, by a table that only it reads."""
    tables = {
        "think_chat_apitoken": "token and user",
        "django_session": "session",
        "auth_user": "user",
        "think_chat_agentinstance": "snapshot",
        "think_sessions_message": "window",
    }
    return [next((purpose for table, purpose in tables.items() if table in sql), sql) for sql in found]
