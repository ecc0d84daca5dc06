"""Extensions of one conversation as its turn finds them, and what is asked about one of them at each call."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.manifest import Manifest, Permissions, parse_manifest, parse_permissions
from tools_app.core.extensions.naming import tool_name
from tools_app.core.extensions.surface import Surface, stored_surface
from tools_app.errors import ExtensionUnloaded
from tools_app.models.extensions import BannedSource, Extension, ExtensionLevel, ExtensionVersion

STATIC: Final = "static"
"""The level of extensions that an agent's class brings."""

LEVELS: Final = (ExtensionLevel.SITE, ExtensionLevel.USER, ExtensionLevel.INSTANCE)
"""Levels in the order in which their extensions load, after those of the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedExtension:
    """An extension that a turn has. `pk`: of its row; none for one of the agent's class, which brings its `source`."""

    pk: int | None
    level: str
    name: str
    manifest: Manifest
    granted: Permissions
    surface: Surface
    sha256: str
    source: str = ""

    @property
    def prefix(self) -> str:
        """The prefix of its tools and blocks."""
        return self.manifest.prefix

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of its tools for models."""
        return tuple(tool_name(self.prefix, each.name) for each in self.surface.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionStanding:
    """The stored state of an extension at this moment. `granted` is what counts, whatever the turn has begun with."""

    manifest: Manifest
    granted: Permissions
    source: str = ""


def loaded_of(row: Extension) -> LoadedExtension:
    """The extension of a row."""
    return LoadedExtension(
        pk=row.pk,
        level=row.level,
        name=row.name,
        manifest=parse_manifest(row.manifest),
        granted=parse_permissions(row.granted),
        surface=stored_surface(row.surface),
        sha256=row.sha256,
    )


def visible(owner_id: int | None, scope: str) -> QuerySet[Extension]:
    """Rows that a conversation sees: its own, its owner's, the site's; also those that are disabled."""
    found = Q(level=ExtensionLevel.SITE)
    if scope:
        found |= Q(level=ExtensionLevel.INSTANCE, scope=scope)
    if owner_id is not None:
        found |= Q(level=ExtensionLevel.USER, owner_id=owner_id)
    return with_ban(Extension.objects.filter(found)).order_by("pk")


def with_ban(rows: QuerySet[Extension]) -> QuerySet[Extension]:
    """Annotate whether the source is disabled everywhere (`is_banned`)."""
    return rows.annotate(is_banned=Exists(BannedSource.objects.filter(sha256=OuterRef("sha256"))))


def load_stored(owner_id: int | None, scope: str) -> list[LoadedExtension]:
    """The extensions that run in a conversation, in the order in which they load. One query."""
    rows = [row for row in visible(owner_id, scope).filter(enabled=True) if not vars(row)["is_banned"]]
    return [loaded_of(row) for level in LEVELS for row in rows if row.level == level]


def distinct(extensions: list[LoadedExtension]) -> tuple[LoadedExtension, ...]:
    """Each prefix once: what loaded first stays."""
    found: dict[str, LoadedExtension] = {}
    for each in extensions:
        found.setdefault(each.prefix, each)
    return tuple(found.values())


def standing_of(extension: LoadedExtension, *, with_source: bool = False) -> ExtensionStanding:
    """Read the state of an extension now. One query. Errors: `ExtensionUnloaded`."""
    if extension.pk is None:
        if BannedSource.objects.filter(sha256=extension.sha256).exists():
            raise _gone(extension, is_disabled=True)
        return ExtensionStanding(manifest=extension.manifest, granted=extension.granted, source=extension.source)
    rows = with_ban(Extension.objects.filter(pk=extension.pk))
    if with_source:
        versions = ExtensionVersion.objects.filter(extension_id=OuterRef("pk"), number=OuterRef("number"))
        rows = rows.annotate(source=versions.values("source")[:1])
    row = rows.first()
    if row is None:
        raise _gone(extension, is_disabled=False)
    if not row.enabled or vars(row)["is_banned"]:
        raise _gone(extension, is_disabled=True)
    return ExtensionStanding(
        manifest=parse_manifest(row.manifest),
        granted=parse_permissions(row.granted),
        source=vars(row).get("source") or "",
    )


def banned(sha256s: list[str]) -> set[str]:
    """Find the sources among these that are disabled everywhere. No query for none."""
    return set(BannedSource.objects.filter(sha256__in=sha256s).values_list("sha256", flat=True)) if sha256s else set()


def _gone(extension: LoadedExtension, *, is_disabled: bool) -> ExtensionUnloaded:
    if is_disabled:
        return ExtensionUnloaded(Phrase("The extension {name!r} has been disabled.", name=extension.name))
    return ExtensionUnloaded(Phrase("The extension {name!r} has been unloaded.", name=extension.name))
