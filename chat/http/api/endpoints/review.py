"""API operations to review what turns changed in files: by file and by hunk, and as a patch."""

import asyncio
from typing import Annotated, Final

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from chat.access.auth import open_instance
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.marks import UndoneMarkOut
from chat.http.api.schemas.review import (
    HunkOut,
    RepositoryDifferenceOut,
    RepositoryOut,
    ReviewedFileOut,
    ReviewIn,
    ReviewOut,
)
from chat.http.api.schemas.workspace import FilePath
from chat.instance.workspaces import repository_of
from chat.instances.rows import key_of
from chat.models import Revert, Role
from chat.runtime.review import Review, ReviewChoice, keep_changes, patch_of, review, undo_changes
from thinkproject.kernel.aio import db
from tools_app.core.files.hunks import Hunk
from tools_app.workspace.repositories import Repository
from tools_app.workspace.reviewing import ReviewedFile

router = Router(tags=["undo"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
ALL_TURNS: Final[list[str]] = []
Few = Annotated[int, Query(ge=1, le=1000)]
Former = Annotated[str, Query(max_length=4096, pattern=r"^[^\x00]*$")]
Turns = Annotated[
    list[str], Query(alias="turn", max_length=50, description="Ids of turns; without any, the whole conversation.")
]


@router.get(
    "/instances/{instance_id}/review", response=ReviewOut, operation_id="get_review", openapi_extra=declares(409)
)
async def review_detail(request: HttpRequest, instance_id: str, turn: Turns = ALL_TURNS, limit: Few = 200) -> object:
    """Files that turns changed, with their hunks, and what of it a person keeps. What was taken back is not listed."""
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.READER)
    return _review(await db(lambda: review(instance, turn, limit=limit)))


@router.post(
    "/instances/{instance_id}/review", response=ReviewOut, operation_id="decide_review", openapi_extra=declares(409)
)
async def review_decide(request: HttpRequest, instance_id: str, data: ReviewIn) -> object:
    """Keep a file or some of its hunks, or have them back as they were. Returns the review of the same turns.

    A file that another hand has changed since, or that is no longer the version that was seen, is a conflict (409,
    `file_conflict`) and stays as it is. What is taken back is an undo, which a redo brings back.
    """
    caller = caller_of(request).user
    instance = await db(open_instance, caller, instance_id, needs=Role.WRITER)
    choice = ReviewChoice(file_id=data.file_id, version=data.version, hunks=data.hunks)
    undone = None
    if data.action == "undo":
        undone = await db(lambda: undo_changes(instance, choice, turn_ids=data.turns, actor_id=caller.pk))
    else:
        await db(lambda: keep_changes(instance, choice, turn_ids=data.turns, is_kept=data.action == "keep"))
    return _review(await db(lambda: review(instance, data.turns, limit=200)), undone)


@router.get(
    "/instances/{instance_id}/patch",
    operation_id="export_patch",
    openapi_extra={
        "responses": {
            200: {"description": "A patch", "content": {"text/x-diff": {}}},
            **declares(409)["responses"],
        }
    },
)
async def patch_export(request: HttpRequest, instance_id: str, turn: Turns = ALL_TURNS) -> HttpResponse:
    """One patch for `git apply` of what turns changed: with new, deleted, renamed and binary files."""
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.READER)
    return _download(await db(patch_of, instance, turn))


@router.get(
    "/instances/{instance_id}/repository",
    response=RepositoryOut,
    operation_id="get_repository",
    openapi_extra=declares(409, 500),
)
async def repository_detail(request: HttpRequest, instance_id: str) -> object:
    """The difference from the last commit, where the workspace is a directory of the server with a repository.

    It comes from git, so work of people and of other programs is in it. For the owner alone.
    """
    found = await _repository(request, instance_id)
    return await asyncio.to_thread(found.state)


@router.get(
    "/instances/{instance_id}/repository/difference",
    response=RepositoryDifferenceOut,
    operation_id="get_repository_difference",
    openapi_extra=declares(404, 409, 500),
)
async def repository_difference(request: HttpRequest, instance_id: str, path: FilePath, was: Former = "") -> object:
    """The difference of one file from the last commit; `was`: its former path, if it was moved. For the owner alone."""
    found = await _repository(request, instance_id)
    return await asyncio.to_thread(found.difference, path, was)


@router.get(
    "/instances/{instance_id}/repository/patch",
    operation_id="export_repository_patch",
    openapi_extra={
        "responses": {
            200: {"description": "A patch", "content": {"text/x-diff": {}}},
            **declares(409, 500)["responses"],
        }
    },
)
async def repository_patch_export(request: HttpRequest, instance_id: str) -> HttpResponse:
    """All that differs from the last commit, as git writes it, for `git apply`. For the owner alone."""
    found = await _repository(request, instance_id)
    return _download(await asyncio.to_thread(found.patch))


async def _repository(request: HttpRequest, instance_id: str) -> Repository:
    instance = await db(open_instance, caller_of(request).user, instance_id, needs=Role.OWNER)
    return await repository_of(await db(key_of, instance), instance.pk)


def _download(patch: bytes) -> HttpResponse:
    response = HttpResponse(patch, content_type="text/x-diff; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="changes.patch"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def _review(found: Review, undone: Revert | None = None) -> ReviewOut:
    files = [_file(each, found.kept) for each in found.files]
    mark = None
    if undone is not None:
        mark = UndoneMarkOut(id=undone.pk, file_count=undone.file_count, includes_messages=False)
    kept_count = sum(each.is_kept for each in files)
    return ReviewOut(files=files, has_more=found.has_more, kept_count=kept_count, undone=mark)


def _file(each: ReviewedFile, kept: frozenset[str]) -> ReviewedFileOut:
    return ReviewedFileOut(
        id=each.id,
        version=each.version,
        path=each.difference.path,
        kind=each.difference.kind,
        standing=each.standing,
        added=each.difference.added,
        removed=each.difference.removed,
        is_cut=each.difference.is_cut,
        is_kept=kept.issuperset(each.marks),
        hunks=[_hunk(hunk, kept) for hunk in each.hunks],
    )


def _hunk(hunk: Hunk, kept: frozenset[str]) -> HunkOut:
    return HunkOut(
        id=hunk.id,
        place=hunk.place,
        lines=[line.removesuffix("\n") for line in hunk.lines],
        ends_open=any(not line.endswith("\n") for line in hunk.lines),
        is_kept=hunk.id in kept,
    )
