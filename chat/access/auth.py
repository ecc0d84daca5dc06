"""Authorization of requests, and of access to the objects a URL names. Every entry point uses it.

Names are scoped to the user, so no user can name another's instance; ids are looked up together with their owner, so a
foreign id is the same as an unknown one. Superusers get no way round: for looking at other people's conversations there
is the admin, with permissions of its own. All functions are sync; call them through `kernel.aio.db` from the loop.
"""

import hmac
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qs

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.backends.signed_cookies import SessionStore as CookieStore
from django.db.models import Exists, Model, QuerySet
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from django.http.request import split_domain_port, validate_host
from django.utils import timezone

from chat.access import api_tokens
from chat.access.conf import access_settings
from chat.access.origins import http_scheme, is_allowed, own_origin, parse_origin
from chat.agent.base import InstanceKey
from chat.agent.registry import is_served
from chat.errors import (
    AgentNotFound,
    ArchiveNotFound,
    AttachmentNotFound,
    InputInvalid,
    InstanceNotFound,
    OriginDenied,
    RunNotFound,
    TurnNotFound,
    Unauthenticated,
)
from chat.instances.addresses import Address, is_root_name
from chat.instances.rows import key_of, lookup_of
from chat.members import policy
from chat.members.selectors import is_still_in, role_at_file, role_in, role_of
from chat.models import AgentInstance, AgentRun, ApiToken, ArchiveImport, Attachment, Role, Turn
from sessions_app.errors import CompactionNotFound
from sessions_app.models import Compaction, Session
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.phrases import Phrase

logger = logging.getLogger("think.auth")

