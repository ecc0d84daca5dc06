"""The rows of MCP servers: added, changed, removed. What became of connections to them: `health.py`.

All functions are sync and run on the database bridge. Who may do what was decided before; only what is always forbidden
is refused here. Functions in `listeners` are called after the commit of each change.
"""

import hashlib
import re
import secrets as random_secrets
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.secrets import decrypt, encrypt
from tools_app.core.mcp.catalogue import tool_prints
from tools_app.core.mcp.servers import McpScope, McpServerSpec, McpState, McpTransport, check_spec
from tools_app.errors import McpServerInvalid, McpServerNotFound, McpServersFull, McpSignInFailed
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.urls import checked_url
from tools_app.mcp.conf import mcp_settings
from tools_app.models.mcp import McpServer

_ALPHABET: Final = string.ascii_lowercase + string.digits

listeners: list[Callable[[McpServer], None]] = []
"""Called after the commit of each change of a server that people can see, its removal included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The holder of a server: a conversation, a user, or the site with neither."""

    owner_id: Any = None
    instance_id: str = ""
    is_site: bool = False

    @property
    def scope(self) -> McpScope:
        """The scope of a server here."""
        if self.is_site:
            return McpScope.SITE
        return McpScope.INSTANCE if self.instance_id else McpScope.USER


def add_server(spec: McpServerSpec, place: Place, *, allows_programs: bool = False) -> tuple[McpServer, bool]:
    """Add a server, and say whether it is new. One that is there already, of this name with this URL, is given instead.

    `allows_programs`: whether a command may be given; only administrators and code of the site decide about those.
    Durability: committed when the surrounding transaction is. Errors: `McpServerInvalid`, `McpServersFull`.
    """
    check_place(spec, allows_programs=allows_programs)
    with transaction.atomic():
        if place.owner_id is not None:
            lock_owner(place.owner_id)
        same = servers_in(place).filter(name=spec.name).first()
        if same is not None:
            if is_of(same, spec) and not same.is_declared:
                return same, False
            raise McpServerInvalid(name_taken(spec.name))
        _check_room(place)
        server = _new_row(new_server_id(spec.name), spec, place)
        server.save(force_insert=True)
        changed(server)
    return server, True


def name_taken(name: str) -> Phrase:
    """The reason why a second server of a name cannot be added."""
    return Phrase("There is an MCP server of the name {name!r} already.", name=name)


def check_place(spec: McpServerSpec, *, allows_programs: bool) -> None:
    """Refuse what cannot be a server. Errors: `McpServerInvalid`."""
    check_spec(spec)
    if spec.transport is McpTransport.STDIO:
        if not allows_programs:
            raise McpServerInvalid("Only administrators may add servers that are programs.")
        return
    try:
        url = checked_url(spec.url)
    except FetchFailed as error:
        raise McpServerInvalid(error.phrase) from error
    if url.scheme != "https" and not mcp_settings.private:
        raise McpServerInvalid("The URL of a server begins with https.")


def declare_servers(specs: Sequence[McpServerSpec], place: Place) -> list[McpServer]:
    """Bring the rows of servers that code declares in step with the declarations; one query where nothing changed.

    A declaration that changed loses what was known of the server. Errors: `McpServerInvalid`.
    """
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise McpServerInvalid("Two declared MCP servers have the same name.")
    rows = {row.name: row for row in servers_in(place).filter(is_declared=True)}
    found = []
    for spec in specs:
        row = rows.pop(spec.name, None)
        if row is None or not is_of(row, spec) or row.is_trusted != spec.is_trusted:
            check_place(spec, allows_programs=True)
            row = _declare(spec, place, row)
        found.append(row)
    for row in rows.values():
        remove_server(row)
    return found


