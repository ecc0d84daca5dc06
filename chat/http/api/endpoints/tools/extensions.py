"""API operations on extensions: those of a conversation, and those of all conversations of the caller.

Async, because a source is run to be loaded, and because an agent's class may bring extensions of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, cast

from django.http import HttpRequest
from ninja import Path, Query, Router, Status
from pydantic import StringConstraints

from chat.access.auth import open_instance
from chat.extensions.service import InstanceExtensions
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.extensions import (
    ExtensionCallsOut,
    ExtensionDetailOut,
    ExtensionIn,
    ExtensionOut,
    ExtensionPatch,
    ExtensionsOut,
    ExtensionToolOut,
    ExtensionVersionsOut,
)
from chat.instance.instance import Instance
from chat.instances.notifications import notify_conversation
from chat.instances.rows import key_of
from chat.models import AgentInstance
from thinkproject.kernel.aio import db
from thinkproject.kernel.languages import translate
from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.naming import tool_name
from tools_app.core.extensions.permissions import in_words
from tools_app.core.files.diffs import unified
from tools_app.errors import ExtensionNotFound, FileFailed
from tools_app.extensions import services
from tools_app.extensions.loaded import LEVELS, STATIC, LoadedExtension, distinct, loaded_of, visible
from tools_app.extensions.records import calls_of
from tools_app.extensions.services import Author, Holder
from tools_app.models.extensions import Extension, ExtensionAuthor, ExtensionLevel, ExtensionVersion

router = Router(tags=["extensions"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]+$")]
Limit = Annotated[int, Query(ge=1, le=200)]
_ERRORS = declares(404, 409, 422, 500, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The extensions that an address stands for: of one conversation (`instance`), or of all of a user's."""

    user_id: int
    holder: Holder
    instance: AgentInstance | None = None

    @property
    def extensions(self) -> InstanceExtensions:
        """The extensions of the conversation. Only where there is one."""
        assert self.instance is not None
        return Instance(key_of(self.instance)).extensions

    @property
    def author(self) -> Author:
        """The caller, as an author of versions."""
        return Author(via=ExtensionAuthor.API, user_id=self.user_id)

    async def of_class(self) -> list[LoadedExtension]:
        """The extensions that the agent's class brings."""
        return [] if self.instance is None else await self.extensions.of_class()

    async def load(self, data: ExtensionIn) -> str:
        """Load one; gives its name."""
        if self.instance is not None:
            loaded = await self.extensions.load(
                data.manifest, data.source, via="api", user_id=self.user_id, granted=data.permissions
            )
            return str(loaded["name"])
        made = await services.load_extension(
            self.holder, data.manifest, data.source, author=self.author, granted=data.permissions
        )
        return made.name

    async def rewrite(self, name: str, data: ExtensionPatch) -> None:
        """Write a new version."""
        new: dict[str, Any] = {"source": data.source, "manifest": data.manifest, "expected": data.revision}
        if data.manifest is not None:
            new["granted"] = data.permissions
        if self.instance is not None:
            await self.extensions.update(name, via="api", user_id=self.user_id, **new)
        else:
            await services.update_extension(self.holder, name, author=self.author, **new)

    async def remove(self, name: str) -> bool:
        """Unload one; false where there is none."""
        if self.instance is not None:
            return await self.extensions.unload(name)
        return await db(services.unload_extension, self.holder, name) is not None

    def changed(self) -> None:
        """Tell open pages."""
        if self.instance is not None:
            notify_conversation(self.user_id, self.instance.pk)


@router.get(
    "/instances/{instance_id}/extensions",
    response=ExtensionsOut,
    operation_id="list_extensions",
    openapi_extra=_ERRORS,
)
async def extension_list(request: HttpRequest, instance_id: str) -> object:
    """The extensions of a conversation: of its agent's class, of the site, yours, and its own; disabled ones too."""
    return await _list(await _of_instance(request, instance_id))


@router.post(
    "/instances/{instance_id}/extensions",
    response={201: ExtensionDetailOut},
    operation_id="load_extension",
    openapi_extra=_ERRORS,
)
async def extension_load(request: HttpRequest, instance_id: str, data: ExtensionIn) -> object:
    """Load an extension for a conversation. Its tools are there from the next turn on."""
    return await _load(await _of_instance(request, instance_id), data)


@router.get(
    "/instances/{instance_id}/extensions/{name}",
    response=ExtensionDetailOut,
    operation_id="get_extension",
    openapi_extra=_ERRORS,
)
async def extension_detail(request: HttpRequest, instance_id: str, name: Path[Name]) -> object:
    """One of the conversation's own, with its source."""
    return await _detail(await _of_instance(request, instance_id), name)


