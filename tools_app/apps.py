"""Django application of the tools_app folder (label `think_tools`)."""

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    """Registers the app under a label of its own; `tools_app` alone is too common a name."""

    name = "tools_app"
    label = "think_tools"
    verbose_name = "Think tools"
    default_auto_field = "django.db.models.BigAutoField"
