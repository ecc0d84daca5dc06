"""The page of a decision link: it shows what would be decided, and its button decides. A GET never does."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from chat.access.auth import require_user
from chat.errors import AnswerDenied, CallChanged, CallDecided, DecisionLinkInvalid, RoleNeeded
from chat.runtime.decision_links import read_link, use_link
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.languages import translate

TEMPLATE: Final = "chat/decide.html"
MAX_SHOWN: Final = 2_000
"""Characters of one argument that the page shows: who has to read more opens the conversation."""


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_variables("token")
@login_required
def decide(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows the decision; POST takes it."""
    user_id = require_user(request.user).pk
    is_done = request.method == "POST"
    try:
        found = use_link(token, user_id) if is_done else read_link(token, user_id)
    except (DecisionLinkInvalid, CallDecided, CallChanged, RoleNeeded, AnswerDenied) as error:
        response = render(request, TEMPLATE, {"refusal": translate(error.phrase)}, status=error.response_status)
    else:
        shown = [(name, _text(value)) for name, value in found.arguments.items()]
        context = {"found": found, "arguments": shown, "is_done": is_done}
        response = render(request, TEMPLATE, context)
    response["Referrer-Policy"] = "no-referrer"  # the address is for one person
    return response


def _text(value: object) -> str:
    text = value if isinstance(value, str) else dump(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
