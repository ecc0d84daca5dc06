"""Loading, changing and unloading extensions: the only writers of their rows.

Who may do it is decided by the callers. Everything is checked before it is stored, the source by running it once.
"""

import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from thinkproject.kernel.aio import db
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.manifest import ALL, Manifest, Permissions, parse_manifest, parse_permissions
from tools_app.core.extensions.naming import tool_name
from tools_app.core.extensions.permissions import is_within
from tools_app.core.extensions.surface import Surface, stored_surface
from tools_app.errors import (
    ExtensionConflict,
    ExtensionExists,
    ExtensionInvalid,
    ExtensionLimit,
    ExtensionNotFound,
    ToolDeclarationInvalid,
)
from tools_app.extensions.conf import extension_settings
from tools_app.extensions.guest import clean_source
from tools_app.extensions.loaded import LoadedExtension, loaded_of, visible, with_ban
from tools_app.extensions.runs import describe
from tools_app.fetching.urls import parse_rules
from tools_app.models.extensions import (
    BannedSource,
    Extension,
    ExtensionAuthor,
    ExtensionCall,
    ExtensionLevel,
    ExtensionVersion,
)

HOUR: Final = timedelta(hours=1)
MAX_TOOLS_TOGETHER: Final = 96
SOURCE_BYTES: Final = 200_000
VERSIONS_KEPT: Final = 20
"""Tools of all extensions of a conversation: providers accept a limited number for a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The holder of extensions: one conversation (`scope`, with its owner), a user, or the site."""

    level: ExtensionLevel
    owner_id: int | None = None
    scope: str = ""

    def rows(self) -> QuerySet[Extension]:
        """Its extensions, each with `is_banned`."""
        return with_ban(Extension.objects.filter(**self._columns())).order_by("pk")

    def make(self) -> Extension:
        """A row of its, not saved yet."""
        return Extension(level=self.level, scope=self.scope, owner_id=self.owner_id)

    def _columns(self) -> dict[str, object]:
        match self.level:
            case ExtensionLevel.INSTANCE:
                return {"level": self.level, "scope": self.scope}
            case ExtensionLevel.USER:
                return {"level": self.level, "owner_id": self.owner_id}
        return {"level": self.level}


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The author of a version, and the way it came. `user_id`: the person, or the one whom a model works for."""

    via: ExtensionAuthor
    user_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A manifest and a source that fit each other."""

    manifest: Manifest
    source: str
    surface: Surface

    @property
    def sha256(self) -> str:
        """The hash of the source."""
        return hash_of(self.source)


