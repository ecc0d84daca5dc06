"""Settings of workspaces."""

from thinkproject.kernel.conf import Setting


class WorkspaceSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    inline_bytes = Setting(
        "THINK_WORKSPACE_INLINE_BYTES",
        1_500_000,
        doc="Files of a workspace from this size are kept in storage, smaller ones in the database.",
    )
    file_max_bytes = Setting(
        "THINK_WORKSPACE_FILE_MAX_BYTES", 100 * 1024 * 1024, doc="Largest file that a workspace may have."
    )
    quota_bytes = Setting(
        "THINK_WORKSPACE_QUOTA_BYTES",
        2 * 1024 * 1024 * 1024,
        doc="Bytes of files in all workspaces of one user; 0: no limit.",
    )
    quota_entries = Setting(
        "THINK_WORKSPACE_QUOTA_ENTRIES",
        200_000,
        doc="Files, directories and links in all workspaces of one user; 0: no limit.",
    )
    archive_max_entries = Setting(
        "THINK_WORKSPACE_ARCHIVE_MAX_ENTRIES", 20_000, doc="Entries of a zip file that is imported into a workspace."
    )
    archive_max_bytes = Setting(
        "THINK_WORKSPACE_ARCHIVE_MAX_BYTES",
        512 * 1024 * 1024,
        doc="Bytes of all files of a zip file that is imported into a workspace, uncompressed.",
    )
    orphan_hours = Setting(
        "THINK_WORKSPACE_ORPHAN_HOURS",
        24,
        doc="Hours after which an object in storage that no file of a workspace refers to is removed.",
    )
    backup_days = Setting(
        "THINK_WORKSPACE_BACKUP_DAYS",
        30,
        doc="Days for which files are kept as they were before a turn changed them; 0: as long as the turn.",
    )


workspace_settings = WorkspaceSettings()
