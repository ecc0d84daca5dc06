"""Grants: a person's consent, the code that it begins with, and its tokens. The database holds hashes alone.

A code is used once, within a minute, together with the verifier of its challenge. A refresh token is replaced at each
use. A code or refresh token that comes a second time was stolen, by either side: the whole grant ends.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from chat.access.api_tokens import TOUCH_SECONDS, hash_secret
from chat.access.oauth.conf import oauth_settings
from chat.access.oauth.scopes import Scope, known_scopes
from chat.errors import GrantNotFound, QuotaExceeded
from chat.instances.notifications import notify_on_commit, user_group
from chat.models import OAuthGrant, OAuthToken
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

CODE_SECONDS: Final = 60
ACCESS_PREFIX: Final = "mcpa_"
REFRESH_PREFIX: Final = "mcpr_"
KEPT_DAYS: Final = 90
"""How long an ended grant stays, for those who look after the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A decision of a person to let a program act: the program's request, checked. The person is not in it."""

    client_id: str
    agent: str
    resource: str
    scopes: tuple[Scope, ...]
    code_challenge: str
    redirect_uri: str
    redirect_is_explicit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPair:
    """A new access and refresh token; neither is stored. Units: `expires_in` seconds, of the access token."""

    access: str
    refresh: str
    expires_in: int
    scopes: tuple[Scope, ...]


def create_grant(user: AbstractBaseUser, consent: Consent) -> str:
    """Store a consent. Returns the code, which is not stored. Errors: `QuotaExceeded`."""
    code = secrets.token_urlsafe(32)
    limit = oauth_settings.grants_per_user
    with transaction.atomic():
        lock_owner(user.pk)
        if limit and live_grants(user).count() >= limit:
            raise QuotaExceeded(Phrase("You can authorise {limit} programs. End some grants first.", limit=limit))
        OAuthGrant.objects.create(
            user_id=user.pk,
            client_id=consent.client_id,
            agent=consent.agent,
            resource=consent.resource,
            scopes=[scope.value for scope in consent.scopes],
            code_hash=hash_secret(code),
            code_challenge=consent.code_challenge,
            code_expires_at=timezone.now() + timedelta(seconds=CODE_SECONDS),
            redirect_uri=consent.redirect_uri,
            redirect_is_explicit=consent.redirect_is_explicit,
        )
    return code


def find_code(client_id: str, code: str) -> OAuthGrant | None:
    """The grant that begins with this code. One that was used before ends its grant and is none."""
    grant = OAuthGrant.objects.filter(code_hash=hash_secret(code), client_id=client_id).first()
    if grant is None or grant.revoked_at is not None:
        return None
    if grant.exchanged_at is not None:
        revoke(grant.pk)
        return None
    return grant


def exchange_code(grant_id: str) -> TokenPair | None:
    """Use the code of a grant up. Nothing, and the grant ends, where another request was first."""
    now = timezone.now()
    grant = OAuthGrant.objects.select_related("user").get(pk=grant_id)
    if not grant.user.is_active:
        return None
    with transaction.atomic():
        # No joins: of an update with one, PostgreSQL does not look at the condition again after it waited for the row.
        unused = OAuthGrant.objects.filter(pk=grant_id, exchanged_at=None, revoked_at=None, code_expires_at__gt=now)
        if unused.update(exchanged_at=now, used_at=now):
            return _issue(grant)
    if OAuthGrant.objects.filter(pk=grant_id, exchanged_at__isnull=False).exists():
        revoke(grant_id)
    return None


def find_refresh(client_id: str, secret: str) -> OAuthToken | None:
    """The refresh token of this secret, with its grant. One that was replaced ends its grant and is none."""
    token = _find(secret, OAuthToken.Kind.REFRESH)
    if token is None or token.grant.client_id != client_id or not _holds(token):
        return None
    if token.replaced_at is not None:
        revoke(token.grant_id)
        return None
    return token


def refresh(token_id: int) -> TokenPair | None:
    """Replace a refresh token. Nothing, and the grant ends, where another request was first."""
    token = OAuthToken.objects.select_related("grant").filter(pk=token_id).first()
    if token is None:  # the grant has just ended
        return None
    now = timezone.now()
    with transaction.atomic():
        # The grant first, as `revoke` locks them; without joins, as above.
        is_live = OAuthGrant.objects.filter(pk=token.grant_id, revoked_at=None).update(used_at=now)
        if is_live and OAuthToken.objects.filter(pk=token_id, replaced_at=None).update(replaced_at=now):
            return _issue(token.grant)
    revoke(token.grant_id)
    return None


