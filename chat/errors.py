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


class AgentNotFound(ChatError, NotFound):
    """There is no agent of this name."""


class AgentUnavailable(ChatError, Unavailable):
    """The agent cannot be reached right now. Try again in a moment."""

    http_status = 503
    retryable = True


class InstanceNotFound(ChatError, NotFound):
    """There is no such conversation."""


class RoleNeeded(ChatError, Denied):
    """Your role in this conversation does not let you do this. Data: `needs`, the role that does."""


class AnswerDenied(ChatError, Denied):
    """Another person has to answer this question."""


class MemberNotFound(ChatError, NotFound):
    """There is no such member of this conversation."""


class InvitationNotFound(ChatError, NotFound):
    """This invitation is not valid: it was used, taken back or has expired. Ask for another one."""


class SharedNotFound(ChatError, NotFound):
    """This link does not work: it is wrong, has expired, or was taken back."""


class TurnNotFound(ChatError, NotFound):
    """There is no such turn."""


class FiberInvalid(ChatError, Invalid):
    """This background work cannot be started."""


class FiberMethodMissing(FiberInvalid):
    """The agent has no such method."""


class FiberConflict(ChatError, Conflict):
    """The background work is not in a state for this."""


class RunNotFound(ChatError, NotFound):
    """There is no such run of an agent."""


class AgentCallRefused(ChatError, Conflict):
    """This agent cannot be asked here: it waits for the answer itself."""


class AgentCallFailed(ChatError):
    """The agent that was asked gave no answer."""


class GrantNotFound(ChatError, NotFound):
    """There is no such grant, or it has ended."""


class Unauthenticated(ChatError):
    """You are not signed in."""

    http_status = 401


class OriginDenied(ChatError, Denied):
    """Pages of this origin may not use your sign-in here."""


class SignInDenied(ChatError, Denied):
    """This sign-in link is no longer valid."""


class LinkUnknown(SignInDenied):
    """This sign-in link is no longer valid."""


class AttachmentNotFound(ChatError, NotFound):
    """There is no such file."""


class ArchiveNotFound(ChatError, NotFound):
    """There is no such import."""


class AttachmentInvalid(ChatError, Invalid):
    """This file cannot be attached."""


class RangeNotSatisfiable(ChatError, Invalid):
    """The range lies beyond the end of the file."""

    http_status = 416


class FrameInvalid(ChatError, Invalid):
    """The frame does not follow the protocol. Data: `request_id`, if the frame had one."""

    @property
    def request_id(self) -> str | None:
        """Id of the request that must now end with an error frame, or `None`."""
        return self.data.get("request_id")


class CallRefused(ChatError, Invalid):
    """A call of a client cannot be carried out: no such method, wrong arguments, or a result that JSON cannot carry."""


class StateRefused(ChatError, Invalid):
    """The state may not be set to this. The agent's reason stays on the server."""


class StateOutdated(ChatError, Conflict):
    """The state was changed in the meantime. Load it again."""


class ChunkInvalid(ChatError, Invalid):
    """The chunk is not one of the UI message stream."""


class InputInvalid(ChatError, Invalid):
    """The message is invalid."""


class StreamTaken(ChatError, Conflict):
    """Another writer has written to this stream of chunks."""


class TurnConflict(ChatError, Conflict):
    """The conversation's present state does not allow this turn."""


class UndoBusy(ChatError, Conflict):
    """The agent is at work here. Stop it, or wait until it is done; then this can be undone."""


class UndoImpossible(ChatError, Conflict):
    """There is nothing to undo or redo here any more."""


class TurnDropped(TurnConflict):
    """The assistant is still answering. Your message was not stored; send it again after the answer."""


class CallChanged(ChatError, Conflict):
    """The call that was answered is no longer the pending one."""


class AnswersIncomplete(ChatError, Conflict):
    """All open questions of a conversation are decided at once, each exactly once; these are others. `open`: theirs."""


class CallDecided(ChatError, Conflict):
    """The call has been decided already, or its time is over. The changed arguments were not taken."""


