"""Django application of the tools_app folder (label `think_tools`)."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

APPEND_ONLY = ("think_tools_approvalevent", "think_tools_guardevent")
"""Tables of audit rows: `thinkproject.kernel.append_only`."""


class ToolsConfig(AppConfig):
    """Registers the app under a label of its own; `tools_app` alone is too common a name."""

    name = "tools_app"
    label = "think_tools"
    verbose_name = _("Tools")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let workers remove what commands of others have left, and find the walls around code."""
        from thinkproject.kernel.append_only import keep_installed  # noqa: PLC0415 - settings are there now
        from thinkproject.kernel.half_migrated import refuse_half_migrated  # noqa: PLC0415 - as above
        from tools_app.processes import starting as commands  # noqa: PLC0415 - settings are there now
        from tools_app.sandbox import starting as sandbox  # noqa: PLC0415 - as above

        keep_installed(self, APPEND_ONLY)
        refuse_half_migrated(self)
        commands.connect()
        sandbox.connect()