def find_access(secret: str) -> OAuthToken | None:
    """The live access token of this secret, with its grant and active user. One query; notes the use now and then."""
    if not secret.startswith(ACCESS_PREFIX) or len(secret) > 200:
        return None
    token = _find(secret, OAuthToken.Kind.ACCESS)
    if token is None or not _holds(token):
        return None
    before = timezone.now() - timedelta(seconds=TOUCH_SECONDS)
    if token.grant.used_at is None or token.grant.used_at < before:
        OAuthGrant.objects.filter(pk=token.grant_id).update(used_at=timezone.now())
    return token


def grant_holds(grant_id: str) -> bool:
    """Whether a grant still holds; for requests that last longer than the access token that they began with."""
    return OAuthGrant.objects.filter(pk=grant_id, revoked_at=None, user__is_active=True).exists()


def revoke_by_secret(client_id: str, secret: str) -> None:
    """End the grant of a token that the program holds. Does nothing for any other text."""
    token = OAuthToken.objects.filter(token_hash=hash_secret(secret), grant__client_id=client_id).first()
    if token is not None:
        revoke(token.grant_id)


def revoke(grant_id: str) -> bool:
    """End a grant and all of its tokens. Returns whether this call did it."""
    with transaction.atomic():
        rows = OAuthGrant.objects.filter(pk=grant_id, revoked_at=None)
        user_id = rows.values_list("user_id", flat=True).first()
        if user_id is None or not rows.update(revoked_at=timezone.now()):
            return False
        OAuthToken.objects.filter(grant_id=grant_id).delete()
        notify_on_commit(user_group(user_id), {"type": "authority.changed"})
    return True


def live_grants(user: AbstractBaseUser) -> QuerySet[OAuthGrant]:
    """A user's grants that work, or whose code may still be exchanged; newest first, their programs loaded."""
    now = timezone.now()
    tokens = OAuthToken.objects.filter(grant=OuterRef("pk"), expires_at__gt=now)
    rows = OAuthGrant.objects.filter(user_id=user.pk, revoked_at=None)
    works = Q(exchanged_at__isnull=False) & Q(Exists(tokens))
    starts = Q(exchanged_at=None, code_expires_at__gt=now)
    return rows.filter(works | starts).select_related("client").order_by("-created_at", "pk")


def open_grant(user: AbstractBaseUser, grant_id: str) -> OAuthGrant:
    """A live grant of the user's own. Errors: `GrantNotFound`."""
    grant = live_grants(user).filter(pk=grant_id).first()
    if grant is None:
        raise GrantNotFound
    return grant


def prune_grants(*, dry_run: bool = False) -> int:
    """Remove grants that ended long ago or were never used, and tokens that expired. Returns how many grants."""
    now = timezone.now()
    dead = OAuthToken.objects.filter(expires_at__lt=now)
    tokens = OAuthToken.objects.filter(grant=OuterRef("pk"), expires_at__gt=now)
    ended = Q(revoked_at__lt=now - timedelta(days=KEPT_DAYS))
    unused = Q(exchanged_at=None, code_expires_at__lt=now - timedelta(days=1))
    silent = Q(exchanged_at__lt=now - timedelta(days=1), revoked_at=None) & ~Q(Exists(tokens))
    rows = OAuthGrant.objects.filter(ended | unused | silent)
    if dry_run:
        return rows.count()
    with transaction.atomic():
        count: int = rows.count()
        rows.delete()
        dead.delete()
    return count


def _find(secret: str, kind: OAuthToken.Kind) -> OAuthToken | None:
    rows = OAuthToken.objects.select_related("grant__user", "grant__client")
    return rows.filter(token_hash=hash_secret(secret), kind=kind).first()


def _holds(token: OAuthToken) -> bool:
    grant: Any = token.grant
    return token.expires_at > timezone.now() and grant.revoked_at is None and grant.user.is_active


def _issue(grant: OAuthGrant) -> TokenPair:
    access = ACCESS_PREFIX + secrets.token_urlsafe(32)
    refresh_secret = REFRESH_PREFIX + secrets.token_urlsafe(32)
    now, seconds = timezone.now(), oauth_settings.access_seconds
    OAuthToken.objects.create(
        grant=grant,
        kind=OAuthToken.Kind.ACCESS,
        token_hash=hash_secret(access),
        expires_at=now + timedelta(seconds=seconds),
    )
    OAuthToken.objects.create(
        grant=grant,
        kind=OAuthToken.Kind.REFRESH,
        token_hash=hash_secret(refresh_secret),
        expires_at=now + timedelta(days=oauth_settings.refresh_days),
    )
    return TokenPair(
        access=access, refresh=refresh_secret, expires_in=seconds, scopes=tuple(known_scopes(grant.scopes))
    )
