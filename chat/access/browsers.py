"""Browsers that people are signed in with: noted at the sign-in, seen now and then, signed out one by one.

The row follows the session, whatever engine keeps that: it is written when a person signs in, or when a session that
is older than the table is seen, and goes when the session ends. Sessions that are cookies alone cannot be ended by the
server, so they are not listed.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.backends.signed_cookies import SessionStore as CookieStore
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone

from chat.access.api_tokens import hash_secret
from chat.access.auth import Credential, holding
from chat.account_errors import SignInNotFound
from chat.core.devices import device_of
from chat.instances.notifications import notify_on_commit, user_group
from chat.models import SignedInBrowser
from thinkproject.kernel.jsonvalue import dump, load
from thinkproject.kernel.secrets import SecretUnreadable, decrypt, encrypt

SEEN_SECONDS: Final = 300
"""The time between two writes of when a browser was last seen, in each process."""
MAX_LISTED: Final = 100
FRESH_SECONDS: Final = 600
"""The time for which a sign-in stands for a password, where an account has none."""
_SIGNED_IN_AT: Final = "think_signed_in_at"  # in the session
_MAX_REMEMBERED: Final = 10_000
_seen: dict[str, float] = {}  # hash of a session's key to when this process last noted it, by the monotonic clock


def note_sign_in(*, request: HttpRequest, user: AbstractBaseUser, **_facts: Any) -> None:
    """Note a sign-in; a receiver of Django's signal."""
    session = getattr(request, "session", None)
    if session is None:
        return
    session[_SIGNED_IN_AT] = int(time.time())
    if not can_list():
        return
    if session.session_key is None:  # it was made anew, and gets its key when it is stored
        session.save()
    _add(request, user)


def note_sign_out(*, request: HttpRequest, **_facts: Any) -> None:
    """Forget a browser that signs out; a receiver of Django's signal."""
    session = getattr(request, "session", None)
    if session is not None and session.session_key:
        SignedInBrowser.objects.filter(key_hash=hash_secret(session.session_key)).delete()


def note_seen(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Note that the browser of a request is used. Writes every `SEEN_SECONDS` at most; else no query."""
    key = request.session.session_key
    if not key or not can_list():
        return
    mark, now = hash_secret(key), time.monotonic()
    last = _seen.get(mark)
    if last is not None and now - last < SEEN_SECONDS:
        return
    _remember(mark)
    moment = timezone.now()
    rows = SignedInBrowser.objects.filter(key_hash=mark)
    is_noted = rows.filter(seen_at__lt=moment - timedelta(seconds=SEEN_SECONDS)).update(seen_at=moment)
    if not is_noted and not rows.exists():
        _add(request, user)


def can_list() -> bool:
    """Whether the engine of sessions lets the server end one."""
    return not issubclass(_store_class(), CookieStore)


def browsers_of(user: AbstractBaseUser) -> list[SignedInBrowser]:
    """The browsers that are signed in now, the last used first; at most `MAX_LISTED`. Three queries."""
    rows = list(SignedInBrowser.objects.filter(user_id=user.pk).order_by("-seen_at", "pk")[:MAX_LISTED])
    credentials = {row.pk: _credential(row) for row in rows}
    live = holding([each for each in credentials.values() if each is not None])
    return [row for row in rows if credentials[row.pk] in live]


def is_current(row: SignedInBrowser, session_key: str) -> bool:
    """Whether this is the browser of a session."""
    return bool(session_key) and row.key_hash == hash_secret(session_key)


def sign_out(user: AbstractBaseUser, browser_id: str) -> None:
    """End the session of one browser of the user's, and the sockets that live by it. Errors: `SignInNotFound`."""
    row = SignedInBrowser.objects.filter(user_id=user.pk, pk=browser_id).first()
    if row is None:
        raise SignInNotFound
    _end(user.pk, [row])


def sign_out_others(user: AbstractBaseUser, session_key: str) -> int:
    """End all sessions of the user's but the one of this key (empty: all of them). Returns how many rows went."""
    rows = SignedInBrowser.objects.filter(user_id=user.pk)
    return _end(user.pk, list(rows.exclude(key_hash=hash_secret(session_key)) if session_key else rows))


def is_fresh(session: SessionBase) -> bool:
    """Whether the person of a session signed in a moment ago."""
    return int(session.get(_SIGNED_IN_AT, 0)) > time.time() - FRESH_SECONDS


def prune_browsers(*, dry_run: bool = False) -> int:
    """Remove rows of sessions that have expired: not seen for as long as a session lasts. Returns how many."""
    before = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE + 86_400)
    rows = SignedInBrowser.objects.filter(seen_at__lt=before)
    return rows.count() if dry_run else rows.delete()[0]


def _add(request: HttpRequest, user: AbstractBaseUser) -> None:
    key = str(request.session.session_key)
    device = device_of(request.headers.get("User-Agent", "") if request.META else "")
    secret = encrypt(dump([key, str(request.session.get(HASH_SESSION_KEY, ""))]))
    _remember(hash_secret(key))
    try:
        with transaction.atomic():
            SignedInBrowser.objects.create(
                user_id=user.pk,
                key_hash=hash_secret(key),
                credential=secret,
                browser=device.browser,
                system=device.system,
            )
    except IntegrityError:
        return  # a parallel request of the same browser was first


def _remember(mark: str) -> None:
    if len(_seen) >= _MAX_REMEMBERED:
        _seen.clear()
    _seen[mark] = time.monotonic()


def _credential(row: SignedInBrowser) -> Credential | None:
    """The credential of a row; nothing where the site's keys have changed, under which no session holds either."""
    try:
        key, session_hash = load(decrypt(row.credential))
    except SecretUnreadable:
        return None
    return Credential(user_id=row.user_id, kind="session", session_key=key, session_hash=session_hash)


def _end(user_id: Any, rows: Sequence[SignedInBrowser]) -> int:
    keys = [found.session_key for row in rows if (found := _credential(row)) is not None]
    store = _store_class()
    with transaction.atomic():
        if store is DatabaseStore:
            store.get_model_class().objects.filter(session_key__in=keys).delete()
        else:
            for key in keys:
                store(key).delete()
        count, _ = SignedInBrowser.objects.filter(pk__in=[row.pk for row in rows]).delete()
        notify_on_commit(user_group(user_id), {"type": "authority.changed"})
    return count


def _store_class() -> type[SessionBase]:
    store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
    return store
