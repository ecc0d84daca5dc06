"""The page of consent: a program asks, a person decides. What was granted is listed in the settings."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_deny
from django.views.decorators.http import require_http_methods, require_safe

from chat.access.auth import require_user
from chat.access.oauth import clients, grants
from chat.access.oauth.grants import Consent
from chat.access.oauth.scopes import SENTENCES, Scope, known_scopes
from chat.http.auth_pages import home_url
from chat.http.oauth.addresses import SALT, offered_agents, resource_of, title_of
from chat.http.oauth.views import origin_of
from chat.models import OAuthClient
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

REQUEST_SECONDS: Final = 600
"""How long a person may take to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A program's request, as `authorize` checked it."""

    client: OAuthClient
    agent: str
    scopes: tuple[Scope, ...]
    challenge: str
    redirect: str
    is_explicit: bool
    state: str | None


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@xframe_options_deny
@login_required
def consent(request: HttpRequest) -> HttpResponseBase:
    """GET asks; POST has the decision, and sends the person back to the program."""
    given = _given(request.GET.get("request", ""))
    if "back" in given:
        return _refused(request, given)
    asked = _read(given)
    if asked is None:
        refusal = _("This request is no longer valid. Start again in the program.")
        return render(request, "chat/consent.html", {"refusal": refusal}, status=400)
    if request.method != "POST":
        return _shown(request, asked.redirect, _context(asked))
    if request.POST.get("decision") != "allow":
        return _back(request, asked, error="access_denied")
    agreed = Consent(
        client_id=asked.client.pk,
        agent=asked.agent,
        resource=resource_of(origin_of(request), asked.agent),
        scopes=asked.scopes,
        code_challenge=asked.challenge,
        redirect_uri=asked.redirect,
        redirect_is_explicit=asked.is_explicit,
    )
    try:
        code = grants.create_grant(require_user(request.user), agreed)
    except ThinkError as error:
        refusal = translate(error.phrase)
        response = render(request, "chat/consent.html", {"refusal": refusal}, status=error.response_status)
        if "retry_after_seconds" in error.data:
            response["Retry-After"] = str(error.data["retry_after_seconds"])
        return response
    return _back(request, asked, code=code)


@require_safe
def programs(_request: HttpRequest) -> HttpResponse:
    """The former address of the list of grants. It is in the settings now, where a project has the pages."""
    try:
        return redirect("chat:settings-section", section="tokens")
    except NoReverseMatch:
        return redirect(home_url())


def _given(signed: str) -> dict[str, Any]:
    """A request that we have signed; empty for anything else, and after its time."""
    try:
        given: dict[str, Any] = signing.loads(signed, salt=SALT, max_age=REQUEST_SECONDS)
    except signing.BadSignature:
        return {}
    return given


def _refused(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """A request that cannot be granted. GET shows why; POST sends the person back to the program, which learns it."""
    if request.method == "POST":
        return HttpResponse(status=303, headers={"Location": given["back"]})
    refusal = _("The program has asked for something that is not possible here.")
    back = {"wrong": given["wrong"], "destination": _destination(given["back"])}
    return _shown(request, given["back"], {"refusal": refusal, "back": back}, status=400)


def _shown(request: HttpRequest, target: str, context: dict[str, Any], status: int = 200) -> HttpResponseBase:
    source = csp_update({"form-action": [_source(target)]})  # the decision leads there
    return source(lambda shown: render(shown, "chat/consent.html", context, status=status))(request)


def _read(given: dict[str, Any]) -> _Asked | None:
    if not given:
        return None
    client = clients.find_client(given["client"])
    scopes = tuple(known_scopes(given["scopes"]))
    if client is None or given["agent"] not in offered_agents() or not scopes:
        return None
    return _Asked(
        client=client,
        agent=given["agent"],
        scopes=scopes,
        challenge=given["challenge"],
        redirect=given["redirect"],
        is_explicit=given["is_explicit"],
        state=given["state"],
    )


def _context(asked: _Asked) -> dict[str, Any]:
    return {
        "program": asked.client.name or _("A program without a name"),
        "agent": title_of(asked.agent),
        "abilities": [SENTENCES[scope] for scope in asked.scopes],
        "destination": _destination(asked.redirect),
        "is_local": asked.redirect.startswith("http:"),
    }


def _destination(uri: str) -> str:
    parts = urlsplit(uri)
    return parts.netloc if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


def _source(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


def _back(request: HttpRequest, asked: _Asked, **answer: str) -> HttpResponse:
    given = {**answer, "iss": origin_of(request)} | ({} if asked.state is None else {"state": asked.state})
    parts = urlsplit(asked.redirect)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *given.items()])
    # Django's own redirect refuses schemes of apps; this address was checked when it was registered.
    return HttpResponse(status=303, headers={"Location": parts._replace(query=query).geturl()})