def _declare(spec: McpServerSpec, place: Place, row: McpServer | None) -> McpServer:
    if row is None:
        mark = hashlib.sha256(f"{place.instance_id} {spec.name}".encode()).hexdigest()[:8]
        server = _new_row(f"{slug(spec.name)}_{mark}", spec, place)
    else:  # people may have disabled it: that stays
        server = row
        apply_spec(server, spec)
    server.is_declared = True
    # Of another conversation of this owner: the same server with the same secrets.
    twin = McpServer.objects.filter(config_hash=spec.config_hash, state=McpState.READY, owner_id=place.owner_id).first()
    if server.catalogue is None and twin is not None and not twin.needs_sign_in:
        server.catalogue, server.fingerprint, server.accepted = twin.catalogue, twin.fingerprint, twin.accepted
        server.is_reviewed = twin.is_reviewed
        server.state, server.listed_at = McpState.READY, twin.listed_at
    with transaction.atomic():
        server.save()
        changed(server)
    return server


def _new_row(server_id: str, spec: McpServerSpec, place: Place) -> McpServer:
    server = McpServer(id=server_id, scope=place.scope, owner_id=place.owner_id, instance_id=place.instance_id)
    apply_spec(server, spec)
    return server


def apply_spec(server: McpServer, spec: McpServerSpec) -> None:
    """Write a declaration into a row that is not saved, and forget what was known of a server that it replaces."""
    if server.url != spec.url or not _has_client_of(server, spec):
        server.client_issuer = ""
    server.name, server.transport, server.url = spec.name, spec.transport, spec.url
    server.command, server.is_trusted = list(spec.command), spec.is_trusted
    server.client_id, server.allowed_issuer = spec.client_id, spec.allowed_issuer
    held = {"headers": dict(spec.headers), "env": dict(spec.env), "client_secret": spec.client_secret}
    server.secrets = encrypt(dump(held)) if spec.headers or spec.env or spec.client_secret else ""
    if server.config_hash != spec.config_hash:
        server.config_hash = spec.config_hash
        server.catalogue, server.accepted, server.fingerprint, server.is_reviewed = None, None, "", False
        server.needs_sign_in, server.listed_at = False, None
        _start_over(server)


def spec_of(server: McpServer) -> McpServerSpec:
    """The declaration of a row, its secrets decrypted. Errors: `SecretUnreadable`."""
    held: JSONObject = load(decrypt(server.secrets)) if server.secrets else {}
    return McpServerSpec(
        name=server.name,
        url=server.url,
        command=tuple(server.command),
        headers=held.get("headers", {}),
        env=held.get("env", {}),
        is_trusted=server.is_trusted,
        client_id=server.client_id,
        client_secret=held.get("client_secret", ""),
        allowed_issuer=server.allowed_issuer,
    )


def is_of(server: McpServer, spec: McpServerSpec) -> bool:
    """Whether a row is of this declaration, but for trust."""
    is_same = (server.config_hash, server.allowed_issuer) == (spec.config_hash, spec.allowed_issuer)
    return is_same and _has_client_of(server, spec)


def _has_client_of(server: McpServer, spec: McpServerSpec) -> bool:
    """Whether a row has the declaration's client. The secret is only read where there may be one."""
    if server.client_id != spec.client_id:
        return False
    return not spec.client_id or spec_of(server).client_secret == spec.client_secret


def set_client(server: McpServer, client_id: str, client_secret: str) -> McpServer:
    """Give a server the client that was registered by hand, or none. Errors: `McpServerInvalid`."""
    spec = replace(spec_of(server), client_id=client_id, client_secret=client_secret)
    check_spec(spec)
    apply_spec(server, spec)
    return _update(server, {"secrets": server.secrets, "client_id": client_id, "client_issuer": ""})


def allow_issuer(server: McpServer, issuer: str) -> McpServer:
    """Accept an issuer for this server, or none. Administrators decide. Errors: `McpServerInvalid`."""
    check_issuer(server, issuer)
    return _update(server, {"allowed_issuer": issuer})


def check_issuer(server: McpServer, issuer: str) -> None:
    """Refuse what cannot be an issuer of this server. Errors: `McpServerInvalid`."""
    check_spec(
        McpServerSpec(name=server.name, url=server.url, command=tuple(server.command), allowed_issuer=issuer),
    )


