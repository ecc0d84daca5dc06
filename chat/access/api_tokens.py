"""Bearer tokens: made, found, touched, revoked. The database holds only their hashes.

A token is 32 random bytes, so an unsalted SHA-256 is enough: there is nothing to guess. It is shown once.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.account_errors import TokenNotFound
from chat.errors import InputInvalid, QuotaExceeded
from chat.instances.notifications import notify_on_commit, user_group
from chat.models import ApiToken
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

PREFIX = "think_"
STREAMS: Final = "streams"
EXECUTE: Final = "execute:"
"""Begins the scope of an executor's token, before the executor's name."""
SCOPES: Final = (STREAMS, f"{EXECUTE}<name>")
"""Doors that a token can be limited to: durable streams; the calls of one executor."""
_EXECUTE: Final = re.compile(rf"^{EXECUTE}[a-z0-9][a-z0-9_-]{{0,49}}$")
TOUCH_SECONDS = 300  # between two writes of a last use
MAX_LIVE: Final = 100
"""Tokens that a person may make, and have at one time."""
_SHOWN = len(PREFIX) + 6


def hash_secret(secret: str) -> str:
    """Hash of a token or of a sign-in link, as stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create_token(
    user: AbstractBaseUser, *, name: str, days: int | None = None, scopes: Sequence[str] = ()
) -> tuple[ApiToken, str]:
    """Make a named token of the user's; the second value is the secret, which is not stored.

    `scopes`: the doors that it opens, of `SCOPES`; none named: all. Units: `days` until it expires; nothing: never.
    Errors: `InputInvalid` for an empty or long name, and for an unknown scope.
    """
    if unknown := sorted(scope for scope in set(scopes) if scope != STREAMS and not _EXECUTE.match(scope)):
        raise InputInvalid(Phrase("There is no scope {name!r}.", name=unknown[0]))
    label = name.strip()
    if not label or len(label) > 100:
        raise InputInvalid("A token needs a name of 1 to 100 characters.")
    if days is not None and days < 1:
        raise InputInvalid("A token has to work for at least a day.")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=label,
        prefix=secret[:_SHOWN],
        token_hash=hash_secret(secret),
        scopes=sorted(set(scopes)),
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    return token, secret


def make_own_token(
    user: AbstractBaseUser, *, name: str, days: int | None, scopes: Sequence[str]
) -> tuple[ApiToken, str]:
    """Make a token as a person does for themselves. Errors: as `create_token`; `QuotaExceeded` beyond `MAX_LIVE`."""
    with transaction.atomic():
        lock_owner(user.pk)
        if live_tokens(user).count() >= MAX_LIVE:
            raise QuotaExceeded(Phrase("You can have {limit} tokens. Revoke some first.", limit=MAX_LIVE))
        return create_token(user, name=name, days=days, scopes=scopes)


def live_tokens(user: AbstractBaseUser) -> QuerySet[ApiToken]:
    """A user's tokens that work, the newest first."""
    lasts = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiToken.objects.filter(lasts, user_id=user.pk, revoked_at=None).order_by("-id")


def revoke_own_token(user: AbstractBaseUser, token_id: int) -> None:
    """End a live token of the user's own. Errors: `TokenNotFound`."""
    if not live_tokens(user).filter(pk=token_id).exists() or not revoke_token(token_id):
        raise TokenNotFound


def find_token(secret: str, *, scope: str = "") -> ApiToken | None:
    """The live token of this secret, with its active user; nothing when unknown, expired, revoked or the user inactive.

    `scope`: the door; a token that is limited to others, or to any where the door has no scope, is unknown. One query;
    writes the last use every `TOUCH_SECONDS` at most.
    """
    if not secret.startswith(PREFIX) or len(secret) > 200:
        return None
    token = ApiToken.objects.select_related("user").filter(token_hash=hash_secret(secret)).first()
    if token is None or not is_live(token) or (token.scopes and scope not in token.scopes):
        return None
    _touch(token)
    return token


def is_live(token: ApiToken) -> bool:
    """Whether the token works now. Needs the user loaded."""
    expired = token.expires_at is not None and token.expires_at <= timezone.now()
    return token.revoked_at is None and not expired and token.user.is_active


def revoke_token(token_id: int) -> bool:
    """End a token for good, and the sockets that live by it. Returns whether this call did it."""
    with transaction.atomic():
        rows = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=timezone.now())
        for user_id in ApiToken.objects.filter(pk=token_id).values_list("user_id", flat=True):
            notify_on_commit(user_group(user_id), {"type": "authority.changed"})
    return rows == 1


def prune_tokens(*, days: int = 90, dry_run: bool = False) -> int:
    """Remove tokens that were revoked or expired so many days ago. Returns how many (or would be)."""
    before = timezone.now() - timedelta(days=days)
    rows = ApiToken.objects.filter(revoked_at__lt=before) | ApiToken.objects.filter(expires_at__lt=before)
    if dry_run:
        return rows.count()
    with transaction.atomic():
        return rows.delete()[0]


def _touch(token: ApiToken) -> None:
    now = timezone.now()
    before = now - timedelta(seconds=TOUCH_SECONDS)
    if token.used_at is None or token.used_at < before:
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
