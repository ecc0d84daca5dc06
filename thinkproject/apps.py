"""Django application of the composition layer: sets the Celery app for every process that loads Django."""

from axes import apps as axes_apps
from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import apps as admin_apps
from django.utils.translation import gettext_lazy as _

from thinkproject.web.languages import install_made_up_languages


class ThinkProjectConfig(AppConfig):
    """Has no models. Its `ready` makes the Celery app current and registers the deployment checks.

    It also installs the made-up languages where they are switched on.
    """

    default = True
    name = "thinkproject"
    label = "think_project"
    verbose_name = _("Think")

    def ready(self) -> None:
        """Make our Celery app the default one, in web processes and commands too."""
        from thinkproject import celery, checks  # noqa: F401, PLC0415 - Celery must not load before the apps

        celery.app.set_default()
        if getattr(settings, "HAS_MADE_UP_LANGUAGES", False):
            install_made_up_languages()


class ThinkAdminConfig(admin_apps.AdminConfig):
    """Django's admin, its index in our sections."""

    default = False
    default_site = "chat.admin_site.ThinkAdminSite"


class SignInAttemptsConfig(axes_apps.AppConfig):  # type: ignore[misc]  # axes has no types
    """django-axes, under a name that people understand."""

    default = False
    verbose_name = _("Attempts to sign in")
