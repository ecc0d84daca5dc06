"""Settings of durable execution."""

from django.conf import settings

from thinkproject.kernel.conf import MachineLimit, PeopleLimit


class FiberSettings:
    """Settings of the fibers. Instants come from the database clock; these are durations."""

    lease_seconds = MachineLimit("THINK_FIBER_LEASE_SECONDS", 10.0)
    """How long a worker that no longer beats keeps its fibers. Raise it where healthy workers lose fibers."""

    heartbeat_seconds = MachineLimit("THINK_FIBER_HEARTBEAT_SECONDS", 3.0)
    """How often a worker renews the leases of all its fibers. Keep it below half of the lease."""

    sweep_seconds = MachineLimit("THINK_FIBER_SWEEP_SECONDS", 2.0)
    """How often each worker looks for expired leases and unclaimed fibers; what stays unclaimed for five times as long
    is sent again. Raise it where many workers ask one database."""

    running_per_share = PeopleLimit("THINK_RUNNING_TURNS_PER_USER", 10)
    """Turns of one user that run at a time; others wait. Turns of sub-agents and of code that runs in a turn do not
    count. 0: no limit. Lower it where few workers serve many people."""

    max_recoveries = MachineLimit("THINK_FIBER_MAX_RECOVERIES", 10)
    """Lost leases in a row without progress before a fiber is given up. Lower it where each attempt is dear."""

    killed_worker = MachineLimit("THINK_FIBER_KILLED_WORKER", "")
    """`host:pid` of the worker that was killed because memory ran out, for the one in its place; `make run` sets it.
    Set it in a supervisor of your own."""

    recovery_debounce_seconds = MachineLimit("THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS", 30.0)
    """A worker lost so soon after the one before spends no attempt: a deploy restarts them one by one. Raise it to what
    a deploy takes."""

    keep_finished_seconds = MachineLimit("THINK_FIBER_KEEP_FINISHED_SECONDS", 86_400.0)
    """How long completed and cancelled fibers are kept. Lower it where the table grows too large."""

    keep_failed_seconds = MachineLimit("THINK_FIBER_KEEP_FAILED_SECONDS", 604_800.0)
    """How long failed and interrupted fibers are kept. Raise it where causes are looked for later."""

    dispatch = MachineLimit("THINK_FIBER_DISPATCH", "celery")
    """celery: send a task on commit. manual: send nothing. Set it to `manual` in tests only."""

    @property
    def redis_url(self) -> str:
        """URL of the Redis that carries the interrupts; empty when there is none."""
        url: str = getattr(settings, "REDIS_URL", "") or ""
        return url


fiber_settings = FiberSettings()
