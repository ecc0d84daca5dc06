"""People sign in at servers: begun by a page, finished by the answer of the authorization server, ended by a person.

What is under way is bound to the user and to the session of the browser that began it, and can be finished once.
"""

import hashlib
import secrets
from datetime import timedelta
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from thinkproject.kernel.loading import load as load_module
from thinkproject.kernel.secrets import SecretUnreadable, decrypt, encrypt
from tools_app.core.mcp.servers import McpServerSpec, McpTransport
from tools_app.errors import McpServerInvalid, McpSignInFailed
from tools_app.mcp import rows
from tools_app.mcp.tokens import Grant, forget_grant, read_grant, wanted_scope
from tools_app.models.mcp import McpServer, McpSignIn

PENDING_MINUTES: Final = 15
CALLBACK_PATH: Final = "/mcp/oauth/callback"
_CLIENT: Final = "tools_app.mcp.oauth_client"


async def begin(server: McpServer, user_id: Any, *, session: str, redirect_uri: str, is_local: bool) -> str:
    """The address of the authorization server's page for this person.

    `session`: something that only this browser knows. Durability: what is needed later is stored when this returns.
    Errors: `McpSignInFailed`, `McpServerInvalid` for a program.
    """
    if server.transport != McpTransport.HTTP:
        raise McpServerInvalid("Nobody signs in at a server that is a program.")
    await load_module(_CLIENT)
    from tools_app.mcp.oauth_client import begin_sign_in  # noqa: PLC0415 - it needs the protocol's package

    state = secrets.token_urlsafe(32)
    spec = await db(_spec, server)
    wanted = await db(wanted_scope, server.pk, user_id)
    begun = await begin_sign_in(spec, redirect_uri=redirect_uri, state=state, is_local=is_local, wanted=wanted)
    if spec.client_secret:
        await db(rows.bind_secret, server.pk, begun.pending["metadata"]["issuer"])
    await db(_store_pending, server.pk, user_id, state, session, begun.pending)
    return begun.url


async def finish(user_id: Any, *, session: str, state: str, code: str, issuer: str | None) -> McpServer:
    """Take the answer: exchange its code and keep the tokens, encrypted.

    Errors: `McpSignInFailed` for a state that is unknown, used, too old, of another person or of another browser.
    """
    row = await db(_take_pending, user_id, state, session)
    await load_module(_CLIENT)
    from tools_app.mcp.oauth_client import finish_sign_in  # noqa: PLC0415 - as above

    data = await finish_sign_in(load(decrypt(row.pending)), code=code, issuer=issuer)
    await db(_store_signed_in, row, data)
    return await db(rows.find_server, row.server_id)


def refused(user_id: Any, *, session: str, state: str) -> None:
    """Take the answer that the person or the server has refused. Errors: as those of `finish`."""
    _take_pending(user_id, state, session)


async def sign_out(server_id: str, user_id: Any) -> bool:
    """Have the authorization server forget the tokens, and forget them here whatever it says."""
    grant: Grant | None = await db(read_grant, server_id, user_id)
    if grant is None:
        return False
    await db(forget_grant, grant.row_id, grant.version)
    await load_module(_CLIENT)
    from tools_app.mcp.oauth_client import revoke_tokens  # noqa: PLC0415 - as above

    return await revoke_tokens(grant.data)


async def sign_out_all(server_id: str) -> None:
    """The same for everybody, before the server is removed."""
    owners = await db(
        lambda: list(McpSignIn.objects.filter(server_id=server_id).exclude(grant="").values_list("owner"))
    )
    for (owner_id,) in owners:
        await sign_out(server_id, owner_id)


def session_mark(session_key: str) -> str:
    """A hash of the key of a browser's session, as it is stored."""
    return hashlib.sha256(f"mcp sign-in {session_key}".encode()).hexdigest()


def _spec(server: McpServer) -> McpServerSpec:
    """Errors: `McpSignInFailed` where the client's secret cannot be read."""
    try:
        return rows.spec_of(server)
    except SecretUnreadable as error:
        raise McpSignInFailed(error.phrase) from error


def _store_pending(server_id: str, user_id: Any, state: str, session: str, pending: JSONObject) -> None:
    McpSignIn.objects.update_or_create(
        server_id=server_id,
        owner_id=user_id,
        defaults={
            "pending": encrypt(dump(pending)),
            "pending_hash": _hash(state),
            "pending_session": session_mark(session),
            "pending_until": timezone.now() + timedelta(minutes=PENDING_MINUTES),
        },
    )


def _take_pending(user_id: Any, state: str, session: str) -> McpSignIn:
    """Take what is under way, once. Errors: `McpSignInFailed`."""
    row = McpSignIn.objects.filter(
        pending_hash=_hash(state), owner_id=user_id, pending_until__gt=timezone.now()
    ).first()
    if row is None or not secrets.compare_digest(row.pending_session, session_mark(session)):
        raise McpSignInFailed
    if not McpSignIn.objects.filter(pk=row.pk, pending_hash=row.pending_hash).update(pending="", pending_hash=""):
        raise McpSignInFailed
    return row


def _store_signed_in(row: McpSignIn, data: JSONObject) -> None:
    seconds = data["tokens"].get("expires_in")
    McpSignIn.objects.filter(pk=row.pk).update(
        grant=encrypt(dump(data)),
        expires_at=None if seconds is None else timezone.now() + timedelta(seconds=float(seconds)),
        version=F("version") + 1,
        refreshing_until=None,
    )
    server = rows.find_server(row.server_id)
    server.needs_sign_in = True
    rows.begin_again(server)


def _hash(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()
