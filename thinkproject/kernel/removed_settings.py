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

_ELSEWHERE: Final = {
    "Give agents a `CompactionPolicy` with it instead.": """
        RESERVED_TOKENS COMPACTION_KEEP_TOKENS COMPACTION_SUMMARY_TOKENS COMPACTION_TOOL_CHARS COMPACTION_SECTIONS
    """,
    "Set the attribute of your agents' classes instead (docs/howto/recovery.md).": """
        FIBER_NO_PROGRESS_SECONDS FIBER_MAX_RECOVERY_WORK FIBER_MAX_MEMORY_LOSSES
    """,
    "It is a constant now; remove it.": """
        CALLER_SECONDS COMPACTION_INPUT_TOKENS COMPACTION_SECONDS CONFIG_BYTES EXTENSION_CALLS_KEPT
        EXTENSION_SOURCE_BYTES EXTENSION_VERSIONS_KEPT FIBER_BYTES FIBER_GRACE_SECONDS FIBER_REDISPATCH_SECONDS
        FILES_PER_MESSAGE FILE_ORPHAN_HOURS HISTORY_BYTES HISTORY_MESSAGES IMPORT_MAX_MESSAGES MAX_FRAMES_PER_SECOND
        MAX_OTHER_FRAME_BYTES MCP_CATALOGUE_BYTES MCP_CONNECT_SECONDS MCP_IDLE_SECONDS MCP_RESULT_BYTES
        MCP_RETRY_SECONDS MODEL_REST_SECONDS OAUTH_CLIENT_HOURS RUN_REPLAY_BYTES SCHEDULE_RUN_SECONDS
        SCHEDULE_TESTS_PER_MINUTE SHOWN_RUNS STATE_BYTES STREAM_COLD_RETENTION_SECONDS STREAM_HOT_RECORDS
        STREAM_QUEUE_BATCHES THREAD_WAIT_SECONDS TOKEN_TOUCH_SECONDS WINDOW_BYTES WINDOW_MESSAGES WORKER_SILENCE_SECONDS
        WORKSPACE_ARCHIVE_MAX_BYTES WORKSPACE_ARCHIVE_MAX_ENTRIES WORKSPACE_ORPHAN_HOURS
    """,
}
"""What to do, with the names that it is about."""

REMOVED: Final = {
    **{f"THINK_{name}": hint for hint, names in _ELSEWHERE.items() for name in names.split()},
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
