"""Errors of the change feed."""

from chat.errors import ChatError


class FeedGone(ChatError):
    """The changes after this position are not kept any more. Read everything anew, and go on from the present position."""

    code = "feed_gone"
    http_status = 410
