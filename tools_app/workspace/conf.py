"""Settings of workspaces."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit


class WorkspaceSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    inline_bytes = MachineLimit("THINK_WORKSPACE_INLINE_BYTES", 1_500_000)
    """Files of a workspace from this size are kept in storage, smaller ones in the database. Lower it where the
    database's disk is small."""

    file_max_bytes = PeopleLimit("THINK_WORKSPACE_FILE_MAX_BYTES", 100 * 1024 * 1024)
    """Largest file that a workspace may have. Raise it together with what the proxy lets through."""

    quota_bytes = PeopleLimit("THINK_WORKSPACE_QUOTA_BYTES", 2 * 1024 * 1024 * 1024)
    """Bytes of files in all workspaces of one user; 0: no limit. Raise it where disk is plenty."""

    quota_entries = PeopleLimit("THINK_WORKSPACE_QUOTA_ENTRIES", 200_000)
    """Files, directories and links in all workspaces of one user; 0: no limit. Raise it where disk is plenty."""

    backup_days = MachineLimit("THINK_WORKSPACE_BACKUP_DAYS", 30)
    """Days for which files are kept as they were before a turn changed them; 0: as long as the turn. Lower it where
    disk is short."""

    @property
    def backup_bytes(self) -> int:
        """Bytes of files that are kept of what one turn changes: an eighth of the quota; 0: no limit."""
        return self.quota_bytes // 8


workspace_settings = WorkspaceSettings()
