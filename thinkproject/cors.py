"""Pages on other origins: a front end on its own port during development, or an embedding site.

Only origins listed in `THINK_ALLOWED_ORIGINS` get an answer, by name and never `*`; everybody else gets no header, so
that their browser refuses to show them anything.
"""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
HEADERS = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, X-CSRFToken"
EXPOSED = "Content-Range, Location, Retry-After"


class CorsMiddleware:
    """Answers preflights of listed origins and marks their responses. Works sync and async."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Serve one request."""
        early = _preflight(request)
        if iscoroutinefunction(self.get_response):
            return self._answer(request, early)
        response = early or self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _marked(request, response)

    async def _answer(self, request: HttpRequest, early: HttpResponse | None) -> HttpResponseBase:
        response = early or self.get_response(request)
        if not isinstance(response, HttpResponseBase):
            response = await response
        return _marked(request, response)


def _origin(request: HttpRequest) -> str:
    origin = request.headers.get("Origin", "")
    return origin if origin and origin in settings.THINK_ALLOWED_ORIGINS else ""


def _preflight(request: HttpRequest) -> HttpResponse | None:
    if request.method != "OPTIONS" or "Access-Control-Request-Method" not in request.headers or not _origin(request):
        return None
    headers = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": HEADERS,
        "Access-Control-Max-Age": "600",
    }
    return HttpResponse(status=204, headers=headers)


def _marked(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if not settings.THINK_ALLOWED_ORIGINS:
        return response
    patch_vary_headers(response, ["Origin"])
    if origin := _origin(request):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Credentials"] = "true"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
    return response
