"""Settings of schedules."""

from thinkproject.kernel.conf import PeopleLimit


class ScheduleSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    per_user = PeopleLimit("THINK_SCHEDULES_PER_USER", 100)
    """Schedules that one user may have besides those that ended; 0: no limit. Lower it where schedules cost."""

    shortest_seconds = PeopleLimit("THINK_SCHEDULE_SHORTEST_SECONDS", 60)
    """What at least lies between two runs of a schedule that a person or a model creates. Code may be faster. Raise it
    where each run asks a model."""


schedule_settings = ScheduleSettings()
