"""Settings of what is kept for how long."""

from thinkproject.kernel.conf import MachineLimit


class RetentionSettings:
    """Read at each use; 0 is for ever."""

    journal_days = MachineLimit("THINK_JOURNAL_DAYS", 90)
    """Days for which the journal of a turn that went well is kept; 0: for ever. Lower it where the database grows too
    large."""

    run_child_days = MachineLimit("THINK_RUN_CHILD_DAYS", 30)
    """Days for which the conversation of a sub-agent is kept after its run has ended, if it is not used any more. The
    run keeps its result. 0: for ever. Raise it where people look into old runs."""


retention_settings = RetentionSettings()
