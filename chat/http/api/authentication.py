"""Authentication of API requests: a bearer token, or the session cookie with a CSRF token.

A request with an `Authorization` header is decided by that alone. After success `request.auth` is a `Caller`.
"""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from ninja.errors import AuthorizationError
from ninja.security.apikey import APIKeyCookie
from ninja.security.http import HttpBearer
from ninja.utils import check_csrf

from chat.access import api_tokens, browsers
from chat.access.auth import Credential, bearer, page_is_allowed, require_user, session_credential, token_credential
from chat.account_errors import BrowserNeeded
from chat.errors import OriginDenied, Unauthenticated
from thinkproject.kernel.aio import db


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller and the credential used."""

    user: AbstractBaseUser
    credential: Credential


class TokenAuth(HttpBearer):
    """`Authorization: Bearer think_…`."""

    openapi_name = "Token"

    def __call__(self, request: HttpRequest) -> Caller | None:
        """Read the header."""
        return caller_by_token(request)

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        """Not used: the whole header is read at once."""
        raise NotImplementedError


class ExecutorAuth(TokenAuth):
    """The same at the addresses of an executor, also for a token that is limited to it."""

    def __call__(self, request: HttpRequest) -> Caller | None:
        """Read the header."""
        name = "" if request.resolver_match is None else str(request.resolver_match.kwargs.get("name", ""))
        return caller_by_token(request, scope=f"{api_tokens.EXECUTE}{name}")


class SessionAuth(APIKeyCookie):
    """Django's session cookie; unsafe methods need the CSRF token."""

    param_name = settings.SESSION_COOKIE_NAME
    openapi_name = "Session"

    def __call__(self, request: HttpRequest) -> Caller | None:
        """Read the session."""
        return caller_by_session(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        """Not used: the session middleware has read the cookie."""
        raise NotImplementedError


class AsyncTokenAuth(TokenAuth):
    """The same for async operations: the query runs on the bounded database executor."""

    async def __call__(self, request: HttpRequest) -> Caller | None:  # type: ignore[override]  # ninja awaits what is a coroutine
        """Read the header."""
        return await db(caller_by_token, request)


class AsyncSessionAuth(SessionAuth):
    """The same for async operations: the query runs on the bounded database executor."""

    async def __call__(self, request: HttpRequest) -> Caller | None:  # type: ignore[override]  # ninja awaits what is a coroutine
        """Read the session."""
        return await db(caller_by_session, request)


def caller_by_token(request: HttpRequest, scope: str = "") -> Caller | None:
    """The user of the `Authorization` header; `None` without one. Errors: `Unauthenticated` for an invalid one.

    `scope`: that of the door, for tokens which are limited.
    """
    header = request.headers.get("Authorization")
    if not header:
        return None
    return _caller_by_secret(bearer(header) or "", scope)


def caller_by_session(request: HttpRequest) -> Caller | None:
    """The user of the session cookie. Errors: `AuthorizationError` without a required CSRF token."""
    user = request.user
    if not isinstance(user, AbstractBaseUser) or not user.is_active:
        return None
    if check_csrf(request) is not None:
        raise AuthorizationError(message="The CSRF token is missing or wrong.")
    browsers.note_seen(request, user)
    # `request.user` is lazy; what leaves here is the plain row.
    return Caller(user=user, credential=session_credential(request.session, user))


def caller_of_page(request: HttpRequest, *, may_change: bool = False, scope: str = "") -> Caller:
    """The caller at addresses of published clients: by bearer header, `?token=`, or session cookie.

    Their transports know no CSRF token. Where something changes, a cookie needs the Origin of a page that is ours or
    listed instead, as on sockets. A bearer decides alone. `scope`: that of the door, for tokens which are limited.
    Errors: `Unauthenticated`, `OriginDenied`.
    """
    secret = bearer(request.headers.get("Authorization", ""))
    if secret is None:
        secret = request.GET.get("token")
    if secret is not None:
        return _caller_by_secret(secret, scope)
    user = require_user(request.user)
    if may_change and not page_is_allowed(request):
        raise OriginDenied
    return Caller(user=user, credential=session_credential(request.session, user))


def _caller_by_secret(secret: str, scope: str = "") -> Caller:
    token = api_tokens.find_token(secret, scope=scope) if secret else None
    if token is None:
        raise Unauthenticated("The token is unknown, expired or revoked.")
    return Caller(user=token.user, credential=token_credential(token))


def caller_of(request: HttpRequest) -> Caller:
    """Return who calls, in an authenticated operation. Errors: `Unauthenticated`."""
    caller = getattr(request, "auth", None)
    if not isinstance(caller, Caller):
        raise Unauthenticated
    return caller


def browser_caller_of(request: HttpRequest) -> Caller:
    """Return who calls with a browser. Errors: `BrowserNeeded` for tokens, `Unauthenticated`."""
    caller = caller_of(request)
    if caller.credential.kind != "session":
        raise BrowserNeeded
    return caller
