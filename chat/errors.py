"""Errors of chats.

ThinkError
└─ ChatError      AgentNotFound · AgentUnavailable · InstanceNotFound · TurnNotFound · RunNotFound · AttachmentNotFound
                  │  AttachmentInvalid · RangeNotSatisfiable · Unauthenticated · OriginDenied · SignInDenied
                  │  LinkUnknown · GrantNotFound · FrameInvalid · ChunkInvalid · TurnConflict · TurnDropped
                  │  RoleNeeded · AnswerDenied · MemberNotFound · InvitationNotFound · UndoBusy · UndoImpossible
                  │  AnswersIncomplete · StreamTaken · SharedNotFound
                  │  CallChanged · CallDecided · CallNotFound · TurnFailed · NestedTurn
                  │  TurnConfigInvalid · TurnTimeout · OutputInvalid · BudgetReached · ConfigInvalid
                  │  FiberInvalid · FiberMethodMissing · FiberConflict
                  │  AgentCallRefused · AgentCallFailed
                  │  ConfigChanged · ConfigPrivate · ModelChoiceInvalid · WorkspaceMissing
                  └─ ModelError   ModelNotConfigured · ModelRejected · SchemaRefused · ModelAuth · RateLimited
                                  · Overloaded · ContextOverflow · NetworkLost · StreamStalled
                                  · ModelsExhausted
"""

import math
from typing import Final

from thinkproject.kernel.errors import Conflict, Denied, Invalid, NotFound, ThinkError, Unavailable
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase

BUSY: Final = Phrase("The server is very busy. Try again in a moment.")
"""The answer of every door to more than the server can take."""
LIMIT_SECONDS: Final = 60
"""When to ask again at a limit whose end is not known."""


class ChatError(ThinkError):
    """Something in a chat went wrong."""

    code = "chat_error"


class AgentNotFound(ChatError, NotFound):
    """There is no agent of this name."""

    code = "agent_not_found"


class AgentUnavailable(ChatError, Unavailable):
    """The agent cannot be reached right now. Try again in a moment."""

    code = "agent_unavailable"
    http_status = 503
    retryable = True


class InstanceNotFound(ChatError, NotFound):
    """There is no such conversation."""

    code = "instance_not_found"


class RoleNeeded(ChatError, Denied):
    """Your role in this conversation does not let you do this. Data: `needs`, the role that does."""

    code = "role_needed"


class AnswerDenied(ChatError, Denied):
    """Another person has to answer this question."""

    code = "answer_denied"


class MemberNotFound(ChatError, NotFound):
    """There is no such member of this conversation."""

    code = "member_not_found"


class InvitationNotFound(ChatError, NotFound):
    """This invitation is not valid: it was used, taken back or has expired. Ask for another one."""

    code = "invitation_not_found"


class SharedNotFound(ChatError, NotFound):
    """This link does not work: it is wrong, has expired, or was taken back."""

    code = "shared_not_found"


class TurnNotFound(ChatError, NotFound):
    """There is no such turn."""

    code = "turn_not_found"


class FiberInvalid(ChatError, Invalid):
    """This background work cannot be started."""

    code = "fiber_invalid"


class FiberMethodMissing(FiberInvalid):
    """The agent has no such method."""

    code = "fiber_method_missing"


class FiberConflict(ChatError, Conflict):
    """The background work is not in a state for this."""

    code = "fiber_conflict"


class RunNotFound(ChatError, NotFound):
    """There is no such run of an agent."""

    code = "run_not_found"


class AgentCallRefused(ChatError, Conflict):
    """This agent cannot be asked here: it waits for the answer itself."""

    code = "agent_call_refused"


class AgentCallFailed(ChatError):
    """The agent that was asked gave no answer."""

    code = "agent_call_failed"


class GrantNotFound(ChatError, NotFound):
    """There is no such grant, or it has ended."""

    code = "grant_not_found"


class Unauthenticated(ChatError):
    """You are not signed in."""

    code = "unauthenticated"
    http_status = 401


class OriginDenied(ChatError, Denied):
    """Pages of this origin may not use your sign-in here."""

    code = "origin_denied"


