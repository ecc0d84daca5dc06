"""System checks of access: origins, sessions, middleware, storage.

chat.E101 an entry of THINK_ALLOWED_ORIGINS is no origin · chat.E102 what signing in needs is not installed ·
chat.W101 an allowed origin without TLS on a production server · chat.W102 sessions that cannot be ended ·
chat.W103 files lie where the web server may serve them · chat.W104 `ninja` is not installed as an app · chat.W105 a
cache that processes do not share.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from chat.access.origins import parse_origin
from chat.conf_access import AccessSettings
from chat.files import attachments

_MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)
_CACHES_OF_ONE_PROCESS = {
    "django.core.cache.backends.locmem.LocMemCache",
    "django.core.cache.backends.dummy.DummyCache",
}
_LAYERS_OF_ONE_PROCESS = {"", "channels.layers.InMemoryChannelLayer"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_conf = AccessSettings()


@register(Tags.security)
def check_origins(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report origins that match no page, or more pages than intended."""
    found: list[CheckMessage] = []
    for entry in _conf.allowed_origins:
        origin = parse_origin(entry)
        if origin is None:
            hint = "Write scheme, host and port, such as https://app.example.com; there is no wildcard."
            found.append(Error(f"THINK_ALLOWED_ORIGINS: {entry!r} is not an origin.", hint=hint, id="chat.E101"))
        elif origin.scheme == "http" and origin.host not in _LOOPBACK and getattr(settings, "IS_PRODUCTION", False):
            hint = "Anybody on the way can write that page; serve it over HTTPS."
            found.append(checks.Warning(f"THINK_ALLOWED_ORIGINS: {entry!r} has no TLS.", hint=hint, id="chat.W101"))
    return found


@register(Tags.security)
def check_sign_in(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report what signing in needs and does not find."""
    found: list[CheckMessage] = [
        Error(f"MIDDLEWARE lacks {name!r}, which the API's sign-in needs.", id="chat.E102")
        for name in _MIDDLEWARE
        if name not in settings.MIDDLEWARE
    ]
    if settings.SESSION_ENGINE.endswith("signed_cookies"):
        hint = "Use database or cache sessions: a session in a cookie cannot be ended by the server."
        found.append(checks.Warning("Signing out does not end live connections.", hint=hint, id="chat.W102"))
    if not apps.is_installed("ninja"):
        hint = 'Add "ninja" to INSTALLED_APPS; else the API\'s documentation loads scripts from elsewhere.'
        found.append(checks.Warning('"ninja" is not installed as an app.', hint=hint, id="chat.W104"))
    return found


@register(Tags.security)
def check_files(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report attached files that could be fetched past the access rules."""
    location = getattr(attachments.storage(), "location", None)
    static = getattr(settings, "STATIC_ROOT", None)
    if location is None or not static or not Path(location).is_relative_to(Path(static)):
        return []
    hint = "Give STORAGES an entry `think` (or the default) outside of STATIC_ROOT."
    return [checks.Warning("Attached files lie below STATIC_ROOT.", hint=hint, id="chat.W103")]


@register(Tags.caches)
def check_shared_cache(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report a cache of one process where the channel layer says that there are several."""
    cache = settings.CACHES.get("default", {}).get("BACKEND", "")
    layer = getattr(settings, "CHANNEL_LAYERS", {}).get("default", {}).get("BACKEND", "")
    if cache not in _CACHES_OF_ONE_PROCESS or layer in _LAYERS_OF_ONE_PROCESS:
        return []
    hint = (
        "Use a shared one, such as django.core.cache.backends.redis.RedisCache. It holds which answers a client was "
        "being sent when its connection was lost: a client that reconnects to another process may keep half an answer."
    )
    return [checks.Warning(f"CACHES['default'] is {cache}, which processes do not share.", hint=hint, id="chat.W105")]
