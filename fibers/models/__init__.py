"""Tables of durable execution: a fiber and its journal, schedules and their runs."""

from fibers.models.fibers import Fiber, FiberQuerySet, FiberStep, RunnerCheckpoint, new_fiber_id
from fibers.models.schedules import Schedule, ScheduleRun

__all__ = [
    "Fiber",
    "FiberQuerySet",
    "FiberStep",
    "RunnerCheckpoint",
    "Schedule",
    "ScheduleRun",
    "new_fiber_id",
]
