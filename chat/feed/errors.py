"""Errors of the change feed."""

from chat.errors import ChatError


class FeedGone(ChatError):
    """The changes after this position are not kept any more: read everything anew, and go on from where the feed is."""

    http_status = 410
