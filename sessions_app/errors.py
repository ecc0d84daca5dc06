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


class SessionNotFound(SessionError, NotFound):
    """There is no such session."""


class MessageNotFound(SessionError, NotFound):
    """There is no such message in this session."""


class MessageInvalid(SessionError, Invalid):
    """The message is invalid."""


class BudgetInvalid(SessionError, Invalid):
    """The budget is not an amount."""


class MessageShared(SessionError, Conflict):
    """A fork shares this message. Delete the fork first."""


class TokenCounterUnknown(SessionError, Invalid):
    """The token counter is unknown, or its package is not installed."""


class CompactionNotFound(SessionError, NotFound):
    """There is no such compaction in this session."""


class CompactionInvalid(SessionError, Invalid):
    """The compaction is invalid: its ends are not on one path, or its summary is empty."""


class SummaryInvalid(SessionError, Invalid):
    """A session summary is invalid."""


class BlockNotFound(SessionError, NotFound):
    """There is no such context block."""


class BlockExists(SessionError, Conflict):
    """There is a context block of this label already."""


class BlockNotWritable(SessionError, Conflict):
    """This context block cannot be written in this way."""


class BlockTooLarge(SessionError, Invalid):
    """The text does not fit into its context block."""


class EntryNotFound(SessionError, NotFound):
    """There is no such entry in this context block."""


class ContextInvalid(SessionError, Invalid):
    """A context block, a key or a text is invalid."""


class CursorInvalid(SessionError, Invalid):
    """This cursor is not valid."""


class CompactionFailed(SessionError):
    """The conversation could not be compacted. Nothing of it was changed."""

    http_status = 502


class ExportInvalid(SessionError, Invalid):
    """The imported file is not an export of a conversation."""