class DecisionLinkInvalid(ChatError, NotFound):
    """This link decides nothing: it has expired, is another person's, or what it was about is gone."""


class CallNotFound(ChatError, NotFound):
    """There is no such call in this conversation."""


class TurnFailed(ChatError):
    """The turn failed, and the caller passed no `on_error`."""

    code = "turn_failed"
    http_status = 502


class TurnWaits(ChatError, Conflict):
    """The turn waits for an answer, and goes on by itself when there is one.

    Data: `request_id`, `turn_id`, `waits`: each with `kind`, `label`, `callId` and `since`.
    """


class NestedTurn(ChatError, Conflict):
    """A blocking turn cannot be called from inside an active turn of the same conversation."""


class TurnConfigInvalid(ChatError, Invalid):
    """The agent is set up wrongly. The server's log says how.

    That is all that clients read. `reason`, also the text of the exception, is the sentence for its developer, and goes
    to the log: it names the method, what came and what is wanted.
    """

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
        self.is_logged = False

    def __str__(self) -> str:
        return self.reason


class TurnTimeout(ChatError, Unavailable):
    """The turn took longer than it may."""


class OutputInvalid(ChatError, Invalid):
    """The model's answer does not have the form that was asked for."""


class QuotaExceeded(ChatError, Conflict):
    """You have reached a limit. Data: `retry_after_seconds`, and whether it `passes` by itself.

    A limit of pace, or of what is at work at a time, is raised with `retry_after_seconds`. One of room is raised
    without: it ends when its person makes some, and the time is only when asking again is no nuisance.
    """

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


class ConfigInvalid(ChatError, Invalid):
    """The configuration is invalid for this agent. Data: `problems`, each with its place and the expected value."""


class ConfigChanged(ChatError, Conflict):
    """The configuration was changed in the meantime. Load it again."""


class ConfigPrivate(ChatError, Denied):
    """The configuration of this agent is not for clients."""


class ModelChoiceInvalid(ChatError, Invalid):
    """This choice of a model is not possible here. Data: `field`, and `allowed` where there is a list or a range."""


class WorkspaceMissing(ChatError, NotFound):
    """This agent has no files."""


class ModelError(ChatError):
    """The model could not answer."""

    http_status = 502
    words: str = ""  # the provider's own, of an error in a stream: for its adapter alone, never shown

    @property
    def may_go_on(self) -> bool:
        """Whether the same model may be asked to go on with the answer that this ended."""
        return self.retryable and self.data.get("should_retry") is not False


class ModelNotConfigured(ModelError, Invalid):
    """No model is configured."""

    http_status = 422


class ModelRejected(ModelError):
    """The model's provider rejected the request."""


class SchemaRefused(ModelRejected):
    """The model's provider does not take a schema for the answer."""


class ModelAuth(ModelError):
    """The model's provider refused the credentials."""


class ContextOverflow(ModelError):
    """The conversation is longer than the model's context window."""


class RateLimited(ModelError, Unavailable):
    """The model's provider limits the rate of requests. Data: `retry_after_seconds` or nothing."""

    http_status = 503
    retryable = True


class Overloaded(ModelError, Unavailable):
    """The model's provider is overloaded or failing."""

    http_status = 503
    retryable = True


class NetworkLost(ModelError, Unavailable):
    """The connection to the model was lost."""

    http_status = 503
    retryable = True


class StreamStalled(ModelError, Unavailable):
    """The model fell silent in the middle of its answer."""

    http_status = 503
    retryable = True


class AnswerFailed(ModelError):
    """The model ended its answer, and it is none. `finish`: how it ended, with what it cost."""

    finish: object = None


class AnswerEmpty(AnswerFailed, Unavailable):
    """The model ended its answer without a word. Send the message again, or choose another model."""

    http_status = 502
    retryable = True


class ContentFiltered(AnswerFailed):
    """The provider's content filter stopped the answer. Put the question in other words."""


class ModelsExhausted(ModelError, Unavailable):
    """None of the models could answer. Data: `failed`, the error codes by the models' names."""

    http_status = 503
    retryable = True