def hash_of(source: str) -> str:
    """The hash by which a source is known, in hex."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


async def checked(manifest: object, source: str, *, share: str = "") -> Checked:
    """Read a manifest and run a source once. Errors: `ExtensionInvalid`, `SandboxUnavailable`."""
    parsed = parse_manifest(manifest)
    check_network(parsed.permissions)
    text = clean_source(source)
    if not text or "\x00" in text or len(text.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
        raise ExtensionInvalid(
            Phrase("The source of an extension is a text of at most {limit} bytes.", limit=SOURCE_BYTES)
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExtensionInvalid("The source has a character that is none.") from error
    if await db(BannedSource.objects.filter(sha256=hash_of(text)).exists):
        raise ExtensionInvalid("This source has been disabled by an administrator.")
    return Checked(manifest=parsed, source=text, surface=await describe(text, parsed, share=share))


def check_network(permissions: Permissions) -> None:
    """Errors: `ExtensionInvalid` for a host that is no rule, and for the whole network where the site forbids it."""
    if permissions.network == ALL:
        if not extension_settings.any_host:
            raise ExtensionInvalid("This site lets extensions reach named hosts only: list them in `network`.")
        return
    try:
        rules = parse_rules(permissions.network) if permissions.network else ()
    except ToolDeclarationInvalid as error:
        raise ExtensionInvalid(error.phrase) from error
    if not extension_settings.any_host and any(rule.with_subdomains and not rule.host for rule in rules):
        raise ExtensionInvalid("This site lets extensions reach named hosts only: list them in `network`.")


async def load_extension(  # noqa: PLR0913 - callers name each
    holder: Holder,
    manifest: object,
    source: str,
    *,
    author: Author,
    others: tuple[LoadedExtension, ...] = (),
    replaces: bool = False,
    granted: object = None,
) -> LoadedExtension:
    """Load an extension. Durable when it returns; running turns do not have it, the next one does.

    `granted`: the permissions that it is given, within those of its manifest; without it all of these.

    `others`: what the conversation has besides, of the agent's class. `replaces`: it may have been loaded by the same
    call before, which a crash cut; then nothing is loaded again. Errors: `ExtensionExists`, `ExtensionInvalid`,
    `ExtensionLimit`, `SandboxUnavailable`.
    """
    parsed = parse_manifest(manifest)
    given = _given(parsed, granted)
    if replaces:
        there = await db(_same, holder, parsed, hash_of(clean_source(source)))
        if there is not None:
            return there
    await db(_check_room, holder, parsed, author, others)
    made = await checked(parsed, source, share=str(author.user_id or ""))
    return await db(partial(_store, holder, made, author, others, given=given))


def _given(manifest: Manifest, granted: object) -> Permissions:
    """The permissions of a manifest that are granted. Errors: `ExtensionInvalid` for more than it asks for."""
    if granted is None:
        return manifest.permissions
    given = parse_permissions(granted)
    if not is_within(given, manifest.permissions):
        raise ExtensionInvalid("Permissions can be given up to those that the manifest asks for.")
    return given


def _same(holder: Holder, manifest: Manifest, sha256: str) -> LoadedExtension | None:
    row = holder.rows().filter(prefix=manifest.prefix, sha256=sha256).first()
    return None if row is None or parse_manifest(row.manifest) != manifest else loaded_of(row)


def _check_room(
    holder: Holder, manifest: Manifest, author: Author, others: tuple[LoadedExtension, ...]
) -> list[LoadedExtension]:
    """The extensions beside a new one. Errors: `ExtensionExists`, `ExtensionLimit`."""
    beside = [*others, *(loaded_of(row) for row in _beside(holder))]
    if any(each.prefix == manifest.prefix for each in beside):
        raise _exists(manifest.name)
    check_pace(author)
    rows = Extension.objects.filter(level=ExtensionLevel.INSTANCE, scope=holder.scope)
    most = extension_settings.per_instance
    if holder.level == ExtensionLevel.INSTANCE and most and rows.count() >= most:
        raise ExtensionLimit(Phrase("A conversation can have {limit} extensions. Unload one first.", limit=most))
    most = extension_settings.per_user
    if holder.owner_id is not None and most and Extension.objects.filter(owner_id=holder.owner_id).count() >= most:
        raise ExtensionLimit(Phrase("You can have {limit} extensions. Unload one first.", limit=most))
    return beside


def check_pace(author: Author) -> None:
    """Errors: `ExtensionLimit` beyond `THINK_EXTENSION_CHANGES_PER_HOUR`."""
    most = extension_settings.changes_per_hour
    if not most or author.user_id is None or author.via == ExtensionAuthor.ADMIN:
        return
    rows = ExtensionVersion.objects.filter(author_id=author.user_id, created_at__gt=timezone.now() - HOUR)
    if rows[most - 1 : most].exists():
        raise ExtensionLimit(Phrase("Extensions can be written {limit} times an hour. Try again later.", limit=most))


def _beside(holder: Holder) -> QuerySet[Extension]:
    if holder.level == ExtensionLevel.INSTANCE:
        return visible(holder.owner_id, holder.scope)
    if holder.level == ExtensionLevel.USER:
        return visible(holder.owner_id, "")
    return holder.rows()


@transaction.atomic
def _store(
    holder: Holder, made: Checked, author: Author, others: tuple[LoadedExtension, ...], *, given: Permissions
) -> LoadedExtension:
    if holder.owner_id is not None:
        lock_owner(holder.owner_id)
    _check_names(made, _check_room(holder, made.manifest, author, others))
    row = holder.make()
    _fill(row, made)
    row.name, row.prefix, row.number = made.manifest.name, made.manifest.prefix, 1
    row.granted = given.to_json()
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise _exists(made.manifest.name) from error
    _add_version(row, made, author)
    return loaded_of(row)


async def update_extension(  # noqa: PLR0913 - callers name each
    holder: Holder,
    name: str,
    *,
    author: Author,
    source: str | None = None,
    manifest: object = None,
    expected: str | None = None,
    granted: object = None,
) -> LoadedExtension:
    """Write a new version. A new manifest has its permissions granted, or those of them that `granted` names.

    A new source alone keeps those there are.

    `expected`: the revision that the change was made from; `None` accepts any. Errors: `ExtensionNotFound`,
    `ExtensionInvalid`, also for another name; `ExtensionConflict`, `ExtensionLimit`, `SandboxUnavailable`.
    """
    row = await db(find, holder, name)
    check_revision(row, expected)
    known = await db(current_version, row)
    parsed = parse_manifest(row.manifest if manifest is None else manifest)
    if parsed.prefix != row.prefix:
        raise ExtensionInvalid("The name of an extension stays: unload it and load another.")
    await db(check_pace, author)
    text = known.source if source is None else source
    given = None if manifest is None else _given(parsed, granted)
    made = await checked(parsed, text, share=str(author.user_id or ""))
    return await db(partial(_replace, row.pk, made, author, given=given, expected=expected))


@transaction.atomic
def _replace(
    pk: int, made: Checked, author: Author, *, given: Permissions | None, expected: str | None
) -> LoadedExtension:
    row = _locked(pk, expected)
    beside = [loaded_of(each) for each in _beside(holder_of(row)) if each.pk != pk]
    _check_names(made, beside)
    _fill(row, made)
    row.name = made.manifest.name
    row.number += 1
    if given is not None:
        row.granted = given.to_json()
    row.save()
    _add_version(row, made, author)
    ExtensionVersion.objects.filter(extension_id=pk, number__lte=row.number - VERSIONS_KEPT).delete()
    return loaded_of(row)


def check_revision(row: Extension, expected: str | None) -> None:
    """Errors: `ExtensionConflict` where the row is not as it was read. `None` accepts any."""
    if expected is not None and expected != row.revision:
        raise ExtensionConflict(
            Phrase("The extension {name!r} has changed since it was read.", name=row.name),
            revision=row.revision,
            number=row.number,
        )


def _locked(pk: int, expected: str | None) -> Extension:
    """The row, held until the transaction ends. Errors: `ExtensionNotFound`, `ExtensionConflict`."""
    row = Extension.objects.select_for_update().filter(pk=pk).first()
    if row is None:
        raise ExtensionNotFound
    check_revision(row, expected)
    return row


def _fill(row: Extension, made: Checked) -> None:
    row.manifest, row.surface, row.sha256 = made.manifest.to_json(), made.surface.to_json(), made.sha256


def _add_version(row: Extension, made: Checked, author: Author) -> None:
    ExtensionVersion.objects.create(
        extension=row,
        number=row.number,
        manifest=made.manifest.to_json(),
        source=made.source,
        sha256=made.sha256,
        via=author.via,
        author_id=author.user_id,
    )


def _check_names(made: Checked, beside: list[LoadedExtension]) -> None:
    """Errors: `ExtensionExists` where a tool or a block would have the name of another's; `ExtensionLimit`."""
    taken = {name: each.name for each in beside for name in each.tool_names}
    if len(taken) + len(made.surface.tools) > MAX_TOOLS_TOGETHER:
        raise ExtensionLimit(
            Phrase("The extensions of a conversation can have {limit} tools together.", limit=MAX_TOOLS_TOGETHER)
        )
    blocks = {label: each.name for each in beside for label in each.manifest.blocks}
    for label in made.manifest.blocks:
        if label in blocks:
            raise ExtensionExists(
                Phrase(
                    "The context block {label!r} is one of the extension {other!r} already.",
                    label=label,
                    other=blocks[label],
                )
            )
    for each in made.surface.tools:
        name = tool_name(made.manifest.prefix, each.name)
        if name in taken:
            raise ExtensionExists(
                Phrase("The tool {tool!r} is one of the extension {other!r} already.", tool=name, other=taken[name])
            )


