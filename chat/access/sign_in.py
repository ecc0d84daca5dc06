"""One-time sign-in links of `make run`: hashed, short-lived, loopback only, never on a production server.

A GET never consumes one, as previews and scanners fetch links; the page it shows has a button that does.
"""

import ipaddress
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.utils import timezone

from chat.access.api_tokens import hash_secret
from chat.access.conf import access_settings
from chat.errors import LinkUnknown, SignInDenied
from chat.models import SignInLink

_LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]"}


def create_link(user: AbstractBaseUser) -> str:
    """Make a link token for the user; older unused links of theirs end. Errors: `SignInDenied` in production."""
    refuse_in_production()
    secret = secrets.token_urlsafe(32)
    now = timezone.now()
    with transaction.atomic():
        SignInLink.objects.filter(user_id=user.pk, used_at=None).update(expires_at=now)
        SignInLink.objects.create(
            user_id=user.pk,
            token_hash=hash_secret(secret),
            expires_at=now + timedelta(minutes=access_settings.link_minutes),
        )
    return secret


def find_link_user(secret: str) -> AbstractBaseUser:
    """Find the user of a sign-in link without consuming it. Errors: `LinkUnknown`."""
    link = SignInLink.objects.select_related("user").filter(
        token_hash=hash_secret(secret), used_at=None, expires_at__gt=timezone.now(), user__is_active=True
    )
    found = link.first()
    if found is None:
        raise LinkUnknown
    return found.user


def consume_link(secret: str) -> AbstractBaseUser:
    """Use the link up and return whom it signs in. The first caller wins. Errors: `LinkUnknown`."""
    now = timezone.now()
    token_hash = hash_secret(secret)
    with transaction.atomic():
        rows = SignInLink.objects.filter(
            token_hash=token_hash, used_at=None, expires_at__gt=now, user__is_active=True
        ).update(used_at=now)
        if rows != 1:
            raise LinkUnknown
        user_id = SignInLink.objects.values_list("user_id", flat=True).get(token_hash=token_hash)
    return get_user_model().objects.get(pk=user_id)


def has_links() -> bool:
    """Whether there are sign-in links here: not on a production server."""
    return not getattr(settings, "IS_PRODUCTION", bool(settings.ALLOWED_HOSTS))


def refuse_in_production() -> None:
    """Errors: `SignInDenied` on a production server, which has a login page and people of its own."""
    if not has_links():
        raise SignInDenied("Sign-in links work only on a server without ALLOWED_HOSTS.")


def refuse_strangers(request: HttpRequest) -> None:
    """Errors: `SignInDenied` unless both the peer and the Host are this machine."""
    refuse_in_production()
    host = split_domain_port(request.META.get("HTTP_HOST", ""))[0]
    forwarded = "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META
    if forwarded or host not in _LOCAL_NAMES or not _is_loopback(request.META.get("REMOTE_ADDR", "")):
        raise SignInDenied("Sign-in links work only on this machine.")


def prune_links(*, dry_run: bool = False) -> int:
    """Remove links that ended a day ago. Returns how many (or would be)."""
    rows = SignInLink.objects.filter(expires_at__lt=timezone.now() - timedelta(days=1))
    return rows.count() if dry_run else rows.delete()[0]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
