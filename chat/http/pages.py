"""The pages of the web UI: a shell with the API's first responses embedded.

There is no second encoder and no second access check: each piece is the answer of the API's own operation, so a page
can never show what the API would refuse. Must not query or write.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import NoReverseMatch, get_script_prefix, resolve, reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

PRODUCT = "Think"
API = "think-api"
_LIST_LIMIT = "60"
_PINNED_LIMIT = "200"
_IN_PROJECTS_LIMIT = "200"
_PAGE_LIMIT = "50"
_APPROVALS_LIMIT = "50"
_COUNT_ONLY = "1"  # the list shows how many wait, and no more of them
# Added to the site's policy where django-csp is at work: in these pages only the sanitiser may make markup of text, and
# only one script may become a worker.
TRUSTED_TYPES = {"require-trusted-types-for": ["'script'"], "trusted-types": ["dompurify", "think-worker"]}


def _page_of_a_person(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponseBase]:
    """Serve a page to people who are signed in, never from a cache."""
    return require_safe(never_cache(csp_update(TRUSTED_TYPES)(login_required(view))))


@_page_of_a_person
def home(request: HttpRequest) -> HttpResponse:
    """The list of conversations. Wide screens show the newest one beside it at once, so it is embedded too."""
    instances = _listed(request)
    shown = [*instances["items"], *instances["in_projects"]]
    newest = max(shown, key=lambda item: item["active_at"], default=None)
    return _page(request, kind="list", instances=instances, instance=newest)


@_page_of_a_person
def new(request: HttpRequest) -> HttpResponse:
    """An empty conversation; nothing is written before its first message. `?agent=` names the agent."""
    return _page(request, kind="new", instances=_listed(request), instance=None)


@_page_of_a_person
def conversation(request: HttpRequest, instance_id: str) -> HttpResponse:
    """One conversation with its newest page embedded. Errors: `Http404` for conversations of other users."""
    instance = _ask(request, "instance_detail", path={"instance_id": instance_id})
    instances = _listed(request)
    return _page(request, kind="conversation", instances=instances, instance=instance)


@_page_of_a_person
def approvals(request: HttpRequest) -> HttpResponse:
    """All calls that wait for this user's decision, with the first page of them embedded."""
    return _page(request, kind="approvals", instances=_listed(request), instance=None)


@_page_of_a_person
def work(request: HttpRequest) -> HttpResponse:
    """Work for this user in any conversation. The page reads it, and goes on reading it."""
    return _page(request, kind="work", instances=_listed(request), instance=None)


@_page_of_a_person
def settings(request: HttpRequest, section: str = "") -> HttpResponse:  # noqa: ARG001 - the page reads its address
    """The settings of this person. Which sections there are, the page knows; each asks for its own facts."""
    return _page(request, kind="settings", instances=_listed(request), instance=None)


def _listed(request: HttpRequest) -> Any:
    """The most recent conversations that are in no project, with the pinned ones, the projects and those in these."""
    projects = _ask(request, "project_list")
    inside = _ask(request, "instance_list", limit=_IN_PROJECTS_LIMIT, project="any")["items"] if projects else []
    return {
        **_ask(request, "instance_list", limit=_LIST_LIMIT, project="none"),
        "pinned": _ask(request, "instance_list", limit=_PINNED_LIMIT, pinned="true")["items"],
        "projects": projects,
        "in_projects": inside,
    }


def _page(request: HttpRequest, *, kind: str, instances: Any, instance: Any) -> HttpResponse:
    messages = None
    if instance is not None:
        messages = _ask(request, "message_list", path={"instance_id": instance["id"]}, limit=_PAGE_LIMIT)
    api = reverse(f"{API}:api-root").rstrip("/")
    home_url = reverse("chat:home")
    is_approvals = kind == "approvals"
    boot = {
        "product": PRODUCT,
        "page": kind,
        "user": request.user.get_username(),
        "name": _ask(request, "preferences_detail")["name"],
        "urls": {
            "home": home_url,
            "api": api,
            "agents": f"{home_url}agents/",
            "files": f"{api}/files/",
            "logout": reverse("logout"),
            "previews": f"{home_url}preview/",
            **_staff_urls(request),
            "worker": reverse("chat:worker"),
        },
        "agents": _ask(request, "agents", unlisted="true"),
        "model": _ask(request, "model"),
        "files": _ask(request, "file_limits"),
        "instances": instances,
        "instance": instance,
        "messages": messages,
        "approvals": _ask(request, "approval_list", limit=_APPROVALS_LIMIT if is_approvals else _COUNT_ONLY),
    }
    title = _title(kind) or (instance or {}).get("title") or _("New conversation")
    view = "conversation" if kind == "new" else kind
    return render(request, "chat/page.html", {"boot": boot, "title": title, "product": PRODUCT, "view": view})


def _title(kind: str) -> str:
    """The title of a page that is no conversation; empty for the others."""
    return {"approvals": _("Approvals"), "settings": _("Settings"), "work": _("Work")}.get(kind, "")


def _staff_urls(request: HttpRequest) -> dict[str, str]:
    """Addresses of the administration and of the API's description, for staff. Empty: for others, or not served."""
    wanted = {"admin": "admin:index", "docs": f"{API}:openapi-view"}
    if not getattr(request.user, "is_staff", False):
        return dict.fromkeys(wanted, "")
    found = {}
    for name, view in wanted.items():
        try:
            found[name] = reverse(view)
        except NoReverseMatch:  # a site may do without its admin
            found[name] = ""
    return found


def _ask(request: HttpRequest, operation: str, *, path: dict[str, str] | None = None, **query: str) -> Any:
    """Answer of a GET operation of the API to this user, as JSON. Errors: `Http404` when there is none."""
    inner = copy.copy(request)
    inner.method = "GET"
    wanted = request.GET.copy()
    wanted.clear()
    wanted.update(query)
    inner.GET = wanted  # type: ignore[assignment]  # a mutable QueryDict is one too
    match = resolve("/" + reverse(f"{API}:{operation}", kwargs=path).removeprefix(get_script_prefix()))
    response = match.func(inner, *match.args, **match.kwargs)
    if response.status_code != 200:
        raise Http404
    return json.loads(response.content)
