"""People's own keys for providers: stored encrypted, never read out again but for the work of their person."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chat.account_errors import KeyNotFound
from chat.errors import InputInvalid, QuotaExceeded
from chat.llm.own_keys import KeyTrial, own_key_providers, takes_own_keys
from chat.models import ProviderKey
from thinkproject.kernel.secrets import SecretUnreadable, decrypt, encrypt

TRIAL_SECONDS: Final = 5
"""The time between two trials of one key."""
_KEY: Final = re.compile(r"[!-~]{8,500}")
_SHOWN: Final = 4


def keys_of(user: AbstractBaseUser) -> dict[str, ProviderKey]:
    """The stored keys of a person by provider. One query."""
    return {row.provider: row for row in ProviderKey.objects.filter(user_id=user.pk)}


def store_key(user: AbstractBaseUser, provider: str, key: str) -> ProviderKey:
    """Store a key, in the place of the former one. Errors: `KeyNotFound` where the site takes none; `InputInvalid`."""
    if not takes_own_keys(provider):
        raise KeyNotFound
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise InputInvalid("A key has 8 to 500 characters: letters, digits and signs, without spaces.")
    fields = {
        "secret": encrypt(key),
        "ending": key[-_SHOWN:],
        "created_at": timezone.now(),
        "tried_at": None,
        "outcome": "",
    }
    with transaction.atomic():
        row, _ = ProviderKey.objects.update_or_create(user_id=user.pk, provider=provider, defaults=fields)
    return row


def remove_key(user: AbstractBaseUser, provider: str) -> None:
    """Remove a key. Work that runs goes on with it to its end. Errors: `KeyNotFound`."""
    if not ProviderKey.objects.filter(user_id=user.pk, provider=provider).delete()[0]:
        raise KeyNotFound


def begin_trial(user: AbstractBaseUser, provider: str) -> str:
    """The key, to be tried now. Errors: `KeyNotFound`, `QuotaExceeded` within some seconds of the last trial."""
    now = timezone.now()
    rows = ProviderKey.objects.filter(user_id=user.pk, provider=provider)
    row = rows.first() if takes_own_keys(provider) else None
    if row is None:
        raise KeyNotFound
    is_due = Q(tried_at=None) | Q(tried_at__lt=now - timedelta(seconds=TRIAL_SECONDS))
    if not rows.filter(is_due).update(tried_at=now):
        raise QuotaExceeded("This key was tried a moment ago. Wait some seconds.", retry_after_seconds=TRIAL_SECONDS)
    return decrypt(row.secret)


def end_trial(user: AbstractBaseUser, provider: str, outcome: KeyTrial) -> ProviderKey:
    """Store what came of a trial. Errors: `KeyNotFound`."""
    rows = ProviderKey.objects.filter(user_id=user.pk, provider=provider)
    rows.update(outcome=outcome.value)
    row = rows.first()
    if row is None:
        raise KeyNotFound
    return row


def keys_for_work(user_id: Any) -> Mapping[str, str]:
    """A person's keys by provider, those that the site takes. One query; none where it takes none of anybody.

    A key that cannot be decrypted any more is left out, and the site's own counts.
    """
    providers = own_key_providers()
    if not providers:
        return {}
    found: dict[str, str] = {}
    rows = ProviderKey.objects.filter(user_id=user_id, provider__in=providers)
    for provider, secret in rows.values_list("provider", "secret"):
        try:
            found[provider] = decrypt(secret)
        except SecretUnreadable:
            continue
    return found
