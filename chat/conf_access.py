"""Settings of access and limits: who may connect from where, and how much one user may send."""

from thinkproject.kernel.conf import Setting


class AccessSettings:
    """Read at each use, so that `override_settings` works. Zero switches off the limits whose text mentions it."""

    allowed_origins = Setting[tuple[str, ...] | list[str]](
        "THINK_ALLOWED_ORIGINS",
        (),
        doc="Origins (`https://app.example.com`) of other pages that may use sockets and chats with a cookie.",
    )
    instances_per_user = Setting(
        "THINK_INSTANCES_PER_USER", 10_000, doc="Conversations one user may keep, sub-agents counted; 0: no limit."
    )
    messages_per_minute = Setting(
        "THINK_MESSAGES_PER_MINUTE",
        1_000,
        doc="Messages that one user may add within a minute without asking for an answer; an import fills the minute. "
        "0: no limit.",
    )
    messages_per_user = Setting(
        "THINK_MESSAGES_PER_USER",
        1_000_000,
        doc="Stored messages of one user beyond which none are added or imported; 0: no limit.",
    )
    messages_quota_bytes = Setting(
        "THINK_MESSAGES_QUOTA_BYTES",
        4 * 1024 * 1024 * 1024,
        doc="Bytes of stored messages of one user beyond which none are added or imported; 0: no limit.",
    )
    request_max_bytes = Setting(
        "THINK_REQUEST_MAX_BYTES",
        1024 * 1024,
        doc="Largest body of a request to a page or to an unknown address. JSON of the API may have 16 MiB, an upload "
        "the size of its file.",
    )
    import_max_bytes = Setting(
        "THINK_IMPORT_MAX_BYTES", 100 * 1024 * 1024, doc="Largest export that can be uploaded for an import."
    )
    import_max_messages = Setting(
        "THINK_IMPORT_MAX_MESSAGES", 50_000, doc="Messages that one import of a person may have."
    )
    file_max_bytes = Setting("THINK_FILE_MAX_BYTES", 20 * 1024 * 1024, doc="Largest file that can be attached.")
    files_per_minute = Setting("THINK_FILES_PER_MINUTE", 60, doc="Uploads of one user in a minute; 0: no limit.")
    files_per_user = Setting("THINK_FILES_PER_USER", 5_000, doc="Files one user may keep; 0: no limit.")
    files_quota_bytes = Setting(
        "THINK_FILES_QUOTA_BYTES", 1024 * 1024 * 1024, doc="Bytes of files one user may keep; 0: no limit."
    )
    files_per_message = Setting("THINK_FILES_PER_MESSAGE", 20, doc="Files in one message.")
    file_types = Setting[tuple[str, ...] | list[str]](
        "THINK_FILE_TYPES",
        (
            "image/png",
            "image/jpeg",
            "image/gif",
            "image/webp",
            "application/pdf",
            "text/plain",
            "text/markdown",
            "text/csv",
            "application/json",
        ),
        doc="Media types that may be attached. The type is found in the bytes, never believed.",
    )
    file_orphan_hours = Setting(
        "THINK_FILE_ORPHAN_HOURS", 24, doc="Hours after which a file that no message claimed is removed."
    )
    journal_days = Setting(
        "THINK_JOURNAL_DAYS", 90, doc="Days for which the journal of a turn that went well is kept; 0: for ever."
    )
    token_touch_seconds = Setting(
        "THINK_TOKEN_TOUCH_SECONDS", 300, doc="How often at most the last use of a token is written."
    )
    sign_in_tries = Setting(
        "THINK_SIGN_IN_TRIES", 5, doc="Failed attempts to sign in to one account from one address; 0: no limit."
    )
    sign_in_tries_per_address = Setting(
        "THINK_SIGN_IN_TRIES_PER_ADDRESS",
        50,
        doc="Failed attempts to sign in from one address, to whatever account; 0: no limit.",
    )
    sign_in_lock_seconds = Setting(
        "THINK_SIGN_IN_LOCK_SECONDS",
        900,
        doc="How long a failed attempt counts, and so how long a lock lasts after the last one that was made.",
    )
    link_minutes = Setting("THINK_SIGN_IN_LINK_MINUTES", 15, doc="Minutes for which a sign-in link works.")
    stream_keep_alive_seconds = Setting(
        "THINK_STREAM_KEEP_ALIVE_SECONDS", 15.0, doc="Pause between keep-alive comments of an idle event stream."
    )
    worker_silence_seconds = Setting(
        "THINK_WORKER_SILENCE_SECONDS", 30.0, doc="Silence of all workers after which readiness fails."
    )
