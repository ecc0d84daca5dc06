"""System checks of the composition: a channel layer that reaches other processes, a database that holds up."""

from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register


@register(Tags.security, deploy=True)
def check_production(_app_configs: Sequence[AppConfig] | None = None, **_options: object) -> list[CheckMessage]:
    """System checks for production."""
    found: list[CheckMessage] = []
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        found.append(
            checks.Warning(
                "SQLite serves one machine.",
                hint="Set DATABASE_URL to a PostgreSQL for several servers.",
                id="thinkproject.W001",
            )
        )
    if getattr(settings, "USES_EMBEDDED_REDIS", False):
        found.append(
            checks.Warning(
                "REDIS_URL is not set.",
                hint="Only `make run` starts the embedded Redis; set REDIS_URL in production.",
                id="thinkproject.W002",
            )
        )
    if "*" in settings.ALLOWED_HOSTS:
        found.append(
            checks.Warning(
                "ALLOWED_HOSTS allows every host name.",
                hint="Name the hosts of this server; else a forged Host header reaches links and the Origin rule.",
                id="thinkproject.W003",
            )
        )
    return found


@register()
def check_channel_layer(_app_configs: Sequence[AppConfig] | None = None, **_options: object) -> list[CheckMessage]:
    """Refuse the in-memory layer: its notifications stay in one process."""
    backend = str(getattr(settings, "CHANNEL_LAYERS", {}).get("default", {}).get("BACKEND", ""))
    if backend.endswith("InMemoryChannelLayer") and getattr(settings, "IS_PRODUCTION", not settings.DEBUG):
        return [
            Error(
                "The channel layer is in memory: web processes would not hear of each other.",
                hint="Use channels_redis.pubsub.RedisPubSubChannelLayer.",
                id="thinkproject.E001",
            )
        ]
    return []
