"""Common to all answers of `/v1/stream/`: callers, errors as problems, and the headers for browsers.

Any page may use it with a token. No answer allows credentials, so a cookie works for our own pages alone.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from chat.access.api_tokens import STREAMS
from chat.durable_streams.conf import durable_stream_settings
from chat.durable_streams.errors import StreamRefused
from chat.errors import BUSY
from chat.http.api.authentication import Caller, caller_of_page
from chat.http.api.problems import problem, problem_of
from chat.http.request_counts import count_request
from thinkproject.kernel.errors import ThinkError

ROOT: Final = "/v1/stream/"
NO_STORE: Final = "no-store"
_SENT: Final = (
    "Authorization, Content-Type, If-None-Match, Last-Event-ID, Stream-Seq, Stream-TTL, Stream-Expires-At, "
    "Stream-Closed, Stream-Forked-From, Stream-Fork-Offset, Stream-Fork-Sub-Offset, "
    "Producer-Id, Producer-Epoch, Producer-Seq"
)
_SHOWN: Final = (
    "ETag, Location, Retry-After, Stream-Next-Offset, Stream-Cursor, Stream-Up-To-Date, Stream-Closed, Stream-TTL, "
    "Stream-Expires-At, Stream-SSE-Data-Encoding, Producer-Epoch, Producer-Seq, Producer-Expected-Seq, "
    "Producer-Received-Seq"
)
_COMMON: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",  # what a page reads by CORS is not held to it
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": _SHOWN,
}

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def stream_door(*methods: str) -> Callable[[View], View]:
    """Make a view one of the door's: its methods, its errors, its headers. A token or the Origin stands for CSRF."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def serve(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            response = await _answer(view, request, methods, arguments)
            for name, value in _COMMON.items():
                response[name] = value
            return response

        return serve

    return decorate


def stream_caller(request: HttpRequest) -> Caller:
    """Find who calls, and count the request. Sync. Errors: `Unauthenticated`, `OriginDenied`, `QuotaExceeded`."""
    caller = caller_of_page(request, may_change=request.method not in {"GET", "HEAD"}, scope=STREAMS)
    count_request("streams", caller.user.pk, durable_stream_settings.limits.requests_per_minute)
    return caller


def root_of(request: HttpRequest) -> str:
    """The address of all streams, as the caller knows it."""
    prefix = request.path[: -len(request.path_info)] if request.path_info else ""
    return request.build_absolute_uri(prefix + ROOT.rstrip("/"))


def empty(status: int, headers: dict[str, str]) -> HttpResponse:
    """An answer without a body, nor a type unless it is among the headers."""
    response = HttpResponse(status=status, headers=headers)
    if "Content-Type" not in headers:
        del response["Content-Type"]
    return response


async def _answer(
    view: View, request: HttpRequest, methods: tuple[str, ...], arguments: dict[str, Any]
) -> HttpResponseBase:
    if request.method == "OPTIONS":
        allowed = ", ".join((*methods, "OPTIONS"))
        names = ("Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age", "Allow")
        return empty(204, dict(zip(names, (allowed, _SENT, "600", allowed), strict=True)))
    if request.method not in methods:
        return HttpResponseNotAllowed([*methods, "OPTIONS"])
    try:
        response = await view(request, **arguments)
    except ThinkError as error:
        response = problem_of(error)
        if isinstance(error, StreamRefused):
            for name, value in error.headers.items():
                response[name] = value
    except RequestDataTooBig:
        response = problem(413, "too_large", "The request is larger than this server accepts.")
    except DatabaseError:  # one refused request; nothing was changed
        response = problem(503, "busy", BUSY, {"retry_after_seconds": 1})
    if not response.has_header("Cache-Control"):
        response["Cache-Control"] = NO_STORE
    patch_vary_headers(response, ("Authorization", "Cookie"))
    return response
