"""API operations on session summaries and session diffs."""

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import StringConstraints

from chat.access.auth import open_session
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import Input
from chat.instances.notifications import notify_conversation
from chat.models import AgentInstance, Role
from chat.turns.background.summaries import request_summary, summary_work
from sessions_app.compactions.summaries import find_summary
from sessions_app.compactions.summaries import write_summary as store_own_words
from sessions_app.context.diffs import DocumentDiff, session_diff
from sessions_app.messages.derived import forget_summary

router = Router(tags=["conversations"])


class DocumentDiffOut(Schema):
    """A text that a session has changed: a context block, or the document `key` of one. Units: lines.

    `of`: session or user. `patch`: hunks of a unified diff; `is_cut`: it does not show all, or the texts are too long.
    """

    label: str
    key: str | None
    of: Literal["session", "user"]
    status: Literal["added", "modified", "deleted"]
    additions: int
    deletions: int
    patch: str
    is_cut: bool


class SessionSummaryOut(Schema):
    """The summary of a session, and its changes of memory.

    `text` is empty, and `written_at` null, until one is written; `is_own`: a person wrote it; `is_current`:
    there are no newer messages. `state`: waiting, running or empty; `error`: why the last request failed.
    `documents`: what was changed last first; `has_more_documents`: it changed more than are listed.
    """

    text: str
    model_name: str
    written_at: datetime | None
    leaf_id: str
    is_own: bool
    is_current: bool
    state: Literal["", "waiting", "running"]
    error: str
    additions: int
    deletions: int
    documents: list[DocumentDiffOut]
    has_more_documents: bool


class SummaryIn(Input):
    """Your own words."""

    text: Annotated[str, StringConstraints(max_length=100_000)]  # the service refuses it with a text for people


class SummaryAskedOut(Schema):
    """A summary that is being written. `id`: of its fiber."""

    id: str


@router.get("/sessions/{session_id}/summary", response=SessionSummaryOut, operation_id="get_session_summary")
def summary_detail(request: HttpRequest, session_id: str) -> SessionSummaryOut:
    """The summary for people of a session, and its changes of memory as diffs."""
    open_session(caller_of(request).user, session_id, needs=Role.READER)
    return _encode(session_id)


@router.post(
    "/sessions/{session_id}/summary",
    response={202: SummaryAskedOut},
    operation_id="request_session_summary",
    openapi_extra=declares(409, 429),
)
def summary_request(request: HttpRequest, session_id: str) -> object:
    """Have a model rewrite the summary. Costs one model call."""
    return Status(202, {"id": request_summary(_opened(request, session_id), session_id)})


@router.put("/sessions/{session_id}/summary", response=SessionSummaryOut, operation_id="write_session_summary")
def summary_write(request: HttpRequest, session_id: str, data: SummaryIn) -> SessionSummaryOut:
    """Write the summary yourself. It stays until you delete it or request a new one."""
    instance = _opened(request, session_id)
    store_own_words(session_id, data.text, user_id=caller_of(request).user.pk)
    notify_conversation(instance.owner_id, instance.pk)
    return _encode(session_id)


@router.delete("/sessions/{session_id}/summary", response={204: None}, operation_id="delete_session_summary")
def summary_delete(request: HttpRequest, session_id: str) -> object:
    """Delete it. Nothing else is changed."""
    instance = _opened(request, session_id)
    forget_summary(session_id)
    notify_conversation(instance.owner_id, instance.pk)
    return Status(204, None)


def _opened(request: HttpRequest, session_id: str) -> AgentInstance:
    return open_session(caller_of(request).user, session_id)


def _encode(session_id: str) -> SessionSummaryOut:
    found, diff = find_summary(session_id), session_diff(session_id)
    work = summary_work(session_id, since=found.written_at if found else None)
    return SessionSummaryOut(
        text=found.text if found else "",
        model_name=found.model_name if found else "",
        written_at=found.written_at if found else None,
        leaf_id=found.leaf_id if found else "",
        is_own=bool(found and found.is_own),
        is_current=bool(found and found.is_current),
        state=work.state,
        error=work.error,
        additions=diff.additions,
        deletions=diff.deletions,
        documents=[_document(each) for each in diff.documents],
        has_more_documents=diff.is_cut,
    )


def _document(document: DocumentDiff) -> DocumentDiffOut:
    return DocumentDiffOut(
        label=document.label,
        key=document.key,
        of=document.of,
        status=document.status,
        additions=document.diff.additions,
        deletions=document.diff.deletions,
        patch=document.diff.patch,
        is_cut=document.diff.is_cut,
    )
