"""The error of a fetch, with a code that models and programs can act on."""

from typing import Literal, TypeAlias

from tools_app.errors import ToolError

FetchCode: TypeAlias = Literal[
    "disallowed_url",
    "disallowed_redirect",
    "timeout",
    "non_2xx",
    "unsupported_content_type",
    "invalid_json",
    "too_large",
    "request_failed",
]


class FetchFailed(ToolError):
    """The address could not be fetched. Data: `reason` (a `FetchCode`), `status` and `url` where they are known."""

    def __init__(self, reason: FetchCode, message: str, *, status: int = 0, url: str = "") -> None:
        super().__init__(message, reason=reason, status=status, url=url)
        self.reason: FetchCode = reason
        self.status = status
        self.url = url
