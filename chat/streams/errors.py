"""Errors of the log.

ThinkError
└─ ChatError      Fenced (a LeaseLost) · LogUnavailable
"""

from chat.errors import ChatError
from fibers.errors import LeaseLost
from thinkproject.kernel.errors import Unavailable


class Fenced(ChatError, LeaseLost):
    """Somebody else writes this stream now; nothing that is written here counts."""

    code = "stream_fenced"


class LogUnavailable(ChatError, Unavailable):
    """The hot log does not answer at the moment."""

    code = "stream_unavailable"
