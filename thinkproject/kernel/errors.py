"""The error base shared by all apps, and its five kinds.

ThinkError
├─ Invalid 422 · Denied 403 · NotFound 404 · Conflict 409 · Unavailable 503 (retryable)

A leaf error inherits its family (`ChatError`, `FiberError`, ...) and one kind. Its docstring is its default message,
and its data are typed keyword arguments. Nothing secret goes into a message. `code` is stable and documented: it is
the name of the class (`TurnNotFound`: `turn_not_found`), unless the class names another one.

Messages are English where they are raised, logged or stored. A message with values in it is a `Phrase`; the API,
sockets and pages translate it for the person who asks (`thinkproject.kernel.languages`).
"""

import inspect
import re
from typing import Any, ClassVar

from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase


class ThinkError(Exception):
    """Something went wrong in a way that the product foresaw."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the code from the name."""
        super().__init_subclass__(**kwargs)
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str | Phrase = "", **data: JSONValue) -> None:
        text = message or inspect.cleandoc(type(self).__doc__ or "").splitlines()[0]
        self.phrase = text if isinstance(text, Phrase) else Phrase(text)
        self.message = str(self.phrase)
        self.data = data
        super().__init__(self.message)

    @property
    def response_status(self) -> int:
        """The HTTP status of this error: that of its class, unless the class decides by what went wrong."""
        return self.http_status


class Invalid(ThinkError):
    """The input is invalid."""

    http_status = 422


class Denied(ThinkError):
    """You are not allowed to do this."""

    http_status = 403


class NotFound(ThinkError):
    """There is no such thing."""

    http_status = 404


class Conflict(ThinkError):
    """The present state does not allow this."""

    http_status = 409


class Unavailable(ThinkError):
    """Something that is needed does not answer right now. Try again in a moment."""

    http_status = 503
    retryable = True


class Saturated(Unavailable):
    """All threads for this kind of code are taken; try again. Data: `kind`, `threads`."""

    code = "threads_saturated"