def holder_of(row: Extension) -> Holder:
    """The holder of a row."""
    return Holder(level=ExtensionLevel(row.level), owner_id=row.owner_id, scope=row.scope)


def find(holder: Holder, name: str) -> Extension:
    """The row of an extension by its name, with `is_banned`. Errors: `ExtensionNotFound`."""
    row = holder.rows().filter(name=name).first()
    if row is None:
        raise ExtensionNotFound(Phrase("There is no extension {name!r} here.", name=name))
    return row


def current_version(row: Extension) -> ExtensionVersion:
    """The version that runs. Errors: `ExtensionNotFound` when it has just been unloaded."""
    version = ExtensionVersion.objects.filter(extension_id=row.pk, number=row.number).first()
    if version is None:
        raise ExtensionNotFound
    return version


def versions_of(row: Extension) -> list[ExtensionVersion]:
    """The versions that are kept, newest first."""
    return list(ExtensionVersion.objects.filter(extension_id=row.pk).select_related("author").order_by("-number"))


def unload_extension(holder: Holder, name: str) -> Extension | None:
    """Remove an extension with its versions; gives the row that was there. What it called stays recorded."""
    row = holder.rows().filter(name=name).first()
    if row is None:
        return None
    row_as_it_was = Extension.objects.filter(pk=row.pk)
    row_as_it_was.delete()
    return row


