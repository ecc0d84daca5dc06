"""The access token of a user at a server: sent with each request, and refreshed before it expires.

Of all processes one refreshes: the conditional update of the row decides which (`refreshing_until`), and the others
wait until the row has the new token. A process that dies meanwhile holds the others up for `REFRESH_SECONDS`.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import httpx2
from django.db.models import F, Q
from django.utils import timezone

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from thinkproject.kernel.loading import load as load_module
from thinkproject.kernel.secrets import decrypt, encrypt
from tools_app.errors import GrantRefused, OAuthUnreachable
from tools_app.models.mcp import McpSignIn

EARLY_SECONDS: Final = 60.0
"""How long before its end a token is refreshed."""
REFRESH_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1
MAX_SCOPE_CHARS: Final = 2_000
_INSUFFICIENT: Final = re.compile(r'\berror="?insufficient_scope\b')
_SCOPE: Final = re.compile(r'(?<![\w-])scope="([\x20-\x21\x23-\x7e]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The yield of a sign-in, decrypted. `version` counts its changes."""

    row_id: int
    version: int
    data: JSONObject
    expires_at: datetime | None

    @property
    def access_token(self) -> str:
        """The token."""
        return str(self.data["tokens"]["access_token"])

    def is_fresh(self) -> bool:
        """Whether the token can still be used for a while."""
        if self.expires_at is None:
            return True
        lifetime = float(self.data["tokens"].get("expires_in") or 0.0)
        early = min(EARLY_SECONDS, lifetime / 5)
        return self.expires_at > timezone.now() + timedelta(seconds=early)


class TokenAuth(httpx2.Auth):
    """Signs requests with the user's token. `was_refused`: the server wants a sign-in that we do not have."""

    def __init__(self, server_id: str, user_id: Any) -> None:
        self.was_refused = False
        self._server_id = server_id
        self._user_id = user_id
        self._grant: Grant | None = None
        self._was_read = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send with the token; once more with a new one where it is refused."""
        grant = await self._current()
        response = yield _signed(request, grant)
        if response.status_code == 401:
            if grant is not None:
                grant = self._grant = await fresh_grant(self._server_id, self._user_id, refused=grant.version)
            if grant is None:
                self.was_refused = True
                return
            response = yield _signed(request, grant)
        wanted = _missing_scope(response)
        if grant is not None and (response.status_code == 401 or wanted):
            self.was_refused = True
            former = str(grant.data.get("scope", ""))
            await db(forget_grant, grant.row_id, grant.version, wanted and f"{former} {wanted}".strip())

    async def _current(self) -> Grant | None:
        if not self._was_read or (self._grant is not None and not self._grant.is_fresh()):
            self._grant = await fresh_grant(self._server_id, self._user_id)
            self._was_read = True
        return self._grant


def _signed(request: httpx2.Request, grant: Grant | None) -> httpx2.Request:
    if grant is not None:
        request.headers["Authorization"] = f"Bearer {grant.access_token}"
    return request


def _missing_scope(response: httpx2.Response) -> str:
    """The scope that a refusal asks for (RFC 6750, section 3.1); empty for every other answer."""
    challenge = response.headers.get("www-authenticate", "") if response.status_code == 403 else ""
    found = _SCOPE.search(challenge) if _INSUFFICIENT.search(challenge) else None
    return found[1][:MAX_SCOPE_CHARS] if found else ""


async def fresh_grant(server_id: str, user_id: Any, *, refused: int | None = None) -> Grant | None:
    """The user's grant, refreshed where it is about to expire; nothing where a person has to sign in.

    `refused`: the version of a grant whose token the server does not take any more.
    """
    if user_id is None:
        return None
    deadline = asyncio.get_running_loop().time() + REFRESH_SECONDS
    while (grant := await db(read_grant, server_id, user_id)) is not None:
        if grant.version != refused and grant.is_fresh():
            return grant
        if await db(_take, grant):
            found = await _refreshed(grant)
            return None if found is not None and found.version == refused else found
        if asyncio.get_running_loop().time() > deadline:
            return None
        await asyncio.sleep(POLL_SECONDS)
    return None


def read_grant(server_id: str, user_id: Any) -> Grant | None:
    """Read and decrypt a user's grant. Errors: `SecretUnreadable`."""
    row = McpSignIn.objects.filter(server_id=server_id, owner_id=user_id).exclude(grant="").first()
    if row is None:
        return None
    return Grant(row_id=row.pk, version=row.version, data=load(decrypt(row.grant)), expires_at=row.expires_at)


def store_grant(row_id: int, version: int, data: JSONObject) -> bool:
    """Replace a grant, unless another one has taken its place."""
    seconds = data["tokens"].get("expires_in")
    changed = McpSignIn.objects.filter(pk=row_id, version=version).update(
        grant=encrypt(dump(data)),
        expires_at=None if seconds is None else timezone.now() + timedelta(seconds=float(seconds)),
        version=F("version") + 1,
        refreshing_until=None,
        changed_at=timezone.now(),
    )
    return bool(changed)


def forget_grant(row_id: int, version: int, wanted: str = "") -> None:
    """Forget a grant that is of no use any more. `wanted`: the scope that the next sign-in asks for besides others."""
    kept = {"pending": encrypt(dump({"wanted": wanted})), "pending_hash": ""} if wanted else {}
    McpSignIn.objects.filter(pk=row_id, version=version).update(
        grant="", expires_at=None, version=F("version") + 1, refreshing_until=None, changed_at=timezone.now(), **kept
    )


def wanted_scope(server_id: str, user_id: Any) -> str:
    """The scope that a server has asked for when this person's token was not enough. Errors: `SecretUnreadable`."""
    row = McpSignIn.objects.filter(server_id=server_id, owner_id=user_id).exclude(pending="").first()
    return str(load(decrypt(row.pending)).get("wanted", "")) if row is not None else ""


async def _refreshed(grant: Grant) -> Grant | None:
    if not grant.data["tokens"].get("refresh_token"):
        await db(forget_grant, grant.row_id, grant.version)
        return None
    try:
        data = await _refresh(grant.data)
    except GrantRefused:
        await db(forget_grant, grant.row_id, grant.version)
        return None
    except OAuthUnreachable:
        await db(_give_back, grant)
        return grant if grant.expires_at is not None and grant.expires_at > timezone.now() else None
    except BaseException:
        await db(_give_back, grant)
        raise
    await db(store_grant, grant.row_id, grant.version, data)
    seconds = data["tokens"].get("expires_in")
    ends = None if seconds is None else timezone.now() + timedelta(seconds=float(seconds))
    return Grant(row_id=grant.row_id, version=grant.version + 1, data=data, expires_at=ends)


async def _refresh(data: JSONObject) -> JSONObject:
    await load_module("tools_app.mcp.oauth_client")
    from tools_app.mcp.oauth_client import refresh_tokens  # noqa: PLC0415 - it needs the protocol's package

    return await refresh_tokens(data)


def _take(grant: Grant) -> bool:
    """Whether this process refreshes the grant."""
    now = timezone.now()
    free = Q(refreshing_until=None) | Q(refreshing_until__lt=now)
    rows = McpSignIn.objects.filter(free, pk=grant.row_id, version=grant.version)
    return bool(rows.update(refreshing_until=now + timedelta(seconds=REFRESH_SECONDS)))


def _give_back(grant: Grant) -> None:
    McpSignIn.objects.filter(pk=grant.row_id, version=grant.version).update(refreshing_until=None)
