"""Data derived from messages and deleted with them: compactions and session summaries."""

from django.db.models import Q

from sessions_app.models import Compaction, ContextChange, SessionSummary


def forget_compactions(session_id: str) -> None:
    """Delete all compactions of a session, their changes and those of messages: what they describe is deleted.

    Call it inside the write that deletes the messages, and inside `erasing()`.
    """
    Compaction.objects.filter(session_id=session_id).delete()
    of_messages = Q(subject__startswith=compaction_subject("")) | Q(subject__startswith=message_subject(""))
    ContextChange.objects.filter(of_messages, session_id=session_id).delete()


def forget_summary(session_id: str, *, keeps_own: bool = False) -> None:
    """Delete the summary of a session; with `keeps_own` not the words of a person."""
    rows = SessionSummary.objects.filter(pk=session_id)
    (rows.exclude(model_name="") if keeps_own else rows).delete()


def compaction_subject(compaction_id: str) -> str:
    """A compaction's subject in the history of context; with an empty id the common prefix."""
    return f"compaction:{compaction_id}"


def message_subject(message_id: str) -> str:
    """A message's subject in the history of context; with an empty id the common prefix."""
    return f"message:{message_id}"
