"""API operations on submissions: messages that are handed in and answered in their turn."""

from typing import Annotated, cast

from django.http import HttpRequest
from ninja import Header, Query, Router, Status
from pydantic import StringConstraints

from chat.access.auth import open_instance, open_turn
from chat.errors import TurnNotFound
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import CancelOut, SubmissionIn, SubmissionOut
from chat.instances.rows import key_of
from chat.models import Turn
from chat.runtime import submissions
from chat.turns.admission.stop import cancel_turn
from sessions_app.core.messages.shapes import NewMessage

router = Router(tags=["submissions"])
Limit = Annotated[int, Query(ge=1, le=200)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128)]


@router.post(
    "/instances/{instance_id}/submissions",
    response={202: SubmissionOut},
    operation_id="submit_messages",
    openapi_extra=declares(409, 429),
)
def submission_create(
    request: HttpRequest,
    instance_id: str,
    data: SubmissionIn,
    idempotency_key: Annotated[Key | None, Header(alias="Idempotency-Key")] = None,
) -> object:
    """Hand messages in for one answer. Accepted means stored; they enter the conversation when their turn starts.

    The same `Idempotency-Key` again gives the same submission.
    """
    instance = open_instance(caller_of(request).user, instance_id)
    messages = [cast("NewMessage", message.dict(exclude_none=True)) for message in data.messages]
    made = submissions.submit(key_of(instance), messages, idempotency_key=idempotency_key, metadata=data.metadata)
    return Status(202, made)


@router.get("/instances/{instance_id}/submissions", response=list[SubmissionOut], operation_id="list_submissions")
def submission_list(request: HttpRequest, instance_id: str, limit: Limit = 50) -> object:
    """The newest submissions of a conversation, newest first."""
    instance = open_instance(caller_of(request).user, instance_id)
    rows = submissions.submissions_of(instance.pk).order_by("-position")[:limit]
    return [submissions.to_submission(turn) for turn in rows]


@router.get("/submissions/{submission_id}", response=SubmissionOut, operation_id="get_submission")
def submission_detail(request: HttpRequest, submission_id: str) -> object:
    """One submission: status, error and the caller's metadata."""
    return submissions.to_submission(_opened(request, submission_id))


@router.post("/submissions/{submission_id}/cancel", response=CancelOut, operation_id="cancel_submission")
def submission_cancel(request: HttpRequest, submission_id: str) -> CancelOut:
    """Stop a submission. If it has not started, its messages are dropped. Idempotent."""
    return CancelOut(cancelled=cancel_turn(_opened(request, submission_id).pk))


def _opened(request: HttpRequest, submission_id: str) -> Turn:
    turn = open_turn(caller_of(request).user, submission_id)
    if not submissions.is_submission(turn):
        raise TurnNotFound("There is no such submission.")
    return turn
