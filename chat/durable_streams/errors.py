"""Refusals of the Durable Streams server, with the headers that its protocol adds to them."""

from collections.abc import Mapping

from chat.errors import ChatError
from thinkproject.kernel.errors import Conflict, Denied, Invalid, NotFound
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase


class StreamRefused(ChatError):
    """The stream does not take this."""

    http_status = 400

    def __init__(
        self, message: str | Phrase = "", *, headers: Mapping[str, str] | None = None, **data: JSONValue
    ) -> None:
        super().__init__(message, **data)
        self.headers = dict(headers or {})


class StreamRequestInvalid(StreamRefused, Invalid):
    """The request is not valid for a durable stream."""

    http_status = 400


class DurableStreamNotFound(StreamRefused, NotFound):
    """There is no such stream."""

    code = "stream_not_found"
    http_status = 404


class DurableStreamGone(StreamRefused):
    """The stream was deleted; forks still read its beginning."""

    code = "stream_gone"
    http_status = 410


class StreamConflict(StreamRefused, Conflict):
    """The stream is not in a state for this."""

    http_status = 409


class ProducerFenced(StreamRefused, Denied):
    """Another writer with this producer id has taken over."""

    http_status = 403


class StreamReadOnly(StreamRefused, Denied):
    """This stream is written by turns alone."""

    http_status = 403


class SubscriptionNotFound(StreamRefused, NotFound):
    """There is no such subscription."""

    code = "SUBSCRIPTION_NOT_FOUND"
    http_status = 404


class SubscriptionRefused(StreamRefused):
    """The subscription does not take this. `status` and `code` are those of the protocol."""

    code = StreamRefused.code

    def __init__(self, status: int, code: str, message: str | Phrase, **data: JSONValue) -> None:
        super().__init__(message, **data)
        self.http_status = status  # type: ignore[misc]  # one class for the codes of the protocol
        self.code = code  # type: ignore[misc]  # as above
