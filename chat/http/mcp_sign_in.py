"""Pages by which people sign in at MCP servers: one that leads to the authorization server, one that it leads back to.

What is under way belongs to the user and to the session of this browser.
"""

import logging

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from chat.http.auth_pages import home_url
from chat.mcp_servers.changes import connect_soon
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate
from tools_app.errors import McpSignInFailed
from tools_app.mcp import selectors, sign_in
from tools_app.models.mcp import McpServer

logger = logging.getLogger(__name__)

TEMPLATE = "chat/mcp_sign_in.html"
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


@require_safe
@never_cache
@login_required
def start(request: HttpRequest, server_id: str) -> HttpResponse:
    """Begin to sign in at a server of this user's, and go to its authorization server."""
    try:
        server = selectors.find_own(server_id, request.user.pk)
        host, _port = split_domain_port(request.get_host())
        url = async_to_sync(sign_in.begin)(
            server,
            request.user.pk,
            session=_session(request),
            redirect_uri=request.build_absolute_uri(sign_in.CALLBACK_PATH),
            is_local=host in LOCAL_HOSTS,
        )
    except ThinkError as error:
        return _failed(request, error)
    response = HttpResponse(status=302)
    response["Location"] = url  # checked to be https and on the issuer's own origin
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_safe
@never_cache
@sensitive_variables("code", "state")
@login_required
def callback(request: HttpRequest) -> HttpResponse:
    """Take the answer of an authorization server, once, and have a worker connect."""
    state, code = request.GET.get("state", ""), request.GET.get("code", "")
    try:
        if not state or not code:
            if state:
                sign_in.refused(request.user.pk, session=_session(request), state=state)
            raise McpSignInFailed
        server = async_to_sync(sign_in.finish)(
            request.user.pk, session=_session(request), state=state, code=code, issuer=request.GET.get("iss")
        )
        connect_soon(server, request.user.pk)
    except ThinkError as error:
        return _failed(request, error)
    response = redirect(_place_of(server))
    response["Referrer-Policy"] = "no-referrer"
    return response


def _session(request: HttpRequest) -> str:
    return request.session.session_key or ""


def _failed(request: HttpRequest, error: ThinkError) -> HttpResponse:
    logger.info("mcp sign-in failed", extra={"action": "mcp_sign_in_failed", "code": error.code})
    context = {"refusal": translate(error.phrase), "home": home_url()}
    return render(request, TEMPLATE, context, status=error.response_status)


def _place_of(server: McpServer) -> str:
    """The conversation that the server belongs to, or all of them."""
    try:
        return reverse("chat:conversation", args=[server.instance_id]) if server.instance_id else home_url()
    except NoReverseMatch:
        return home_url()
