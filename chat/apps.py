"""Django application of the chat folder (label `think_chat`)."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import post_migrate, pre_delete, pre_migrate
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    """Finds the agents of all installed apps and registers the checks."""

    name = "chat"
    label = "think_chat"
    verbose_name = _("Conversations")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the modules `agents` and `executors` of installed apps; an error inside one surfaces."""
        autodiscover_modules("agents")
        autodiscover_modules("executors")
        autodiscover_modules("checks")
        from celery import signals  # noqa: PLC0415 - they need the models
        from django.core import checks  # noqa: PLC0415 - as above

        from chat.access import browsers  # noqa: PLC0415 - as above
        from chat.durable_tools.checks import check_executors  # noqa: PLC0415 - as above
        from chat.feed import triggers  # noqa: PLC0415 - as above
        from chat.operations.removal import (  # noqa: PLC0415 - as above
            remove_all_of_owner,
            remove_turns_of_session,
        )
        from chat.push.devices import forget_devices_of_session  # noqa: PLC0415 - as above
        from chat.schedules.reconciling import start_passes  # noqa: PLC0415 - as above
        from chat.user_code.checks import check_plugins  # noqa: PLC0415 - as above
        from chat.wiring import wire  # noqa: PLC0415 - as above
        from sessions_app.models import Session  # noqa: PLC0415 - as above
        from thinkproject.kernel.half_migrated import refuse_half_migrated  # noqa: PLC0415 - as above

        wire()
        refuse_half_migrated(self)
        checks.register(check_executors, "chat")
        checks.register(check_plugins, "chat")

        def forget_owner(*, instance: Any, **_facts: Any) -> None:
            remove_all_of_owner(instance.pk)

        def forget_session(*, instance: Any, **_facts: Any) -> None:
            remove_turns_of_session(instance.pk)

        pre_delete.connect(forget_owner, sender=get_user_model(), weak=False, dispatch_uid="think_chat_owner")
        pre_delete.connect(forget_session, sender=Session, weak=False, dispatch_uid="think_chat_session")

        user_logged_in.connect(browsers.note_sign_in, dispatch_uid="think_chat_sign_in")
        user_logged_out.connect(browsers.note_sign_out, dispatch_uid="think_chat_sign_out")

        def forget_devices(*, request: Any, **_facts: Any) -> None:
            forget_devices_of_session(request.session.session_key or "")

        user_logged_out.connect(forget_devices, weak=False, dispatch_uid="think_chat_devices")
        pre_migrate.connect(triggers.uninstall, sender=self, dispatch_uid="think_chat_feed")
        post_migrate.connect(triggers.install, sender=self, dispatch_uid="think_chat_feed")
        signals.worker_ready.connect(start_passes, weak=False, dispatch_uid="think_chat_declared_tasks")