@router.patch(
    "/instances/{instance_id}/extensions/{name}",
    response=ExtensionDetailOut,
    operation_id="change_extension",
    openapi_extra=_ERRORS,
)
async def extension_change(request: HttpRequest, instance_id: str, name: Path[Name], data: ExtensionPatch) -> object:
    """Enable or disable it, change what is granted, or write a new version. Counts from its next call on."""
    return await _change(await _of_instance(request, instance_id), name, data)


@router.delete(
    "/instances/{instance_id}/extensions/{name}",
    response={204: None},
    operation_id="unload_extension",
    openapi_extra=_ERRORS,
)
async def extension_unload(request: HttpRequest, instance_id: str, name: Path[Name]) -> object:
    """Unload it, with its versions and context blocks. What it called stays recorded."""
    return await _unload(await _of_instance(request, instance_id), name)


@router.get(
    "/instances/{instance_id}/extensions/{name}/versions",
    response=ExtensionVersionsOut,
    operation_id="list_extension_versions",
    openapi_extra=_ERRORS,
)
async def extension_versions(request: HttpRequest, instance_id: str, name: Path[Name]) -> object:
    """Its versions, newest first, each with what it changed."""
    return await db(_versions, (await _of_instance(request, instance_id)).holder, name)


@router.get(
    "/instances/{instance_id}/extensions/{name}/calls",
    response=ExtensionCallsOut,
    operation_id="list_extension_calls",
    openapi_extra=_ERRORS,
)
async def extension_calls(
    request: HttpRequest, instance_id: str, name: Path[Name], before: int | None = None, limit: Limit = 50
) -> object:
    """Calls of extensions of this name in this conversation, made and refused; also of one that is unloaded now."""
    shelf = await _of_instance(request, instance_id)
    return await db(partial(_calls, name, before, limit, scope=shelf.holder.scope))


@router.get("/extensions", response=ExtensionsOut, operation_id="list_own_extensions", openapi_extra=_ERRORS)
async def own_list(request: HttpRequest) -> object:
    """The extensions of all of your conversations: yours, and those of the site."""
    return await _list(_own(request))


@router.post(
    "/extensions", response={201: ExtensionDetailOut}, operation_id="load_own_extension", openapi_extra=_ERRORS
)
async def own_load(request: HttpRequest, data: ExtensionIn) -> object:
    """Load an extension for all of your conversations."""
    return await _load(_own(request), data)


@router.get("/extensions/{name}", response=ExtensionDetailOut, operation_id="get_own_extension", openapi_extra=_ERRORS)
async def own_detail(request: HttpRequest, name: Path[Name]) -> object:
    """One of yours, with its source."""
    return await _detail(_own(request), name)


@router.patch(
    "/extensions/{name}", response=ExtensionDetailOut, operation_id="change_own_extension", openapi_extra=_ERRORS
)
async def own_change(request: HttpRequest, name: Path[Name], data: ExtensionPatch) -> object:
    """Enable or disable it, change what is granted, or write a new version. Counts from its next call on."""
    return await _change(_own(request), name, data)


@router.delete("/extensions/{name}", response={204: None}, operation_id="unload_own_extension", openapi_extra=_ERRORS)
async def own_unload(request: HttpRequest, name: Path[Name]) -> object:
    """Unload it, with its versions."""
    return await _unload(_own(request), name)


@router.get(
    "/extensions/{name}/versions",
    response=ExtensionVersionsOut,
    operation_id="list_own_extension_versions",
    openapi_extra=_ERRORS,
)
async def own_versions(request: HttpRequest, name: Path[Name]) -> object:
    """Its versions, newest first, each with what it changed."""
    return await db(_versions, _own(request).holder, name)


@router.get(
    "/extensions/{name}/calls",
    response=ExtensionCallsOut,
    operation_id="list_own_extension_calls",
    openapi_extra=_ERRORS,
)
async def own_calls(request: HttpRequest, name: Path[Name], before: int | None = None, limit: Limit = 50) -> object:
    """Calls of extensions of this name in any of your conversations, made and refused."""
    return await db(partial(_calls, name, before, limit, owner_id=_own(request).user_id))


async def _of_instance(request: HttpRequest, instance_id: str) -> Shelf:
    user = caller_of(request).user
    instance: AgentInstance = await db(open_instance, user, instance_id)
    holder = Holder(level=ExtensionLevel.INSTANCE, owner_id=instance.owner_id, scope=instance.pk)
    return Shelf(user_id=user.pk, holder=holder, instance=instance)


def _own(request: HttpRequest) -> Shelf:
    user_id = caller_of(request).user.pk
    return Shelf(user_id=user_id, holder=Holder(level=ExtensionLevel.USER, owner_id=user_id))


