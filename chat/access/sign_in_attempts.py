"""Limits of attempts to sign in, as a handler of django-axes: per account and address, and per address.

Axes itself counts a failure after the password was compared, so parallel guesses all pass its check. Here an attempt is
counted first, in a statement of its own, and refunded when it succeeds; who is over a limit is refused before anything
is compared. An account alone is never locked: a stranger could keep its owner out. What is refused is not counted, so
a lock ends by itself. The tables, the admin's list and the `axes_reset` commands are those of axes.
"""

import logging
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.db import IntegrityError, transaction
from django.db.models import F, Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from chat.access.conf import access_settings

logger = logging.getLogger("think.auth")

TEMPLATE = "chat/sign_in_locked.html"

Credentials = dict[str, Any] | None


class SignInAttempts(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """Counts attempts in rows of `AccessAttempt`, one for each account and address."""

    def is_allowed(self, request: HttpRequest, credentials: Credentials = None) -> bool:
        """Count an attempt and return whether it is allowed. Called before a password is compared."""
        if self.is_locked(request, credentials):
            return False
        self._count(request, credentials)
        # Read after the count is committed: of parallel attempts no more than the limit see themselves within it.
        return not self._is_beyond(request, credentials, spare=0)

    def is_locked(self, request: HttpRequest, credentials: Credentials = None) -> bool:
        """Return whether an attempt would be refused. Counts nothing."""
        return self._is_beyond(request, credentials, spare=1)

    def user_login_failed(
        self, _sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **_kwargs: Any
    ) -> None:
        """Count a failure that no backend was asked about, such as a wrong sign-in link."""
        if request is None or getattr(request, "axes_locked_out", False):
            return
        if not getattr(request, "sign_in_attempt_is_counted", False):
            self._count(request, credentials)
        logger.info("sign-in failed", extra={"action": "sign_in_failed", "address": _address(request)})

    def user_logged_in(self, _sender: Any, request: HttpRequest, user: Any, **_kwargs: Any) -> None:
        """Clear the failures of one account at one address; other accounts at that address keep theirs."""
        mine = AccessAttempt.objects.filter(ip_address=_address(request))
        mine.filter(username=str(user.get_username())[:255]).delete()

    def user_logged_out(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing is counted here."""

    def retry_after_seconds(self, request: HttpRequest) -> int:
        """Remaining duration of this request's lock, unless an earlier attempt expires first."""
        newest = self._attempts(request).aggregate(at=Max("attempt_time"))["at"]
        ends_at = (newest or timezone.now()) + timedelta(seconds=access_settings.sign_in_lock_seconds)
        return max(1, ceil((ends_at - timezone.now()).total_seconds()))

    def _is_beyond(self, request: HttpRequest, credentials: Credentials, *, spare: int) -> bool:
        attempts = self._attempts(request)
        username = _username(request, credentials)
        if username and access_settings.sign_in_tries:
            own = attempts.filter(username=username)
            if _sum(own) + spare > access_settings.sign_in_tries:
                return True
        most = access_settings.sign_in_tries_per_address
        return bool(most) and _sum(attempts) + spare > most

    def _attempts(self, request: HttpRequest) -> "QuerySet[Any]":
        rows: QuerySet[Any] = AccessAttempt.objects.filter(attempt_time__gt=_threshold())
        return rows.filter(ip_address=_address(request)).order_by()

    def _count(self, request: HttpRequest, credentials: Credentials) -> None:
        request.sign_in_attempt_is_counted = True  # type: ignore[attr-defined]  # as axes keeps its own there
        place = {"ip_address": _address(request), "username": _username(request, credentials), "user_agent": ""}
        AccessAttempt.objects.filter(attempt_time__lte=_threshold()).delete()
        rows = AccessAttempt.objects.filter(**place)
        if _add(rows):
            return
        try:
            with transaction.atomic():
                AccessAttempt.objects.create(**place, failures_since_start=1, get_data="", post_data="")
        except IntegrityError:
            _add(rows)  # a parallel attempt made the row


def locked_response(
    request: HttpRequest, _response: HttpResponse | None = None, _credentials: Credentials = None
) -> HttpResponse:
    """The page of a refused attempt: the same for every account, known or not."""
    seconds = SignInAttempts().retry_after_seconds(request)
    reply = render(request, TEMPLATE, {"minutes": ceil(seconds / 60)}, status=429)
    reply["Retry-After"] = str(seconds)
    reply["Cache-Control"] = "no-store"
    return reply


def _address(request: HttpRequest) -> str:
    return str(request.axes_ip_address)  # type: ignore[attr-defined]  # set by the proxy of axes, from client_network


def _username(request: HttpRequest, credentials: Credentials) -> str:
    return str(get_client_username(request, credentials) or "")[:255]


def _threshold() -> datetime:
    return timezone.now() - timedelta(seconds=access_settings.sign_in_lock_seconds)


def _sum(attempts: "QuerySet[Any]") -> int:
    return int(attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0)


def _add(rows: "QuerySet[Any]") -> int:
    return int(rows.update(failures_since_start=F("failures_since_start") + 1, attempt_time=timezone.now()))
