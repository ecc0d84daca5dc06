"""The time zone of the person who asks, as a request's header names it (`X-Time-Zone: Europe/Vienna`)."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from thinkproject.kernel.zones import in_zone, zone_in


class TimeZoneMiddleware:
    """Make it the current one while the request is served; none where the header names none."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Serve one request."""
        if self._is_async:
            return self._serve(request)
        with in_zone(zone_in(request.headers)):
            response: HttpResponseBase = self.get_response(request)
            return response

    async def _serve(self, request: HttpRequest) -> HttpResponseBase:
        with in_zone(zone_in(request.headers)):
            response: HttpResponseBase = await self.get_response(request)
            return response
