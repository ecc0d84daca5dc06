"""Settings of attached files and of imports."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit, Setting
from tools_app.core.files.kinds import DOCUMENTS, PDF, PICTURES

_PLAIN_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class FileSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    max_bytes = PeopleLimit("THINK_FILE_MAX_BYTES", 20 * 1024 * 1024)
    """Largest file that can be attached. Raise it together with what the proxy lets through."""

    per_minute = PeopleLimit("THINK_FILES_PER_MINUTE", 60)
    """Uploads of one user in a minute; 0: no limit. Raise it for programs."""

    per_user = PeopleLimit("THINK_FILES_PER_USER", 5_000)
    """Files one user may keep; 0: no limit. Raise it where disk is plenty."""

    quota_bytes = PeopleLimit("THINK_FILES_QUOTA_BYTES", 1024 * 1024 * 1024)
    """Bytes of files one user may keep; 0: no limit. Raise it where disk is plenty."""

    types = Setting[tuple[str, ...] | list[str]](
        "THINK_FILE_TYPES",
        (
            *_PLAIN_PICTURES,
            "application/pdf",
            "text/plain",
            "text/markdown",
            "text/csv",
            "application/json",
            *sorted(DOCUMENTS - {PDF}),
            *sorted(PICTURES - set(_PLAIN_PICTURES)),
        ),
    )
    """Media types that may be attached. The type is found in the bytes, never believed. Change it where tools of yours
    read other files."""

    import_max_bytes = MachineLimit("THINK_IMPORT_MAX_BYTES", 100 * 1024 * 1024)
    """Largest export that can be uploaded for an import. Raise it for very long conversations."""

    archive_max_bytes = MachineLimit("THINK_ARCHIVE_MAX_BYTES", 1024 * 1024 * 1024)
    """Largest archive of another product that can be uploaded for an import. Lower it where disk is short."""

    archives_per_user = PeopleLimit("THINK_ARCHIVES_PER_USER", 3)
    """Uploaded archives of one user that have not been imported yet; 0: no limit. Lower it where disk is short."""


file_settings = FileSettings()
