"""Settings of durable execution."""

from django.conf import settings

from thinkproject.kernel.conf import Setting


class FiberSettings:
    """Settings of the fibers. Instants come from the database clock; these are durations."""

    lease_seconds = Setting(
        "THINK_FIBER_LEASE_SECONDS", 10.0, doc="How long a worker that no longer beats keeps its fibers."
    )
    heartbeat_seconds = Setting(
        "THINK_FIBER_HEARTBEAT_SECONDS", 3.0, doc="How often a worker renews the leases of all its fibers."
    )
    sweep_seconds = Setting(
        "THINK_FIBER_SWEEP_SECONDS", 2.0, doc="How often each worker looks for expired leases and unclaimed fibers."
    )
    running_per_share = Setting(
        "THINK_RUNNING_TURNS_PER_USER",
        10,
        doc="Turns of one user that run at a time; others wait. Turns of sub-agents and of code that runs in a turn do "
        "not count. 0: no limit.",
    )
    redispatch_seconds = Setting(
        "THINK_FIBER_REDISPATCH_SECONDS", 10.0, doc="When a fiber that was not claimed is sent to the workers again."
    )
    max_recoveries = Setting(
        "THINK_FIBER_MAX_RECOVERIES", 10, doc="Lost leases in a row without progress before a fiber is given up."
    )
    no_progress_seconds = Setting(
        "THINK_FIBER_NO_PROGRESS_SECONDS", 300.0, doc="Time of recovering without progress before it is given up."
    )
    max_recovery_work = Setting(
        "THINK_FIBER_MAX_RECOVERY_WORK",
        1000,
        doc="Steps that a fiber may settle after it first lost its worker, if it keeps losing it; then it is given up.",
    )
    max_memory_losses = Setting(
        "THINK_FIBER_MAX_MEMORY_LOSSES",
        3,
        doc="Workers that ran out of memory under a fiber before it is given up.",
    )
    killed_worker = Setting(
        "THINK_FIBER_KILLED_WORKER",
        "",
        doc="`host:pid` of the worker that was killed because memory ran out, for the one in its place; `make run` "
        "sets it.",
    )
    recovery_debounce_seconds = Setting(
        "THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS",
        30.0,
        doc="A worker lost so soon after the one before spends no attempt: a deploy restarts them one by one.",
    )
    keep_finished_seconds = Setting(
        "THINK_FIBER_KEEP_FINISHED_SECONDS", 86_400.0, doc="How long completed and cancelled fibers are kept."
    )
    keep_failed_seconds = Setting(
        "THINK_FIBER_KEEP_FAILED_SECONDS", 604_800.0, doc="How long failed and interrupted fibers are kept."
    )
    schedules_per_user = Setting(
        "THINK_SCHEDULES_PER_USER", 100, doc="Schedules that one user may have besides those that ended; 0: no limit."
    )
    schedule_shortest_seconds = Setting(
        "THINK_SCHEDULE_SHORTEST_SECONDS",
        60,
        doc="What at least lies between two runs of a schedule that a person or a model creates. Code may be faster.",
    )
    schedule_tests_per_minute = Setting(
        "THINK_SCHEDULE_TESTS_PER_MINUTE", 10, doc="Schedules that one user may run besides their times; 0: no limit."
    )
    schedule_run_seconds = Setting(
        "THINK_SCHEDULE_RUN_SECONDS",
        3600,
        doc="When a run of a schedule counts as hung: it is stopped once the next one is due. Schedules may say "
        "otherwise.",
    )
    grace_seconds = Setting(
        "THINK_FIBER_GRACE_SECONDS", 5.0, doc="What an interrupted function gets to put its things in order."
    )
    dispatch = Setting(
        "THINK_FIBER_DISPATCH", "celery", doc="celery: send a task on commit. manual: send nothing (tests)."
    )

    @property
    def redis_url(self) -> str:
        """URL of the Redis that carries the interrupts; empty when there is none."""
        url: str = getattr(settings, "REDIS_URL", "") or ""
        return url


fiber_settings = FiberSettings()
