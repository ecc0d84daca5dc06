"""Programs that register themselves. Registration is open to strangers, so it is bounded, and what is unused goes."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chat.access.oauth.conf import oauth_settings
from chat.errors import InputInvalid, QuotaExceeded
from chat.models import OAuthClient, OAuthGrant
from thinkproject.kernel.phrases import Phrase

UNUSED_HOURS: Final = 24
"""After which a program that no person authorised is removed."""
MAX_NAME: Final = 100
MAX_URIS: Final = 10
MAX_URI: Final = 1_000
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEME: Final = re.compile(r"^[a-z][a-z0-9+.-]*$")
_HARMFUL: Final = frozenset(
    {"javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "ws", "wss", "ftp", "mailto", "tel"}
)


def register(name: str, redirect_uris: Sequence[str], *, network: str) -> OAuthClient:
    """Store a program. `network`: where the request came from.

    Errors: `InputInvalid` for an address that cannot be redirected to, `QuotaExceeded` when too many are registered.
    """
    if not 1 <= len(redirect_uris) <= MAX_URIS:
        raise InputInvalid(Phrase("A program registers 1 to {limit} redirect addresses.", limit=MAX_URIS))
    for uri in redirect_uris:
        check_redirect(uri)
    _check_room(network)
    cleaned = "".join(character for character in name if character.isprintable()).strip()[:MAX_NAME]
    return OAuthClient.objects.create(name=cleaned, redirect_uris=list(redirect_uris), network=network)


def check_redirect(uri: str) -> None:
    """Refuse an address that a person must not be sent to. Errors: `InputInvalid`.

    Plain HTTP leads to this machine only; a scheme of an app of its own is taken, those that run code are not.
    """
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        raise InputInvalid("This redirect address is malformed.") from None
    is_plain = uri.isascii() and uri.isprintable() and " " not in uri and "\\" not in uri and len(uri) <= MAX_URI
    if not is_plain or parts.fragment or parts.username is not None or not _SCHEME.match(parts.scheme):
        raise InputInvalid("This redirect address is malformed.")
    if parts.scheme in _HARMFUL or (parts.scheme == "http" and host not in _LOOPBACK):
        raise InputInvalid("A redirect address is https, or http on the machine of the program, or an app's own.")
    if parts.scheme == "https" and not host:
        raise InputInvalid("This redirect address is malformed.")


def find_client(client_id: str) -> OAuthClient | None:
    """The registered program of this id."""
    return OAuthClient.objects.filter(pk=client_id).first() if 0 < len(client_id) <= 64 else None


def unused_clients() -> QuerySet[OAuthClient]:
    """Programs without any grant."""
    return OAuthClient.objects.filter(~Exists(OAuthGrant.objects.filter(client=OuterRef("pk"))))


def prune_clients(*, dry_run: bool = False) -> int:
    """Remove programs that no person has authorised in time. Returns how many (or would be)."""
    before = timezone.now() - timedelta(hours=UNUSED_HOURS)
    rows = unused_clients().filter(created_at__lt=before)
    return rows.count() if dry_run else rows.delete()[0]


def _check_room(network: str) -> None:
    hourly = oauth_settings.registrations_per_hour
    since = timezone.now() - timedelta(hours=1)
    if hourly and OAuthClient.objects.filter(network=network, created_at__gt=since).count() >= hourly:
        raise QuotaExceeded("Too many programs were registered from there.", retry_after_seconds=3600)
    most = oauth_settings.clients
    if unused_clients()[max(most - 1, 0) :].exists() or not most:
        prune_clients()
        if unused_clients()[max(most - 1, 0) :].exists() or not most:
            raise QuotaExceeded("No more programs can be registered at the moment.", retry_after_seconds=3600)
