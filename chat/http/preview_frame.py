"""The document inside the frame of a preview: what people or models wrote, on an origin of its own.

It holds nothing. The page that embeds it sends what is to be shown (`static/src/app/preview/`). Isolation is the
answer's own policy, which a document cannot take off again, whatever is written into it: `sandbox` without
`allow-same-origin` makes the origin opaque (no cookies, no storage, no reach into the page around it), and nothing
may be fetched, sent or opened. With `?network=1`, which a person allows for one preview, other servers may be reached
by HTTPS; the rest stays. Only our own pages may embed it: no other page can write into one that has the network.
"""

import secrets
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

RUN: Final = "html"
"""The one kind whose own scripts run."""

RENDERED: Final = {
    "chart": "frame.js",
    "csv": "frame.js",
    "markdown": "frame.js",
    "mermaid": "mermaid.js",
    "svg": "frame.js",
}
"""What our own script makes of a text, by its kind; no other script runs there."""

_NETWORKED: Final = frozenset({RUN, "svg"})
_ALWAYS: Final = {
    "sandbox": "allow-scripts",
    "default-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
}
_EMBEDDED: Final = "data: blob:"


@require_safe
@never_cache
@login_required
def preview(request: HttpRequest, kind: str) -> HttpResponse:
    """The frame for a kind of document. Errors: `Http404` for another kind."""
    if kind != RUN and kind not in RENDERED:
        raise Http404
    is_networked = kind in _NETWORKED and request.GET.get("network") == "1"
    nonce = "" if kind == RUN else secrets.token_urlsafe(16)
    context = {"kind": kind, "script": RENDERED.get(kind, ""), "nonce": nonce}
    response = render(request, "chat/preview.html", context)
    response["Content-Security-Policy"] = policy(kind, nonce=nonce, is_networked=is_networked)
    response["X-Frame-Options"] = "SAMEORIGIN"
    response["X-DNS-Prefetch-Control"] = "off"
    response["Referrer-Policy"] = "no-referrer"
    response["Permissions-Policy"] = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"
    return response


def policy(kind: str, *, nonce: str = "", is_networked: bool = False) -> str:
    """The Content-Security-Policy of a frame."""
    reach = " https:" if is_networked else ""
    directives = {
        **_ALWAYS,
        "script-src": f"'unsafe-inline' 'unsafe-eval'{reach}" if kind == RUN else f"'nonce-{nonce}'",
        "style-src": f"'unsafe-inline'{reach}" if kind == RUN else f"'self' 'unsafe-inline'{reach}",
        "img-src": _EMBEDDED + reach,
        "media-src": _EMBEDDED + reach,
        "font-src": f"data:{reach}",
    }
    if is_networked:
        directives["connect-src"] = "https: wss:"
    return "; ".join(f"{name} {value}" for name, value in directives.items())