async def _list(shelf: Shelf) -> object:
    of_class = await shelf.of_class()
    rows = await db(lambda: list(visible(shelf.user_id, shelf.holder.scope)))
    rows = sorted(rows, key=lambda row: LEVELS.index(ExtensionLevel(row.level)))
    found = [(loaded_of(row), row) for row in rows]
    active = [each for each, row in found if row.enabled and not vars(row)["is_banned"]]
    first = {id(each) for each in distinct([*of_class, *active])}
    items = [_encode(each, None, runs=True, can_change=False) for each in of_class]
    items += [
        _encode(each, row, runs=id(each) in first, can_change=row.level == shelf.holder.level) for each, row in found
    ]
    return {"items": items}


async def _load(shelf: Shelf, data: ExtensionIn) -> object:
    name = await shelf.load(data)
    return Status(201, await _detail(shelf, name))


async def _detail(shelf: Shelf, name: str) -> dict[str, object]:
    row = await db(services.find, shelf.holder, name)
    version = await db(services.current_version, row)
    loaded = loaded_of(row)
    runs = row.enabled and not vars(row)["is_banned"]
    shown = _encode(loaded, row, runs=runs, can_change=True)
    return {**shown, "manifest": row.manifest, "source": version.source}


async def _change(shelf: Shelf, name: str, data: ExtensionPatch) -> object:
    expected = data.revision  # of the first change; those after it follow on that one
    if data.source is not None or data.manifest is not None:
        await shelf.rewrite(name, data)
        expected = None
    if data.permissions is not None and data.manifest is None:
        await db(partial(services.grant, shelf.holder, name, data.permissions, expected=expected))
        expected = None
    if data.enabled is not None:
        await db(partial(services.set_enabled, shelf.holder, name, data.enabled, expected=expected))
    await db(shelf.changed)
    return await _detail(shelf, name)


async def _unload(shelf: Shelf, name: str) -> object:
    if not await shelf.remove(name):
        raise ExtensionNotFound(Phrase("There is no extension {name!r} here.", name=name))
    return Status(204, None)


def _versions(holder: Holder, name: str) -> object:
    found = services.versions_of(services.find(holder, name))
    diffs = [_diff(newer, older) for newer, older in pairwise([*found, None])]
    return {"items": [_version(each, diff) for each, diff in zip(found, diffs, strict=True)]}


def _diff(newer: ExtensionVersion | None, older: ExtensionVersion | None) -> str:
    if newer is None or older is None:
        return ""
    try:
        return unified(f"{older.source}\n", f"{newer.source}\n", f"version {older.number}", f"version {newer.number}")
    except FileFailed as error:
        return error.message


def _version(row: ExtensionVersion, diff: str) -> dict[str, object]:
    return {
        "number": row.number,
        "version": row.manifest["version"],
        "sha256": row.sha256,
        "via": row.via,
        "author": None if row.author is None else row.author.get_username(),
        "created_at": row.created_at,
        "requested": row.manifest["permissions"],
        "diff": diff,
    }


def _calls(name: str, before: int | None, limit: int, *, scope: str = "", owner_id: int | None = None) -> object:
    rows = calls_of(name=name, scope=scope, owner_id=owner_id)
    found = list((rows if before is None else rows.filter(pk__lt=before))[: limit + 1])
    shown: Sequence[Any] = found[:limit]
    items = [
        {
            "id": row.pk,
            "during": row.during,
            "method": row.method,
            "about": row.subject,
            "is_refused": row.is_refused,
            "error": row.error,
            "turn_id": row.turn_id,
            "call_id": row.call_id,
            "created_at": row.created_at,
        }
        for row in shown
    ]
    return {"items": items, "next_before": shown[-1].pk if len(found) > limit else None}


def _encode(extension: LoadedExtension, row: Extension | None, *, runs: bool, can_change: bool) -> dict[str, object]:
    manifest = extension.manifest
    shown = ExtensionOut(
        name=extension.name,
        version=manifest.version,
        description=manifest.description,
        scope=cast("Any", STATIC if row is None else row.level),
        enabled=row is None or row.enabled,
        is_banned=row is not None and bool(vars(row)["is_banned"]),
        runs=runs,
        can_change=can_change,
        prefix=extension.prefix,
        number=0 if row is None else row.number,
        revision="" if row is None else row.revision,
        tools=[
            ExtensionToolOut(name=tool_name(extension.prefix, each.name), description=each.description)
            for each in extension.surface.tools
        ],
        hooks=list(extension.surface.hooks),
        context_labels=list(manifest.blocks),
        requested=manifest.permissions.to_json(),
        granted=extension.granted.to_json(),
        words=[translate(each) for each in in_words(extension.granted, manifest)],
        sha256=extension.sha256,
        updated_at=None if row is None else row.updated_at,
    )
    return shown.dict()
