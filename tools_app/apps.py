"""Django application of the tools_app folder (label `think_tools`)."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ToolsConfig(AppConfig):
    """Registers the app under a label of its own; `tools_app` alone is too common a name."""

    name = "tools_app"
    label = "think_tools"
    verbose_name = _("Tools")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let workers remove what commands of others have left."""
        from tools_app.processes import starting  # noqa: PLC0415 - settings are there now

        starting.connect()
