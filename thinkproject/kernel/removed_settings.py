"""Names that were settings once. One that an owner still sets is refused at start, with what to do instead.

The environment is checked by `thinkproject/config/env.py`, Django's settings of any project by `chat/checks.py`.
"""

from collections.abc import Iterable
from typing import Final

_FIELDS: Final = {
    "SANDBOX": "RUNS RUNS_PER_USER QUEUE_SECONDS SECONDS CPU_SECONDS MEMORY_BYTES PYTHON_MEMORY_BYTES",
    "PROCESSES": "RUNS RUNS_PER_USER QUEUE_SECONDS SECONDS CPU_SECONDS CPUS MEMORY_BYTES DISK_BYTES COUNT",
    "BROWSER": "RUNS RUNS_PER_USER QUEUE_SECONDS SECONDS MEMORY_BYTES NETWORK_BYTES KEPT KEPT_PER_USER IDLE_SECONDS",
}
"""Settings that became fields of one, by its name."""

_CONSTANTS: Final = """
FIBER_GRACE_SECONDS FIBER_MAX_MEMORY_LOSSES FIBER_MAX_RECOVERY_WORK FIBER_NO_PROGRESS_SECONDS FIBER_REDISPATCH_SECONDS
MODEL_REST_SECONDS SCHEDULE_RUN_SECONDS STREAM_COLD_RETENTION_SECONDS STREAM_HOT_RECORDS STREAM_QUEUE_BATCHES
THREAD_WAIT_SECONDS
"""
"""Values that nothing about an installation depends on."""

REMOVED: Final[dict[str, str]] = {
    **{f"THINK_{name}": "It is a constant now; remove it." for name in _CONSTANTS.split()},
    **{
        f"THINK_{name}_{field}": f"Set THINK_{name}='{{\"{field.lower()}\": …}}' instead."
        for name, fields in _FIELDS.items()
        for field in fields.split()
    },
}
"""Each removed name with what to do."""


def removed(names: Iterable[str]) -> list[str]:
    """A sentence for each of the names that is no setting any more."""
    return [f"{name} is not a setting any more. {REMOVED[name]}" for name in sorted(names) if name in REMOVED]