def bind_secret(server_id: str, issuer: str) -> None:
    """Keep the secret of a client that was registered by hand for the authorization server where it is used first.

    Otherwise a server that names another one later would have it sent there. Errors: `McpSignInFailed`.
    """
    mine = McpServer.objects.filter(pk=server_id)
    mine.filter(client_issuer="").update(client_issuer=issuer)
    former = mine.values_list("client_issuer", flat=True).first()
    if former != issuer:
        raise McpSignInFailed(
            Phrase(
                "The client secret of this MCP server is one for {former!r}, and the server names {issuer!r} now."
                " Where that is right, enter the client ID and its secret again.",
                former=str(former),
                issuer=issuer,
            )
        )


def remove_server(server: McpServer) -> None:
    """Remove a server with everybody's sign-ins at it."""
    with transaction.atomic():
        kept_id = server.pk
        server.delete()
        server.pk = kept_id  # for who is notified
        changed(server)


def set_server(server: McpServer, *, is_enabled: bool | None = None, is_trusted: bool | None = None) -> McpServer:
    """Enable or disable a server, and say whether it is trusted. Trust accepts its tools as they are."""
    fields: dict[str, Any] = {}
    if is_enabled is not None:
        fields["is_enabled"] = is_enabled
    if is_trusted is not None:
        fields["is_trusted"] = is_trusted
        if is_trusted and server.catalogue is not None:
            fields["accepted"] = tool_prints(server.catalogue)
    return _update(server, fields)


def accept_tools(server: McpServer, seen: str) -> McpServer:
    """Accept the server's tools as they are. `seen`: the fingerprint of the catalogue that the person was shown.

    Errors: `McpServerInvalid` where it has changed since.
    """
    if server.fingerprint != seen:
        raise McpServerInvalid("The tools of this server have changed since. Look at them again.")
    return _update(server, {"accepted": tool_prints(server.catalogue or {}), "is_reviewed": True})


def begin_again(server: McpServer) -> McpServer:
    """Have the next attempt connect at once, whatever failed before."""
    _start_over(server)
    sign_in = server.needs_sign_in
    return _update(
        server,
        {"state": server.state, "error": "", "failures": 0, "retry_at": None, "needs_sign_in": sign_in},
    )


def forget_servers(instance_ids: Collection[str]) -> None:
    """Remove the servers of conversations that are deleted."""
    McpServer.objects.filter(instance_id__in=[each for each in instance_ids if each]).delete()


def new_server_id(name: str) -> str:
    """An id that models read as part of the names of tools: words of the name and five random characters."""
    return f"{slug(name)}_{''.join(random_secrets.choice(_ALPHABET) for _ in range(5))}"


def slug(name: str) -> str:
    """The beginning of a name as part of an id."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:12].strip("_") or "server"


def find_server(server_id: str) -> McpServer:
    """Read a row. Errors: `McpServerNotFound`."""
    server = McpServer.objects.filter(pk=server_id).first()
    if server is None:
        raise McpServerNotFound
    return server


def changed(server: McpServer) -> None:
    """Call the listeners after the commit."""
    for listener in listeners:
        transaction.on_commit(partial(listener, server), robust=True)


def servers_in(place: Place) -> QuerySet[McpServer]:
    """The servers of a place, declared ones too."""
    return McpServer.objects.filter(scope=place.scope, owner_id=place.owner_id, instance_id=place.instance_id)


def _check_room(place: Place) -> None:
    limit = mcp_settings.servers_per_user
    if not limit or place.is_site or place.owner_id is None:
        return
    if McpServer.objects.filter(owner_id=place.owner_id, is_declared=False)[limit - 1 : limit].exists():
        raise McpServersFull(Phrase("You can have {limit} MCP servers. Remove one first.", limit=limit))


def _start_over(server: McpServer) -> None:
    server.state = McpState.NOT_CONNECTED if server.catalogue is None else McpState.READY
    server.error, server.failures, server.retry_at = "", 0, None


def _update(server: McpServer, fields: Mapping[str, Any]) -> McpServer:
    if not fields:
        return server
    for name, value in fields.items():
        setattr(server, name, value)
    with transaction.atomic():
        server.save(update_fields=list(fields))
        changed(server)
    return server
