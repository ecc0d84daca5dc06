"""API operations on up to 100 conversations at once: put away, move, delete, restore."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from chat.conversations import bulk
from chat.conversations.bulk import MAX_IDS, BulkOutcome, BulkResult
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import Id, Input

router = Router(tags=["conversations"])


class ManyIn(Input):
    """Conversations, by their ids."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_IDS)]


class ArchiveManyIn(ManyIn):
    """Conversations to put away, or to restore from there."""

    archived: bool = True


class MoveManyIn(ManyIn):
    """Conversations, and the project that they go into; null for none."""

    project_id: Id | None


class BulkResultOut(Schema):
    """The outcome for one conversation; `denied`: it is shared with you, and not yours."""

    id: str
    outcome: BulkOutcome


@router.post("/bulk/archive", response=list[BulkResultOut], operation_id="archive_instances")
def many_archive(request: HttpRequest, data: ArchiveManyIn) -> object:
    """Put up to 100 conversations away, or restore them: all in one transaction, with an outcome for each."""
    return _out(bulk.archive_all(caller_of(request).user.pk, data.ids, is_archived=data.archived))


@router.post("/bulk/move", response=list[BulkResultOut], operation_id="move_instances", openapi_extra=declares(404))
def many_move(request: HttpRequest, data: MoveManyIn) -> object:
    """Put up to 100 conversations into a project, or into none. Sub-agents are `missing` here."""
    return _out(bulk.move_all(caller_of(request).user.pk, data.ids, data.project_id))


@router.post("/bulk/delete", response=list[BulkResultOut], operation_id="delete_instances", openapi_extra=declares(409))
def many_delete(request: HttpRequest, data: ManyIn) -> object:
    """Put up to 100 conversations into *Deleted*, as `delete_instance` does. Sub-agents are `missing` here."""
    return _out(bulk.delete_all(caller_of(request).user.pk, data.ids))


@router.post("/bulk/restore", response=list[BulkResultOut], operation_id="restore_instances")
def many_restore(request: HttpRequest, data: ManyIn) -> object:
    """Bring up to 100 deleted conversations back, as `restore_instance` does."""
    return _out(bulk.restore_all(caller_of(request).user.pk, data.ids))


def _out(results: list[BulkResult]) -> list[BulkResultOut]:
    return [BulkResultOut(id=each.id, outcome=each.outcome) for each in results]
