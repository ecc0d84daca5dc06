"""Signing in at an OpenID provider: the authorization code flow with state, nonce and PKCE.

Authlib makes and checks these three, the signature of the ID token and its times. Issuer and audience are
checked as given here.
"""

import logging
import re
import secrets
from collections.abc import Mapping
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from joserfc.errors import JoseError

from .models import Identity

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10
_NEXT = "assistant_next"
_BACKEND = "django.contrib.auth.backends.ModelBackend"

_settings: Any = settings  # with the names that the example's settings add
ISSUER: str = _settings.ASSISTANT_ISSUER
CLIENT_ID: str = _settings.ASSISTANT_CLIENT_ID

_registry = OAuth()
_registry.register(
    "provider",
    client_id=CLIENT_ID,
    client_secret=_settings.ASSISTANT_CLIENT_SECRET,
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_kwargs={
        "scope": "openid profile email",
        "code_challenge_method": "S256",
        "default_timeout": TIMEOUT_SECONDS,
    },
)
_CLAIMS = {
    "iss": {"essential": True, "value": ISSUER},
    "aud": {"essential": True, "value": CLIENT_ID},
}


class SignInRefused(Exception):
    """The provider's answer is not good enough; the message is for the log."""


def provider_name(_request: HttpRequest) -> dict[str, str]:
    """Give templates the name that people know the provider by."""
    return {"provider_name": _settings.ASSISTANT_PROVIDER_NAME}


@never_cache
@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Lead to the provider. `next`: where to go afterwards, on this site."""
    wanted = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    request.session[_NEXT] = wanted if is_ours else ""
    try:
        address = request.build_absolute_uri(reverse("provider-back"))
        response: HttpResponse = _registry.provider.authorize_redirect(request, address)
    except (AuthlibBaseError, requests.RequestException, ValueError, RuntimeError) as error:
        return _refused(request, error, status=502)
    return response


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    """Take what the provider says, once, and sign in; an account is made the first time."""
    try:
        token = _registry.provider.authorize_access_token(request, claims_options=_CLAIMS)
        user = account_of(token.get("userinfo"))
    except requests.RequestException as error:
        return _refused(request, error, status=502)
    except (AuthlibBaseError, JoseError, SignInRefused, ValueError, RuntimeError) as error:
        return _refused(request, error, status=403)
    wanted = request.session.pop(_NEXT, "")
    login(request, user, backend=_BACKEND)  # gives the session another key
    return redirect(wanted or resolve_url(settings.LOGIN_REDIRECT_URL))


def account_of(claims: Mapping[str, Any] | None) -> User:
    """Return the account of who the checked ID token is about, made when there is none. Errors: `SignInRefused`.

    By issuer and subject alone: an account that has the same name or e-mail address belongs to another person.
    """
    subject = claims.get("sub") if claims else None
    if claims is None or not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise SignInRefused("no ID token with a subject came")
    known = {"issuer": ISSUER, "subject": subject}
    found = Identity.objects.select_related("user").filter(**known).first()
    if found is None:
        try:
            with transaction.atomic():
                found = Identity.objects.create(user=_new_user(claims), **known)
        except IntegrityError:  # the same person, in another tab at the same moment
            found = Identity.objects.select_related("user").get(**known)
    user: User = found.user
    if not user.is_active:
        raise SignInRefused(f"the account {user.pk} is switched off")
    return user


def _new_user(claims: Mapping[str, Any]) -> User:
    wished = re.sub(r"[^\w.-]", "", str(claims.get("preferred_username") or claims.get("name") or ""))[:40] or "person"
    email = str(claims.get("email") or "")[:254] if claims.get("email_verified") is True else ""
    name = f"{wished}-{secrets.token_hex(4)}"  # never the name of an account that is there
    return User.objects.create_user(name, email=email, first_name=str(claims.get("name") or "")[:150])


def _refused(request: HttpRequest, error: Exception, *, status: int) -> HttpResponse:
    logger.warning("Signing in at the provider failed: %s: %s", type(error).__name__, error)
    return render(request, "assistant/refused.html", {"is_unreachable": status == 502}, status=status)
