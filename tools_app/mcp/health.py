"""The health of MCP servers: what became of connections to them, when the next is tried, and the lines of the log.

All functions are sync and run on the database bridge.
"""

import logging
import random
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from thinkproject.kernel.retry import RetryPolicy
from tools_app.core.mcp.catalogue import tool_prints
from tools_app.core.mcp.servers import McpState
from tools_app.mcp.rows import changed
from tools_app.models.mcp import McpServer

logger = logging.getLogger(__name__)

MAX_ERROR_CHARS: Final = 500
RETRY_SECONDS: Final = 5.0
"""For which a server that failed is left alone; twice as long each further time."""
MAX_RETRY_SECONDS: Final = 600.0


def store_catalogue(server_id: str, config_hash: str, catalogue: JSONObject) -> bool:
    """Store what a server offers; it is ready. False where its row is gone or is about another server by now."""
    with transaction.atomic():
        server = McpServer.objects.select_for_update().filter(pk=server_id, config_hash=config_hash).first()
        if server is None:
            return False
        before = (server.state, server.fingerprint, server.error)
        server.catalogue, server.fingerprint = catalogue, fingerprint(catalogue)
        if server.accepted is None or server.is_trusted:
            server.accepted = tool_prints(catalogue)
        _log_state(server, McpState.READY)
        server.state, server.error, server.failures, server.retry_at = McpState.READY, "", 0, None
        server.listed_at = timezone.now()
        server.save()
        if before != (server.state, server.fingerprint, server.error):
            _log_skipped(server)
            changed(server)
    return True


def note_connecting(server_id: str) -> None:
    """Note that the first connection to a server is being made."""
    rows = McpServer.objects.filter(pk=server_id, catalogue=None).exclude(state=McpState.CONNECTING)
    if rows.update(state=McpState.CONNECTING):
        _changed_id(server_id)


def note_failure(server_id: str, config_hash: str, error: str) -> None:
    """Note that a connection failed, and when the next may be tried. People and the log learn of a new state once."""
    with transaction.atomic():
        server = McpServer.objects.select_for_update().filter(pk=server_id, config_hash=config_hash).first()
        if server is None:
            return
        is_new = server.state != McpState.FAILED
        _log_state(server, McpState.FAILED, error)
        server.state, server.error = McpState.FAILED, error[:MAX_ERROR_CHARS]
        server.failures = min(server.failures + 1, 30)
        server.retry_at = timezone.now() + timedelta(seconds=retry_delay(server.failures))
        server.save(update_fields=["state", "error", "failures", "retry_at"])
        if is_new:
            changed(server)


def note_working(server_id: str) -> None:
    """Note that a server that had failed answers again. No statement that writes where it had not."""
    rows = McpServer.objects.filter(pk=server_id).exclude(Q(failures=0) & Q(retry_at=None))
    if rows.update(failures=0, retry_at=None, error="") and McpServer.objects.filter(
        pk=server_id, state=McpState.FAILED
    ).exclude(catalogue=None).update(state=McpState.READY):
        logger.info("mcp server answers again", extra={"action": "mcp_state", "server": server_id, "state": "ready"})
        _changed_id(server_id)


def note_sign_in_needed(server_id: str) -> None:
    """Note that a server wants people to sign in."""
    rows = McpServer.objects.filter(pk=server_id)
    if rows.exclude(needs_sign_in=True, state=McpState.AUTHENTICATING).update(
        needs_sign_in=True, state=McpState.AUTHENTICATING, error="", failures=0, retry_at=None
    ):
        logger.info(
            "mcp server wants a sign-in",
            extra={"action": "mcp_state", "server": server_id, "state": McpState.AUTHENTICATING.value},
        )
        _changed_id(server_id)


def retry_delay(failures: int) -> float:
    """Seconds until the next attempt, spread so that processes and servers do not try in step."""
    policy = RetryPolicy(first_seconds=RETRY_SECONDS, max_seconds=MAX_RETRY_SECONDS, jitter_share=0.25)
    return policy.delay_seconds(failures, jitter=random.random())  # noqa: S311 - not cryptography


def _changed_id(server_id: str) -> None:
    server = McpServer.objects.filter(pk=server_id).first()
    if server is not None:
        changed(server)


def _log_state(server: McpServer, state: McpState, error: str = "") -> None:
    """One line where the state changes, and none where it stays."""
    if server.state != state:
        level = logging.WARNING if state is McpState.FAILED else logging.INFO
        extra = {"action": "mcp_state", "server": server.pk, "state": state.value, "error": error[:MAX_ERROR_CHARS]}
        logger.log(level, "mcp server changed its state", extra=extra)


def _log_skipped(server: McpServer) -> None:
    skipped = (server.catalogue or {}).get("skipped") or []
    if skipped:
        names = ", ".join(str(item.get("name")) for item in skipped[:5])
        extra = {"action": "mcp_tools_skipped", "server": server.pk, "tools": names, "count": len(skipped)}
        logger.warning("tools of an mcp server cannot be offered", extra=extra)
