"""Django application of the sessions_app folder (label `think_sessions`)."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

APPEND_ONLY = ("think_sessions_contextchange",)
"""Tables of audit rows: `thinkproject.kernel.append_only`."""


class SessionsConfig(AppConfig):
    """Registers the app under a label of its own; `sessions_app` alone is too common a name."""

    name = "sessions_app"
    label = "think_sessions"
    verbose_name = _("Histories and memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and what must be looked after when tables have changed."""
        from django.contrib.auth import get_user_model  # noqa: PLC0415 - models are loaded now

        from sessions_app import checks  # noqa: F401, PLC0415 - importing it registers them
        from sessions_app.models import Session  # noqa: PLC0415 - as above
        from sessions_app.search.engine import mend_index  # noqa: PLC0415 - as above
        from thinkproject.kernel.append_only import erase_with, keep_installed  # noqa: PLC0415 - as above
        from thinkproject.kernel.half_migrated import refuse_half_migrated  # noqa: PLC0415 - as above

        post_migrate.connect(mend_index, sender=self, dispatch_uid="think_sessions.search")
        keep_installed(self, APPEND_ONLY)
        refuse_half_migrated(self)
        erase_with(Session)
        erase_with(get_user_model())