def make_site_wide(row: Extension, *, by: int | None) -> LoadedExtension:
    """Load a copy of an extension for everybody, with what is granted to it. Errors: as `load_extension`."""
    manifest = parse_manifest(row.manifest).model_copy(update={"permissions": parse_permissions(row.granted)})
    made = Checked(manifest=manifest, source=current_version(row).source, surface=stored_surface(row.surface))
    author = Author(via=ExtensionAuthor.ADMIN, user_id=by)
    return _store(Holder(level=ExtensionLevel.SITE), made, author, (), given=manifest.permissions)


@transaction.atomic
def set_enabled(holder: Holder, name: str, is_enabled: bool, *, expected: str | None = None) -> Extension:
    """Let an extension run, or not: from its next call on. Errors: `ExtensionNotFound`, `ExtensionConflict`."""
    row = _locked(find(holder, name).pk, expected)
    if row.enabled != is_enabled:
        row.enabled = is_enabled
        row.save(update_fields=["enabled", "updated_at"])
    return row


@transaction.atomic
def grant(holder: Holder, name: str, permissions: object, *, expected: str | None = None) -> Extension:
    """Change what is granted, within what the manifest asks for; counts from the next call on.

    `expected`: as for `update_extension`. Without it, what another person has withdrawn meanwhile may be granted again.
    Errors: `ExtensionNotFound`, `ExtensionConflict`, `ExtensionInvalid` for more than the manifest asks for.
    """
    row = _locked(find(holder, name).pk, expected)
    row.granted = _given(parse_manifest(row.manifest), permissions).to_json()
    row.save(update_fields=["granted", "updated_at"])
    return row


def ban_source(sha256: str, *, reason: str = "", by: int | None = None) -> bool:
    """Disable a source everywhere, at once and for later. False when it was already."""
    return BannedSource.objects.get_or_create(sha256=sha256, defaults={"reason": reason[:300], "banned_by_id": by})[1]


def allow_source(sha256: str) -> bool:
    """Take a ban back. False where there was none."""
    return BannedSource.objects.filter(sha256=sha256).delete()[0] > 0


def forget_extensions_of(scopes: list[str]) -> None:
    """Remove all of these conversations' extensions and records, in the transaction that deletes these."""
    Extension.objects.filter(level=ExtensionLevel.INSTANCE, scope__in=scopes).delete()
    ExtensionCall.objects.filter(scope__in=scopes).delete()


def check_networks() -> list[str]:
    """Entries of `THINK_EXTENSIONS_PRIVATE_NETWORKS` that are none."""
    found = []
    for each in extension_settings.private_networks:
        try:
            ipaddress.ip_network(each)
        except (ValueError, TypeError):
            found.append(str(each))
    return found


def _exists(name: str) -> ExtensionExists:
    return ExtensionExists(Phrase("The extension {name!r} is already loaded. Unload it first.", name=name))
