"""The page of a link for readers, and its files. It needs no sign-in, no cache keeps it, no search engine lists it.

The page is drawn by the same script as any conversation, from what `chat/shares/reading.py` gives. A link that is wrong
and one that is over get the same answer. Requests are counted by the network that they come from.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from chat.access.client_network import client_network
from chat.agent.registry import list_agents
from chat.errors import AttachmentNotFound, QuotaExceeded, SharedNotFound
from chat.files.attachments import attachment_id
from chat.http.api.endpoints.instances import shown_agent
from chat.http.api.file_response import file_response, view_response
from chat.http.pages import API, PRODUCT, TRUSTED_TYPES
from chat.http.request_counts import count_request
from chat.shares.projection import SharedMessage
from chat.shares.reading import SharedView, open_link, shared_file, shared_view

NOT_THERE: Final = "chat/shared_over.html"
PAGES_PER_MINUTE: Final = 60
FILES_PER_MINUTE: Final = 600

P = ParamSpec("P")


def _for_strangers(
    door: str, limit: Callable[[], int]
) -> Callable[[Callable[Concatenate[HttpRequest, P], HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Count the requests of a network, answer everything that is not there alike, and keep the address a secret."""

    def decorate(view: Callable[Concatenate[HttpRequest, P], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            try:
                count_request(door, client_network(request), limit())
                response = view(request, *args, **kwargs)
            except (SharedNotFound, AttachmentNotFound):
                response = render(request, NOT_THERE, status=404)
            except QuotaExceeded as error:
                response = render(request, NOT_THERE, {"is_busy": True}, status=error.http_status)
                response["Retry-After"] = str(error.data["retry_after_seconds"])
            return _unlisted(response)

        return guarded

    return decorate


def _unlisted(response: HttpResponseBase) -> HttpResponseBase:
    response["Cache-Control"] = "private, no-store"
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    return response


@require_safe
@never_cache
@csp_update(TRUSTED_TYPES)
@sensitive_variables("secret")
@_for_strangers("shared", lambda: PAGES_PER_MINUTE)
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """The page with what a link shows."""
    link = open_link(secret)
    view = shared_view(link, lambda url: _file_url(secret, url))
    context = {"boot": _boot(request, secret, view), "title": link.title, "product": PRODUCT, "view": "shared"}
    return render(request, "chat/shared.html", context)


@require_safe
@sensitive_variables("secret")
@_for_strangers("shared-files", lambda: FILES_PER_MINUTE)
def shared_attachment(request: HttpRequest, secret: str, file_id: str) -> HttpResponseBase:
    """The bytes of a file that a link shows."""
    return file_response(request, shared_file(open_link(secret), file_id))


@require_safe
@sensitive_variables("secret")
@_for_strangers("shared-files", lambda: FILES_PER_MINUTE)
def shared_attachment_view(request: HttpRequest, secret: str, file_id: str) -> HttpResponseBase:
    """The same as it is read: the text of a document, a picture that browsers show."""
    del request
    return view_response(shared_file(open_link(secret), file_id))


def _file_url(secret: str, url: str) -> str:
    found = attachment_id(url)
    return reverse("chat:shared-file", args=[secret, found]) if found else ""


def _boot(request: HttpRequest, secret: str, view: SharedView) -> dict[str, Any]:
    link = view.link
    home = reverse("chat:home")
    is_known = request.user.is_authenticated
    address = reverse("chat:shared", args=[secret])
    agent = next((each for each in list_agents() if each.name == link.instance.agent), None)
    shown = [] if agent is None else [{**shown_agent(agent).dict(), "suggestions": [], "commands": []}]
    return {
        "product": PRODUCT,
        "page": "shared",
        "user": "",
        "urls": {
            "home": home,
            "api": reverse(f"{API}:api-root").rstrip("/") if is_known else "",
            "agents": "",
            "files": f"{address}/files/",
            "logout": "",
            "programs": "",
        },
        "agents": shown,
        "model": None,
        "instances": {"items": [], "pinned": [], "next_cursor": None},
        "instance": {"id": "", "agent": link.instance.agent, "name": "", "title": link.title, "role": "reader"},
        "messages": {"items": [_item(message) for message in view.messages]},
        "approvals": {"items": [], "next_cursor": None},
        "shared": {
            "secret": secret,
            "expires_at": link.expires_at.isoformat(),
            "tools": link.shows_tools,
            "files": link.shows_files,
            "may_continue": is_known,
            "sign_in": "" if is_known else f"{reverse('login')}?next={address}",
        },
    }


def _item(message: SharedMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role,
        "parts": message.parts,
        "sibling_ids": [message.id],
        "created_at": message.created_at,
    }
