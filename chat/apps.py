"""Django application of the chat folder (label `think_chat`)."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    """Finds the agents of all installed apps and registers the checks."""

    name = "chat"
    label = "think_chat"
    verbose_name = _("Conversations")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import every installed app's `agents` module; an error inside one surfaces, a missing one does not."""
        autodiscover_modules("agents")
        autodiscover_modules("checks")
        from celery import signals  # noqa: PLC0415 - they need the models

        from chat.runtime.abilities.declared_pass import start_passes  # noqa: PLC0415 - as above

        signals.worker_ready.connect(start_passes, weak=False, dispatch_uid="think_chat_declared_tasks")
