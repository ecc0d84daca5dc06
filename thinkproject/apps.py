"""Django application of the composition layer: sets the Celery app for every process that loads Django."""

from django.apps import AppConfig
from django.conf import settings

from thinkproject.web.languages import install_made_up_languages


class ThinkProjectConfig(AppConfig):
    """Has no models. Its `ready` makes the Celery app current and registers the deployment checks.

    It also installs the made-up languages where they are switched on.
    """

    name = "thinkproject"
    label = "think_project"
    verbose_name = "Think"

    def ready(self) -> None:
        """Make our Celery app the default one, in web processes and commands too."""
        from thinkproject import celery, checks  # noqa: F401, PLC0415 - Celery must not load before the apps

        celery.app.set_default()
        if getattr(settings, "HAS_MADE_UP_LANGUAGES", False):
            install_made_up_languages()
