"""Tables of durable execution: a fiber and its journal, schedules and their runs, executors, effects of querysets."""

from fibers.models.effects import EffectEntry, EffectState
from fibers.models.fibers import Fiber, FiberQuerySet, FiberStep, RunnerCheckpoint, new_fiber_id
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.models.served import ServedFunction

__all__ = [
    "EffectEntry",
    "EffectState",
    "Fiber",
    "FiberQuerySet",
    "FiberStep",
    "RunnerCheckpoint",
    "Schedule",
    "ScheduleRun",
    "ServedFunction",
    "new_fiber_id",
]
