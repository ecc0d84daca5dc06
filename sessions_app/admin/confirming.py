"""Asks before an action of a list takes something away that does not come back."""

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise

CONFIRMED: Final = "confirmed"
MAX_NAMED: Final = 50


def confirmation(  # noqa: PLR0913 - what the page says, one keyword each
    owner: "ModelAdmin[Any]",
    request: HttpRequest,
    *,
    action: str,
    title: str | Promise,
    consequence: str | Promise,
    rows: Iterable[tuple[Any, str]],
    button: str | Promise,
) -> HttpResponse | None:
    """A page that asks, or nothing when the person has said yes.

    **Shape:** `rows`: key and name of each row; the first fifty are named. Give the page back from the action.
    """
    if request.POST.get(CONFIRMED):
        return None
    chosen = list(rows)
    context = {
        **owner.admin_site.each_context(request),
        "title": title,
        "opts": owner.opts,
        "consequence": consequence,
        "names": [name for _, name in chosen[:MAX_NAMED]],
        "unnamed_count": max(0, len(chosen) - MAX_NAMED),
        "keys": [str(key) for key, _ in chosen],
        "key_field": ACTION_CHECKBOX_NAME,
        "action": action,
        "button": button,
        "confirmed": CONFIRMED,
    }
    return TemplateResponse(request, "admin/think_sessions/confirm.html", context)
