"""Django application of the fibers folder (label `think_fibers`)."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class FibersConfig(AppConfig):
    """Registers the app under a label of its own; `fibers` alone is too common a name."""

    name = "fibers"
    label = "think_fibers"
    verbose_name = _("Durable work")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Find the durable functions of all apps, register the checks, let Celery start the worker's threads."""
        from fibers.execution import worker  # noqa: PLC0415 - they need the models
        from thinkproject.kernel.half_migrated import refuse_half_migrated  # noqa: PLC0415 - as above

        autodiscover_modules("durables")
        worker.connect()
        refuse_half_migrated(self)
