"""The page of an invitation: its button accepts it, a GET does not, as previews of links would use it up."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from chat.access.auth import require_user
from chat.errors import InputInvalid, InvitationNotFound
from chat.members.services import accept_invitation
from thinkproject.kernel.languages import translate

TEMPLATE = "chat/join.html"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_variables("secret")
@login_required
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """GET shows the same page for every secret; POST accepts the invitation and opens the conversation."""
    response = _accepted(request, secret) if request.method == "POST" else render(request, TEMPLATE)
    response["Referrer-Policy"] = "no-referrer"  # the address is a secret
    return response


def _accepted(request: HttpRequest, secret: str) -> HttpResponse:
    try:
        member = accept_invitation(require_user(request.user), secret)
    except (InvitationNotFound, InputInvalid) as error:
        return render(request, TEMPLATE, {"refusal": translate(error.phrase)}, status=error.response_status)
    return redirect("chat:conversation", instance_id=member.instance_id)
