"""The page as an installed program: its manifest, its service worker, and what is shown without a connection.

All three are the same for everyone and hold nothing of a person: browsers fetch them without a session, and keep them.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from chat.http.assets import Asset, find_asset, find_script
from chat.http.pages import PRODUCT
from thinkproject.kernel.jsonvalue import JSONObject, dump

_BACKGROUND = "#fbfaf8"  # `--page` and `--accent` of tokens.css, in light
_THEME = "#1f6f5c"


@require_safe
@cache_control(max_age=3600)
def manifest(_request: HttpRequest) -> HttpResponse:
    """The facts by which browsers install the page: its name, where it begins, its icons."""
    home = reverse("chat:home")
    text = dump(
        {
            "id": home,
            "name": PRODUCT,
            "short_name": PRODUCT,
            "description": _("Conversations with agents"),
            "start_url": home,
            "scope": home,
            "display": "standalone",
            "background_color": _BACKGROUND,
            "theme_color": _THEME,
            "icons": [
                _icon("icon.svg", "any", "image/svg+xml"),
                _icon("icon-192.png", "192x192", "image/png"),
                _icon("icon-512.png", "512x512", "image/png"),
                {**_icon("icon-maskable-512.png", "512x512", "image/png"), "purpose": "maskable"},
            ],
        }
    )
    return HttpResponse(text, content_type="application/manifest+json")


@require_safe
@cache_control(no_cache=True)
def worker(_request: HttpRequest) -> HttpResponse:
    """The service worker, with what it is to keep before it. Another build is another text, so browsers update it."""
    script = find_script("worker.js")
    if script is None:
        raise Http404
    built: JSONObject = {
        "version": script.build,
        "files": static("think/"),
        "offline": reverse("chat:offline"),
        "offlineFiles": [_asset(name).url for name in ("app.css", "simple.js", "icon.svg")],
        "home": reverse("chat:home"),
        "icon": _asset("icon-192.png").url,
    }
    return HttpResponse(f"self.BUILT={dump(built)};\n{script.text}", content_type="text/javascript; charset=utf-8")


@require_safe
@cache_control(no_cache=True)
def offline(request: HttpRequest) -> HttpResponse:
    """The page that the worker shows where the server cannot be reached."""
    return render(request, "chat/offline.html")


def _icon(name: str, sizes: str, media_type: str) -> JSONObject:
    return {"src": _asset(name).url, "sizes": sizes, "type": media_type}


def _asset(name: str) -> Asset:
    found = find_asset(name)
    if found is None:
        raise Http404
    return found
