"""Errors of conversation storage.

ThinkError
└─ SessionError   SessionNotFound · MessageNotFound · MessageInvalid · MessageShared · TokenCounterUnknown
                  CompactionNotFound · CompactionInvalid · CompactionFailed · BudgetInvalid · CursorInvalid
                  BlockNotFound · BlockExists · BlockNotWritable · BlockTooLarge · EntryNotFound · ContextInvalid
                  ExportInvalid
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
    """The message is invalid."""

    code = "message_invalid"


class BudgetInvalid(SessionError, Invalid):
    """The budget is not an amount."""

    code = "budget_invalid"


class MessageShared(SessionError, Conflict):
    """A fork shares this message. Delete the fork first."""

    code = "message_shared"


class TokenCounterUnknown(SessionError, Invalid):
    """The token counter is unknown, or its package is not installed."""

    code = "token_counter_unknown"


class CompactionNotFound(SessionError, NotFound):
    """There is no such compaction in this session."""

    code = "compaction_not_found"


class CompactionInvalid(SessionError, Invalid):
    """The compaction is invalid: its ends are not on one path, or its summary is empty."""

    code = "compaction_invalid"


class SummaryInvalid(SessionError, Invalid):
    """A session summary is invalid."""

    code = "summary_invalid"


class BlockNotFound(SessionError, NotFound):
    """There is no such context block."""

    code = "block_not_found"


class BlockExists(SessionError, Conflict):
    """There is a context block of this label already."""

    code = "block_exists"


class BlockNotWritable(SessionError, Conflict):
    """This context block cannot be written in this way."""

    code = "block_not_writable"


class BlockTooLarge(SessionError, Invalid):
    """The text does not fit into its context block."""

    code = "block_too_large"


class EntryNotFound(SessionError, NotFound):
    """There is no such entry in this context block."""

    code = "entry_not_found"


class ContextInvalid(SessionError, Invalid):
    """A context block, a key or a text is invalid."""

    code = "context_invalid"


class CursorInvalid(SessionError, Invalid):
    """This cursor is not valid."""

    code = "cursor_invalid"


class CompactionFailed(SessionError):
    """The conversation could not be compacted. Nothing of it was changed."""

    code = "compaction_failed"
    http_status = 502


class ExportInvalid(SessionError, Invalid):
    """The imported file is not an export of a conversation."""

    code = "export_invalid"
