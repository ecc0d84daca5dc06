"""Periodic tasks of the composition; beat sends them (`CELERY_BEAT_SCHEDULE`)."""

from celery import shared_task
from django.core.management import call_command, get_commands


@shared_task(name="think.prune", ignore_result=True)
def prune() -> None:
    """Delete expired data: old stream logs, ended links, unclaimed files, expired sessions."""
    call_command("clearsessions")
    if "prune" in get_commands():
        call_command("prune", verbosity=0)
