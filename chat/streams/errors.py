"""Errors of the log.

ThinkError
└─ ChatError      Fenced (a LeaseLost) · LogUnavailable
"""

from chat.errors import ChatError
from fibers.errors import LeaseLost
from thinkproject.kernel.errors import Unavailable


class Fenced(ChatError, LeaseLost):
    """Another writer owns this stream now; writes from here do not count."""

    code = "stream_fenced"


class LogUnavailable(ChatError, Unavailable):
    """The hot log does not answer at the moment."""

    code = "stream_unavailable"