class SignInDenied(ChatError, Denied):
    """This sign-in link is no longer valid."""

    code = "sign_in_denied"


class LinkUnknown(SignInDenied):
    """This sign-in link is no longer valid."""

    code = "link_unknown"


class AttachmentNotFound(ChatError, NotFound):
    """There is no such file."""

    code = "attachment_not_found"


class ArchiveNotFound(ChatError, NotFound):
    """There is no such import."""

    code = "archive_not_found"


class AttachmentInvalid(ChatError, Invalid):
    """This file cannot be attached."""

    code = "attachment_invalid"


class RangeNotSatisfiable(ChatError, Invalid):
    """The range lies beyond the end of the file."""

    code = "range_not_satisfiable"
    http_status = 416


class FrameInvalid(ChatError, Invalid):
    """The frame does not follow the protocol. Data: `request_id`, if the frame had one."""

    code = "frame_invalid"

    @property
    def request_id(self) -> str | None:
        """Id of the request that must now end with an error frame, or `None`."""
        return self.data.get("request_id")


class CallRefused(ChatError, Invalid):
    """A call of a client cannot be carried out: no such method, wrong arguments, or a result that JSON cannot carry."""

    code = "call_refused"


class StateRefused(ChatError, Invalid):
    """The state may not be set to this. The agent's reason stays on the server."""

    code = "state_refused"


class StateOutdated(ChatError, Conflict):
    """The state was changed in the meantime. Load it again."""

    code = "state_outdated"


class ChunkInvalid(ChatError, Invalid):
    """The chunk is not one of the UI message stream."""

    code = "chunk_invalid"


class InputInvalid(ChatError, Invalid):
    """The message is invalid."""

    code = "input_invalid"


class StreamTaken(ChatError, Conflict):
    """Another writer has written to this stream of chunks."""

    code = "stream_taken"


class TurnConflict(ChatError, Conflict):
    """The conversation's present state does not allow this turn."""

    code = "turn_conflict"


class UndoBusy(ChatError, Conflict):
    """The agent is at work here. Stop it, or wait until it is done; then this can be undone."""

    code = "undo_busy"


class UndoImpossible(ChatError, Conflict):
    """There is nothing to undo or redo here any more."""

    code = "undo_impossible"


class TurnDropped(TurnConflict):
    """The assistant is still answering. Your message was not stored; send it again after the answer."""

    code = "turn_dropped"


class CallChanged(ChatError, Conflict):
    """The call that was answered is no longer the pending one."""

    code = "call_changed"


class AnswersIncomplete(ChatError, Conflict):
    """All open questions of a conversation are decided at once, each exactly once; these are others. `open`: theirs."""

    code = "answers_incomplete"


class CallDecided(ChatError, Conflict):
    """The call has been decided already, or its time is over. The changed arguments were not taken."""

    code = "call_decided"


class DecisionLinkInvalid(ChatError, NotFound):
    """This link decides nothing: it has expired, is another person's, or what it was about is gone."""

    code = "decision_link_invalid"


class CallNotFound(ChatError, NotFound):
    """There is no such call in this conversation."""

    code = "call_not_found"


class TurnFailed(ChatError):
    """The turn failed, and the caller passed no `on_error`."""

    code = "turn_failed"
    http_status = 502


class TurnWaits(ChatError, Conflict):
    """The turn waits for an answer, and goes on by itself when there is one.

    Data: `request_id`, `turn_id`, `waits`: each with `kind`, `label`, `callId` and `since`.
    """

    code = "turn_waits"


class NestedTurn(ChatError, Conflict):
    """A blocking turn cannot be called from inside an active turn of the same conversation."""

    code = "nested_turn"


class TurnConfigInvalid(ChatError, Invalid):
    """The agent is set up wrongly. The server's log says how.

    That is all that clients read. `reason`, also the text of the exception, is the sentence for its developer, and goes
    to the log: it names the method, what came and what is wanted.
    """

    code = "turn_config_invalid"

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
        self.is_logged = False

    def __str__(self) -> str:
        return self.reason


class TurnTimeout(ChatError, Unavailable):
    """The turn took longer than it may."""

    code = "turn_timeout"


class OutputInvalid(ChatError, Invalid):
    """The model's answer does not have the form that was asked for."""

    code = "output_invalid"


