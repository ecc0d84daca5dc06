"""API operations on the feedback that the caller gives on answers."""

from django.http import HttpRequest
from ninja import Router, Status

from chat.access.auth import open_instance
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.prompts import FeedbackIn, FeedbackOut
from chat.models import MessageFeedback, Role
from chat.people.feedback import feedback_in, give_feedback, take_feedback_back

router = Router(tags=["conversations"])
_ANSWER = "/instances/{instance_id}/messages/{message_id}/feedback"


@router.get("/instances/{instance_id}/feedback", response=list[FeedbackOut], operation_id="list_feedback")
def feedback_list(request: HttpRequest, instance_id: str) -> list[FeedbackOut]:
    """Your feedback on the answers of the current history; others do not see it here."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id, needs=Role.READER)
    return [_feedback(row) for row in feedback_in(instance, user.pk)]


@router.put(_ANSWER, response=FeedbackOut, operation_id="give_feedback")
def feedback_give(request: HttpRequest, instance_id: str, message_id: str, data: FeedbackIn) -> FeedbackOut:
    """Give your word about an answer, in the place of an earlier one. It goes with the answer."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id, needs=Role.READER)
    return _feedback(give_feedback(instance, message_id, user.pk, is_good=data.is_good, reason=data.reason))


@router.delete(_ANSWER, response={204: None}, operation_id="take_feedback_back")
def feedback_take_back(request: HttpRequest, instance_id: str, message_id: str) -> object:
    """Take your word back. Twice is once."""
    user = caller_of(request).user
    take_feedback_back(open_instance(user, instance_id, needs=Role.READER), message_id, user.pk)
    return Status(204, None)


def _feedback(row: MessageFeedback) -> FeedbackOut:
    return FeedbackOut(message_id=row.message_id, is_good=row.is_good, reason=row.reason)
