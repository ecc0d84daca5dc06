"""Errors of conversation storage.

ThinkError
└─ SessionError   SessionNotFound · MessageNotFound · MessageInvalid · MessageShared · TokenCounterUnknown
                  CompactionNotFound · CompactionInvalid · CompactionFailed · BudgetInvalid · CursorInvalid
"""

from thinkproject.kernel.errors import Conflict, Invalid, NotFound, ThinkError


class SessionError(ThinkError):
    """Something in a stored conversation went wrong."""

    code = "session_error"


class SessionNotFound(SessionError, NotFound):
    """There is no such session."""

    code = "session_not_found"


class MessageNotFound(SessionError, NotFound):
    """There is no such message in this session."""

    code = "message_not_found"


class MessageInvalid(SessionError, Invalid):
    """The message is not what was expected."""

    code = "message_invalid"


class BudgetInvalid(SessionError, Invalid):
    """The budget is not an amount."""

    code = "budget_invalid"


class MessageShared(SessionError, Conflict):
    """A fork shares this message, so it cannot be deleted on its own; delete the fork first."""

    code = "message_shared"


class TokenCounterUnknown(SessionError, Invalid):
    """There is no token counter of this name, or what it needs is not installed."""

    code = "token_counter_unknown"


class CompactionNotFound(SessionError, NotFound):
    """There is no such compaction in this session."""

    code = "compaction_not_found"


class CompactionInvalid(SessionError, Invalid):
    """The compaction is not what was expected: its ends lie on no path, or its summary is empty."""

    code = "compaction_invalid"


class CompactionFailed(SessionError):
    """The conversation could not be compacted. Nothing of it was changed."""

    code = "compaction_failed"
    http_status = 502


class CursorInvalid(SessionError, Invalid):
    """The cursor is not one of ours."""

    code = "cursor_invalid"