User: TypeAlias = AbstractBaseUser | AnonymousUser
Row = TypeVar("Row", bound=Model)
Scope: TypeAlias = Mapping[str, Any]  # an ASGI connection scope
_DEBUG_HOSTS = [".localhost", "127.0.0.1", "[::1]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A connection's identity and credential; enough to verify it again later (`recheck`)."""

    user_id: int
    kind: Literal["session", "token"]
    session_key: str = ""
    session_hash: str = ""  # of the user's password at sign-in
    token_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAgent:
    """An address that this user may use. `instance`: none before the first write. `is_read_only`: its class is gone."""

    key: InstanceKey
    instance: AgentInstance | None
    is_read_only: bool = False


def require_user(user: User) -> AbstractBaseUser:
    """Return the user when signed in and active. Errors: `Unauthenticated`."""
    if not isinstance(user, AbstractBaseUser) or not user.is_active or user.pk is None:
        raise Unauthenticated
    return user


def open_agent(user: User, agent: str, name: str) -> OpenedAgent:
    """Open the user's own instance of this agent and name. Writes nothing.

    Errors: as `open_key`; `InputInvalid` for a name that no address can have.
    """
    owner = require_user(user)
    if not is_root_name(name):
        raise InputInvalid(Phrase("A conversation cannot be named {name!r:.80}: no address leads there.", name=name))
    return open_key(owner, InstanceKey(owner_id=owner.pk, agent=agent, name=name))


def open_key(user: User, key: InstanceKey, *, needs: Role = Role.OWNER) -> OpenedAgent:
    """Open an instance of the user's own, or of another's for a member; the only way from an address to an instance.

    What a URL asks for is made a key by `resolving.resolve`, which asks the classes, or by `open_shared`. Writes
    nothing. Errors: `Unauthenticated` for strangers and inactive users; `AgentNotFound` for another's address and for
    an unknown agent, unless the user has an instance of it from when it existed: that one opens read-only;
    `RoleNeeded` for a member whose role is not enough.
    """
    person = require_user(user)
    instance = AgentInstance.objects.select_related("session").filter(**lookup_of(key)).first()
    if instance is None or instance.owner_id == person.pk:
        check_address(person.pk, key, exists=instance is not None)
    else:
        policy.require(role_of(person.pk, instance), needs, AgentNotFound)
    return OpenedAgent(key=key, instance=instance, is_read_only=not is_served(key.agent))


def check_address(user_id: int, key: InstanceKey, *, exists: bool) -> None:
    """The rule of `open_key` for a user who is known to be active. Errors: `AgentNotFound`.

    `exists`: whether the address has a row; an agent that is served may be opened without one.
    """
    if key.owner_id != user_id or not (exists or is_served(key.agent)):
        raise AgentNotFound


def open_key_for(user_id: int, key: InstanceKey, *, needs: Role = Role.OWNER) -> OpenedAgent:
    """Open an address for the holder of a credential, as `open_key`."""
    return open_key(get_user_model().objects.filter(pk=user_id).first() or AnonymousUser(), key, needs=needs)


def open_shared(user_id: int, instance_id: str, address: Address) -> InstanceKey:
    """The address of a conversation for the holder of a credential who is in it: the one that was asked for.

    Errors: `AgentNotFound`, for strangers as for what does not exist.
    """
    user = get_user_model().objects.filter(pk=user_id).first() or AnonymousUser()
    try:
        key = key_of(open_instance(user, instance_id, needs=Role.READER))
    except InstanceNotFound:
        raise AgentNotFound from None
    lineage = [(each.agent, each.name) for each in (*key.ancestors, key)]
    if lineage != [(address.agent, address.name), *((hop.agent, hop.name) for hop in address.hops)]:
        raise AgentNotFound
    return key


def open_instance(user: User, instance_id: str, *, needs: Role = Role.OWNER) -> AgentInstance:
    """The instance of this id, its session loaded, for its owner and members with the role that is needed.

    Errors: `Unauthenticated`, `InstanceNotFound` for strangers, `RoleNeeded` for other members.
    """
    person = require_user(user)
    instance = _find(AgentInstance.objects.select_related("session"), instance_id, InstanceNotFound)
    policy.require(role_of(person.pk, instance), needs)
    return instance


def open_session(user: User, session_id: str, *, needs: Role = Role.OWNER) -> AgentInstance:
    """The instance that this session belongs to. Errors: as `open_instance`."""
    person = require_user(user)
    session = _find(Session.objects.all(), session_id, InstanceNotFound)
    instance = _find(AgentInstance.objects.all(), session.scope, InstanceNotFound)
    policy.require(role_of(person.pk, instance), needs)
    return instance


def open_turn(user: User, turn_id: str, *, needs: Role = Role.OWNER) -> Turn:
    """A turn, its instance and fiber loaded. Errors: `Unauthenticated`, `TurnNotFound`, `RoleNeeded`."""
    person = require_user(user)
    turn = _find(Turn.objects.select_related("instance", "fiber"), turn_id, TurnNotFound)
    policy.require(role_of(person.pk, turn.instance), needs, TurnNotFound)
    return turn


def open_run(user: User, run_id: str, *, needs: Role = Role.OWNER) -> AgentRun:
    """A run of an agent for an instance. Errors: `Unauthenticated`, `RunNotFound`, `RoleNeeded`."""
    person = require_user(user)
    run = _find(AgentRun.objects.select_related("parent"), run_id, RunNotFound)
    policy.require(role_of(person.pk, run.parent), needs, RunNotFound)
    return run


def open_compaction(user: User, compaction_id: str, *, needs: Role = Role.OWNER) -> AgentInstance:
    """The instance that a compaction belongs to. Errors: `Unauthenticated`, `CompactionNotFound`, `RoleNeeded`."""
    person = require_user(user)
    rows = Compaction.objects.select_related("session")
    scope = _find(rows, compaction_id, CompactionNotFound).session.scope
    instance = _find(AgentInstance.objects.all(), scope, CompactionNotFound)
    policy.require(role_of(person.pk, instance), needs, CompactionNotFound)
    return instance


def open_attachment(user: User, attachment_id: str, *, needs: Role = Role.OWNER) -> Attachment:
    """A file of the user's own, or one in a message of a conversation where the user has the role that is needed.

    Errors: `Unauthenticated`, `AttachmentNotFound`, `RoleNeeded`.
    """
    person = require_user(user)
    row = _find(Attachment.objects.select_related("instance"), attachment_id, AttachmentNotFound)
    if row.instance is not None and row.instance.deleted_at is not None:
        raise AttachmentNotFound
    if row.owner_id != person.pk:
        role = (
            role_at_file(person.pk, row.pk, row.owner_id) if row.instance is None else role_of(person.pk, row.instance)
        )
        # A file is its owner's alone, also where another one's conversation shows it.
        policy.require(role, needs, AttachmentNotFound)
        if needs is Role.OWNER:
            raise policy.role_needed(needs)
    return row


def open_archive(user: User, import_id: str) -> ArchiveImport:
    """An import of the user's own, its fibers loaded. Errors: `Unauthenticated`, `ArchiveNotFound`."""
    owner = require_user(user)
    rows = ArchiveImport.objects.select_related("scan", "run").filter(owner_id=owner.pk)
    return _find(rows, import_id, ArchiveNotFound)


def authenticate_scope(scope: Scope) -> Credential | None:
    """Authenticate the opener of a socket by bearer header, `?token=` or session cookie; `None` without a credential.

    A bearer decides alone: when it is wrong a cookie is not tried. Errors: `OriginDenied` when a cookie comes from a
    page that is not ours or not listed (answer 403 before accepting); anything else is refused after accepting.
    """
    headers = _headers(scope)
    secret = bearer(headers.get("authorization", ""))
    if secret is None:
        secret = _query_token(scope)
    if secret is not None:
        token = api_tokens.find_token(secret)
        return None if token is None else token_credential(token)
    session_key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
    if not session_key:
        return None
    if not origin_is_allowed(scope):
        raise OriginDenied
    return _session_credential(session_key)


def origin_is_allowed(scope: Scope) -> bool:
    """Whether the page that opens this connection may use a cookie: same scheme, host and port, or listed."""
    own = served_origin(scope)
    if own is None:
        return False
    return is_allowed(_headers(scope).get("origin"), own=parse_origin(own), listed=access_settings.allowed_origins)


def program_is_allowed(scope: Scope) -> bool:
    """The same for requests with a bearer token, which programs send without any origin."""
    return "origin" not in _headers(scope) or origin_is_allowed(scope)


def served_origin(scope: Scope) -> str | None:
    """The origin, `https://host[:port]`, at which a connection reached us; nothing for a Host that is not ours."""
    headers = _headers(scope)
    host = headers.get("host", "")
    if settings.USE_X_FORWARDED_HOST and "x-forwarded-host" in headers:
        host = headers["x-forwarded-host"]
    hosts: Iterable[str] = settings.ALLOWED_HOSTS or (_DEBUG_HOSTS if settings.DEBUG else [])
    scheme = http_scheme(_scheme(scope, headers))
    is_ours = validate_host(split_domain_port(host)[0], hosts) and parse_origin(f"{scheme}://{host}") is not None
    return f"{scheme}://{host}" if is_ours else None


def page_is_allowed(request: HttpRequest) -> bool:
    """The same for a request that Django has read, whose Host it has checked."""
    own = own_origin(str(request.scheme), request.get_host())
    return is_allowed(request.headers.get("Origin"), own=own, listed=access_settings.allowed_origins)


def recheck(credential: Credential) -> bool:
    """Whether the credential still holds: user active, session alive and not rotated, token not revoked. One query.

    For live connections: authority that was right at connect may be gone since.
    """
    if credential.kind == "token":
        token = ApiToken.objects.select_related("user").filter(pk=credential.token_id).first()
        return token is not None and api_tokens.is_live(token)
    users = get_user_model().objects.filter(pk=credential.user_id, is_active=True)
    store = _store_class()
    if issubclass(store, DatabaseStore):
        rows = store.get_model_class().objects.filter(
            session_key=credential.session_key, expire_date__gt=timezone.now()
        )
        users = users.filter(Exists(rows))
    elif not issubclass(store, CookieStore) and not store().exists(credential.session_key):
        return False
    user = users.first()
    return user is not None and _hash_holds(user, credential.session_hash)


def may_stay(credential: Credential, key: InstanceKey) -> bool:
    """Whether the credential still holds, and its user may still read the instance of this address."""
    return recheck(credential) and is_still_in(credential.user_id, key.instance_id or "", key.owner_id)


def holds_role(credential: Credential, instance: AgentInstance, needs: Role) -> bool:
    """Whether the credential still holds, and its user's role in this instance is still enough."""
    return recheck(credential) and policy.allows(role_in(credential.user_id, instance.pk), needs)


def holding(credentials: Sequence[Credential]) -> set[Credential]:
    """Filter the credentials that still hold, as `recheck` decides. One query for tokens, two for sessions."""
    tokens = [each for each in credentials if each.kind == "token"]
    sessions = [each for each in credentials if each.kind == "session"]
    return {*_tokens_holding(tokens), *_sessions_holding(sessions)}


def _tokens_holding(credentials: Sequence[Credential]) -> list[Credential]:
    if not credentials:
        return []
    rows = ApiToken.objects.select_related("user").filter(pk__in={each.token_id for each in credentials})
    live = {token.pk for token in rows if api_tokens.is_live(token)}
    return [each for each in credentials if each.token_id in live]


def _sessions_holding(credentials: Sequence[Credential]) -> list[Credential]:
    if not credentials:
        return []
    keys = {each.session_key for each in credentials}
    store = _store_class()
    if issubclass(store, DatabaseStore):
        rows = store.get_model_class().objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
        keys = set(rows.values_list("session_key", flat=True))
    elif not issubclass(store, CookieStore):
        keys = {key for key in keys if store().exists(key)}
    users = get_user_model().objects.filter(pk__in={each.user_id for each in credentials}, is_active=True)
    active = {user.pk: user for user in users}
    return [
        each
        for each in credentials
        if each.session_key in keys and each.user_id in active and _hash_holds(active[each.user_id], each.session_hash)
    ]


def bearer(header: str) -> str | None:
    """Secret of an `Authorization: Bearer` header; nothing without one. An empty secret is a wrong one."""
    scheme, _, value = header.partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def token_credential(token: ApiToken) -> Credential:
    """Credential of a live token."""
    return Credential(user_id=token.user_id, kind="token", token_id=token.pk)


def session_credential(session: SessionBase, user: AbstractBaseUser) -> Credential:
    """Credential of an HTTP request that Django's session middleware has authenticated."""
    return Credential(
        user_id=user.pk,
        kind="session",
        session_key=session.session_key or "",
        session_hash=str(session.get(HASH_SESSION_KEY, "")),
    )


def _find(rows: QuerySet[Row], key: str, missing: type[ThinkError]) -> Row:
    # PostgreSQL refuses to look for a NUL; there is nothing of such an id anyway.
    found = None if "\x00" in key else rows.filter(pk=key).first()
    if found is None:
        raise missing
    return found


def _session_credential(session_key: str) -> Credential | None:
    # Django's own `get_user` may rotate the session, which a socket cannot send to the browser; this only reads.
    session = _store_class()(session_key)
    user_id, backend = session.get(SESSION_KEY), session.get(BACKEND_SESSION_KEY)
    if user_id is None or backend not in settings.AUTHENTICATION_BACKENDS:
        return None
    model = get_user_model()
    user = model.objects.filter(pk=model._meta.pk.to_python(user_id), is_active=True).first()
    if user is None or not _hash_holds(user, str(session.get(HASH_SESSION_KEY, ""))):
        return None
    return session_credential(session, user)


def _hash_holds(user: AbstractBaseUser, session_hash: str) -> bool:
    wanted = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(hmac.compare_digest(session_hash.encode(), value.encode()) for value in wanted)


def _store_class() -> type[SessionBase]:
    store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
    return store


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in scope.get("headers", ()):
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        # Several cookie headers are one header; any other that comes twice is ambiguous: the joined value fails.
        found[name] = f"{found[name]}{'; ' if name == 'cookie' else ', '}{value}" if name in found else value
    return found


def _scheme(scope: Scope, headers: Mapping[str, str]) -> str:
    if settings.SECURE_PROXY_SSL_HEADER:
        name, secure_value = settings.SECURE_PROXY_SSL_HEADER
        value = headers.get(name.removeprefix("HTTP_").replace("_", "-").lower())
        if value is not None:
            return "https" if value.split(",", 1)[0].strip() == secure_value else "http"
    return str(scope.get("scheme", "ws"))


def _query_token(scope: Scope) -> str | None:
    query = scope.get("query_string", b"").decode("latin-1")
    values = parse_qs(query, keep_blank_values=True, max_num_fields=100).get("token") if "token=" in query else None
    return values[0] if values else None
