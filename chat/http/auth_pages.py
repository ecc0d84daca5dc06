"""Login and logout pages, and the one-time sign-in link of `make run`: its button consumes it, a GET does not."""

import shlex
import sys
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.signals import user_login_failed
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import NoReverseMatch, reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from chat.access import sign_in
from chat.errors import LinkUnknown, SignInDenied
from chat.http.preference_cookies import write_at_sign_in
from chat.instances.notifications import notify_on_commit, user_group
from chat.people.preferences import preferences_of
from thinkproject.kernel.languages import translate

TEMPLATE = "chat/sign_in_link.html"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


def home_url() -> str:
    """Redirect target after sign-in: the conversations under any prefix; the project's page without the UI."""
    try:
        return reverse("chat:home")
    except NoReverseMatch:
        return resolve_url(settings.LOGIN_REDIRECT_URL)


def locked_response(request: HttpRequest) -> HttpResponse | None:
    """The response to too many attempts, where the project limits them (django-axes)."""
    if not apps.is_installed("axes"):
        return None
    from axes.handlers.proxy import AxesProxyHandler  # noqa: PLC0415 - its models are there only where it is installed
    from axes.helpers import get_lockout_response  # noqa: PLC0415 - as above

    if not getattr(settings, "AXES_ENABLED", True) or not AxesProxyHandler.is_locked(request):
        return None
    response: HttpResponse = get_lockout_response(request)
    return response


def _refused(request: HttpRequest, error: SignInDenied) -> HttpResponse:
    return render(request, TEMPLATE, {"refusal": translate(error.phrase)}, status=403)


def _link_command(request: HttpRequest) -> str:
    """The command that prints a sign-in link for this server, as it runs in the folder of its `manage.py`."""
    python, folder = Path(sys.executable), Path(getattr(settings, "BASE_DIR", "") or ".")
    python = python.relative_to(folder) if python.is_relative_to(folder) else python
    data = getattr(settings, "DATA_DIR", None)
    named = f"THINK_DATA_DIR={shlex.quote(str(data))} " if data is not None and Path(data) != folder / "var" else ""
    return f"{named}{shlex.quote(str(python))} manage.py sign_in_link --port {request.get_port()}"


class SignIn(LoginView):
    """The login page. Who is signed in already goes on."""

    template_name = "chat/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add to the page's context whether there are sign-in links: `make run` creates a user without a password."""
        known = {"has_links": sign_in.has_links(), "command": _link_command(self.request)}
        return {**super().get_context_data(**kwargs), **known}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, with what the person has chosen for the page."""
        response = super().form_valid(form)
        write_at_sign_in(response, preferences_of(self.request.user.pk))
        return response

    def get_default_redirect_url(self) -> str:
        """Go to the conversations."""
        return home_url()


class SignOut(LogoutView):
    """Ends the session, and the sockets that live by it; POST only."""

    template_name = "chat/logged_out.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out."""
        user_id = request.user.pk
        response = super().post(request, *args, **kwargs)
        if user_id is not None:
            notify_on_commit(user_group(user_id), {"type": "authority.changed"})
        return response


@method_decorator([never_cache, sensitive_variables("token")], name="dispatch")
class SignInByLink(View):
    """GET shows a button and changes nothing; POST uses the link up and signs in. Only from this machine."""

    http_method_names = ["get", "head", "post"]

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Refuse strangers before anything else, with the same page for every reason.

        Who is signed in already goes on: a used link in the history of a browser is no failure. Other wrong links
        count as failed attempts to sign in.
        """
        try:
            sign_in.refuse_strangers(request)
            response = locked_response(request) or super().dispatch(request, *args, **kwargs)
        except LinkUnknown as error:
            if request.user.is_authenticated:
                response = redirect(home_url())
            else:
                user_login_failed.send(sender=__name__, credentials={"token": "…"}, request=request)
                response = _refused(request, error)
        except SignInDenied as error:
            response = _refused(request, error)
        # The address is a secret: it must not travel in a Referer.
        response["Referrer-Policy"] = "no-referrer"
        assert isinstance(response, HttpResponse)
        return response

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        """Show the button."""
        user = sign_in.find_link_user(token)
        return render(request, TEMPLATE, {"username": user.get_username()})

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Use the link up."""
        user = sign_in.consume_link(token)
        login(request, user, backend=_BACKEND)  # type: ignore[arg-type]  # any user model signs in
        response = redirect(home_url())
        write_at_sign_in(response, preferences_of(user.pk))
        return response
