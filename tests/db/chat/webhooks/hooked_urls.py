"""The site's addresses, and a receiver's beside them."""

from typing import Any

from django.http import HttpRequest
from django.urls import path

from thinkproject import urls as site

HOOKS: dict[str, Any] = {}
"""The receiver of the present test."""


async def hook(request: HttpRequest) -> Any:
    """Hand the request to it."""
    return await HOOKS["hook"].view(request)


setattr(hook, "csrf_exempt", True)  # noqa: B010 - what Django reads of a view
urlpatterns = [path("hooks/one", hook), *site.urlpatterns]
