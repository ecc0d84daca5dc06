"""Errors of the Python client.

ChatError
└─ ClientError    ConnectionFailed · Disconnected · ClientClosed · RequestRefused · TurnFailed · CallFailed
                  └─ Refused   NotSignedIn · NotYours · NoSuchAgent · TooManyFrames
"""

from typing import Final

from chat.errors import ChatError
from thinkproject.kernel.errors import Denied, Invalid, NotFound, Unavailable


class ClientError(ChatError):
    """Something between this client and its server went wrong."""


class ConnectionFailed(ClientError, Unavailable):
    """The server could not be reached in time."""

    code = "client_connection_failed"
    http_status = 503
    retryable = True


class Disconnected(ClientError, Unavailable):
    """The connection was lost before the answer; whether the server acted is not known."""

    code = "client_disconnected"
    http_status = 503
    retryable = True


class ClientClosed(ClientError):
    """This client is closed."""


class RequestRefused(ClientError, Invalid):
    """The server did not take the request; nothing has changed."""

    code = "client_request_refused"
    http_status = 422


class TurnFailed(ClientError):
    """The turn ended with an error. Data: `request_id`."""

    code = "client_turn_failed"
    http_status = 502


class CallFailed(ClientError):
    """The method that was called failed or does not exist."""

    code = "client_call_failed"


class Refused(ClientError, Denied):
    """The server refuses this client for good; connecting again is no use. Data: `close_code`."""

    code = "client_refused"
    http_status = 403


class NotSignedIn(Refused):
    """The token is missing, unknown or revoked."""

    code = "client_not_signed_in"
    http_status = 401


class NotYours(Refused):
    """This conversation belongs to another user."""

    code = "client_not_yours"


class NoSuchAgent(Refused, NotFound):
    """The server has no agent of this name."""

    code = "client_no_such_agent"
    http_status = 404


class TooManyFrames(Refused):
    """This client sent too many frames a second."""

    code = "client_too_many_frames"
    http_status = 429


_BY_CODE: Final[dict[int, type[Refused]]] = {
    401: NotSignedIn,
    403: NotYours,
    404: NoSuchAgent,
    4401: NotSignedIn,
    4403: NotYours,
    4404: NoSuchAgent,
    4429: TooManyFrames,
}


def refusal_of(code: int, reason: str) -> Refused:
    """Make the error of a close code (or of the HTTP status that refused the upgrade)."""
    return _BY_CODE.get(code, Refused)(reason, close_code=code)


def is_refusal(close_code: int) -> bool:
    """Whether this close code means that connecting again is no use: 1008 and 4000 to 4999."""
    return close_code == 1008 or 4000 <= close_code <= 4999