class QuotaExceeded(ChatError, Conflict):
    """You have reached a limit. Data: `retry_after_seconds`, and whether it `passes` by itself.

    A limit of pace, or of what is at work at a time, is raised with `retry_after_seconds`. One of room is raised
    without: it ends when its person makes some, and the time is only when asking again is no nuisance.
    """

    code = "quota_exceeded"
    http_status = 429

    def __init__(
        self, message: str | Phrase = "", *, retry_after_seconds: float | None = None, **data: JSONValue
    ) -> None:
        passes = retry_after_seconds is not None
        wait = LIMIT_SECONDS if retry_after_seconds is None else max(1, math.ceil(retry_after_seconds))
        super().__init__(message, retry_after_seconds=wait, passes=passes, **data)


def limit_wait(error: ThinkError) -> float | None:
    """When to ask again, in seconds, where the error is a limit. For frames of sockets, which have no headers."""
    return error.data["retry_after_seconds"] if isinstance(error, QuotaExceeded) else None


class BudgetReached(ChatError, Conflict):
    """The conversation has reached its budget."""

    code = "budget_reached"


class ConfigInvalid(ChatError, Invalid):
    """The configuration is invalid for this agent. Data: `problems`, each with its place and the expected value."""

    code = "config_invalid"


class ConfigChanged(ChatError, Conflict):
    """The configuration was changed in the meantime. Load it again."""

    code = "config_changed"


class ConfigPrivate(ChatError, Denied):
    """The configuration of this agent is not for clients."""

    code = "config_private"


class ModelChoiceInvalid(ChatError, Invalid):
    """This choice of a model is not possible here. Data: `field`, and `allowed` where there is a list or a range."""

    code = "model_choice_invalid"


class WorkspaceMissing(ChatError, NotFound):
    """This agent has no files."""

    code = "workspace_missing"


class ModelError(ChatError):
    """The model could not answer."""

    code = "model_error"
    http_status = 502
    words: str = ""  # the provider's own, of an error in a stream: for its adapter alone, never shown

    @property
    def may_go_on(self) -> bool:
        """Whether the same model may be asked to go on with the answer that this ended."""
        return self.retryable and self.data.get("should_retry") is not False


class ModelNotConfigured(ModelError, Invalid):
    """No model is configured."""

    code = "model_not_configured"
    http_status = 422


class ModelRejected(ModelError):
    """The model's provider rejected the request."""

    code = "model_rejected"


class SchemaRefused(ModelRejected):
    """The model's provider does not take a schema for the answer."""

    code = "schema_refused"


class ModelAuth(ModelError):
    """The model's provider refused the credentials."""

    code = "model_auth"


class ContextOverflow(ModelError):
    """The conversation is longer than the model's context window."""

    code = "context_overflow"


class RateLimited(ModelError, Unavailable):
    """The model's provider limits the rate of requests. Data: `retry_after_seconds` or nothing."""

    code = "rate_limited"
    http_status = 503
    retryable = True


class Overloaded(ModelError, Unavailable):
    """The model's provider is overloaded or failing."""

    code = "overloaded"
    http_status = 503
    retryable = True


class NetworkLost(ModelError, Unavailable):
    """The connection to the model was lost."""

    code = "network_lost"
    http_status = 503
    retryable = True


class StreamStalled(ModelError, Unavailable):
    """The model fell silent in the middle of its answer."""

    code = "stream_stalled"
    http_status = 503
    retryable = True


class AnswerFailed(ModelError):
    """The model ended its answer, and it is none. `finish`: how it ended, with what it cost."""

    code = "answer_failed"
    finish: object = None


class AnswerEmpty(AnswerFailed, Unavailable):
    """The model ended its answer without a word. Send the message again, or choose another model."""

    code = "answer_empty"
    http_status = 502
    retryable = True


class ContentFiltered(AnswerFailed):
    """The provider's content filter stopped the answer. Put the question in other words."""

    code = "content_filtered"


class ModelsExhausted(ModelError, Unavailable):
    """None of the models could answer. Data: `failed`, the error codes by the models' names."""

    code = "models_exhausted"
    http_status = 503
    retryable = True
