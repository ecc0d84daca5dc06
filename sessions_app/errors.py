"""Errors of conversation storage.

ThinkError
└─ SessionError   SessionNotFound · MessageNotFound · MessageInvalid · MessageShared
                  ExportInvalid · CursorInvalid
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


class MessageShared(SessionError, Conflict):
    """A fork shares this message, so it cannot be deleted on its own; delete the fork first."""

    code = "message_shared"


class ExportInvalid(SessionError, Invalid):
    """What should be imported is not an export of a conversation."""

    code = "export_invalid"


class CursorInvalid(SessionError, Invalid):
    """The cursor is not one of ours."""

    code = "cursor_invalid"
