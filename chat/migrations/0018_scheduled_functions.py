"""Names of scheduled work say whose it is: workers take only what they have (`chat.scheduled_run:<route>.<method>`)."""

from typing import Any

from django.db import migrations

FAMILY = "chat.scheduled_run"


def name_members(apps: Any, _editor: Any) -> None:
    """Rename what schedules start, and what waits of it."""
    from chat.agent.think import Think  # noqa: PLC0415 - which methods are every agent's is known to it alone

    instances = apps.get_model("think_chat", "AgentInstance").objects
    fibers = apps.get_model("think_fibers", "Fiber").objects
    schedules = apps.get_model("think_fibers", "Schedule").objects
    for schedule in schedules.filter(function=FAMILY).only("scope", "payload").iterator():
        agent = instances.filter(pk=schedule.scope).values_list("agent", flat=True).first()
        if agent is None:
            continue
        method = (schedule.payload or {}).get("method", "")
        is_own = method and not hasattr(Think, method)
        name = (f"{FAMILY}:{agent}.{method}" if is_own else f"{FAMILY}:{agent}")[:200]
        schedules.filter(pk=schedule.pk).update(function=name)
        fibers.filter(schedule_run__schedule_id=schedule.pk, finished_at=None, name=FAMILY).update(name=name)


class Migration(migrations.Migration):
    dependencies = [("think_chat", "0017_runs_without_cascade"), ("think_fibers", "0009_incident")]

    operations = [migrations.RunPython(name_members, migrations.RunPython.noop)]
