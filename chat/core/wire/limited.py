"""Frames that refuse because of a limit say when to ask again: a socket has no headers.

A field of ours, `retryAfterSeconds`, in any of the frames that carry an error; published clients take no notice of it.
"""

from thinkproject.kernel.jsonvalue import dump


def with_wait(frame: str, seconds: float | None) -> str:
    """Add the time to an encoded frame; nothing where the error is no limit."""
    return frame if seconds is None else f'{frame[:-1]},"retryAfterSeconds":{dump(seconds)}}}'
