"""Settings of the chat."""

from thinkproject.kernel.conf import Setting
from tools_app.core.files.kinds import DOCUMENTS, PDF, PICTURES


class ChatSettings:
    """Each is a Django setting and an environment variable of the same name."""

    turns_per_minute = Setting(
        "THINK_TURNS_PER_MINUTE",
        60,
        doc="Accepted turns, summaries and compactions asked for, a minute for one user; 0 is no limit.",
    )
    delegated_turns_per_minute = Setting(
        "THINK_DELEGATED_TURNS_PER_MINUTE",
        120,
        doc="Turns a minute that agents and durable code may start for one user, sub-agents' above all; they do not "
        "count towards `THINK_TURNS_PER_MINUTE`. 0 is no limit.",
    )
    runs_per_user = Setting(
        "THINK_RUNS_PER_USER",
        100,
        doc="Runs of agents as tools of others that one user may have under way; a further one fails. 0 is no limit.",
    )
    run_child_days = Setting(
        "THINK_RUN_CHILD_DAYS",
        30,
        doc="Days for which the conversation of a sub-agent is kept after its run has ended, if it is not used any "
        "more. The run keeps its result. 0: for ever.",
    )
    turn_policies = Setting(
        "THINK_TURN_POLICIES",
        ["chat.turns.policies.TurnsPerMinute", "chat.turns.policies.SessionBudget"],
        doc="Classes asked, in order, whether a turn may run (see chat.turns.policies.TurnPolicy).",
    )
    window_messages = Setting("THINK_WINDOW_MESSAGES", 500, doc="Messages in a transcript frame at most.")
    window_bytes = Setting("THINK_WINDOW_BYTES", 512 * 1024, doc="Bytes of messages in a transcript frame at most.")
    shown_runs = Setting(
        "THINK_SHOWN_RUNS", 20, doc="Runs of other agents that a client is sent again when it connects, the newest."
    )
    run_replay_bytes = Setting(
        "THINK_RUN_REPLAY_BYTES",
        256 * 1024,
        doc="Bytes of one run's chunks that a client is sent again when it connects; its later steps come live.",
    )
    max_frame_bytes = Setting("THINK_MAX_FRAME_BYTES", 16 * 1024 * 1024, doc="Size of an inbound socket frame at most.")
    max_other_frame_bytes = Setting(
        "THINK_MAX_OTHER_FRAME_BYTES",
        2 * 1024 * 1024,
        doc="Size of an inbound frame that is no chat request at most; larger ones close the socket with 1009.",
    )
    frame_bytes_per_minute = Setting(
        "THINK_FRAME_BYTES_PER_MINUTE",
        128 * 1024 * 1024,
        doc="Inbound bytes a minute for one user, over all sockets of a web process; beyond it closes with 4429. 0 is "
        "no limit.",
    )
    max_frames_per_second = Setting(
        "THINK_MAX_FRAMES_PER_SECOND", 100, doc="Inbound frames a second for one socket; beyond it closes with 4429."
    )
    history_messages = Setting("THINK_HISTORY_MESSAGES", 2000, doc="Stored messages given to the model at most.")
    history_bytes = Setting(
        "THINK_HISTORY_BYTES", 4_000_000, doc="Bytes of stored messages given to the model at most."
    )
    auto_compaction = Setting(
        "THINK_AUTO_COMPACTION",
        True,
        doc="Whether a conversation that does not fit into its model's context is summarised within the turn. Agents "
        "and sessions may say otherwise; where it is off the turn ends with the error.",
    )
    overflow_formula = Setting(
        "THINK_OVERFLOW_FORMULA",
        "v2",
        doc="The compaction policy of agents that name none: when a conversation counts as too long, and what of it is "
        "kept. `v1`, `v2`, `v3`, `share` or `files`.",
    )
    reserved_tokens = Setting(
        "THINK_RESERVED_TOKENS",
        0,
        doc="Tokens that the policies `v2`, `v3` and `files` keep free; 0: the lesser of 20000 and the longest answer, "
        "20000, 16384.",
    )
    compaction_keep_tokens = Setting(
        "THINK_COMPACTION_KEEP_TOKENS",
        0,
        doc="Tokens at the end of a conversation that no summary covers, at most half of what fits; 0: as the policy "
        "has it.",
    )
    compaction_summary_tokens = Setting(
        "THINK_COMPACTION_SUMMARY_TOKENS", 0, doc="Tokens that a summary has at most; 0: as the policy has it."
    )
    compaction_tool_chars = Setting(
        "THINK_COMPACTION_TOOL_CHARS",
        0,
        doc="Characters of what a tool was given and gave that are shown for a summary; 0: as the policy has it.",
    )
    compaction_sections: Setting[dict[str, str]] = Setting(
        "THINK_COMPACTION_SECTIONS",
        {},
        doc="Sections of summaries: titles with what belongs under each, as JSON in the environment. Empty: as the "
        "policy has it.",
    )
    prunes_outputs = Setting(
        "THINK_PRUNE_OUTPUTS", True, doc="Whether old tool outputs are let go at the end of turns, as models read them."
    )
    unpruned_tools: Setting[list[str]] = Setting(
        "THINK_PRUNE_PROTECTED_TOOLS", ["skill", "load_context"], doc="Tools whose outputs are never let go."
    )
    token_counter = Setting(
        "THINK_TOKEN_COUNTER",
        "estimate",
        doc="How tokens are counted: estimate, length_over_four, tiktoken:<encoding> or package.module:function.",
    )
    compaction_seconds = Setting(
        "THINK_COMPACTION_SECONDS", 300.0, doc="How long the summary of a compaction may take; then it has failed."
    )
    compaction_input_tokens = Setting(
        "THINK_COMPACTION_INPUT_TOKENS",
        60_000,
        doc="Tokens of a conversation in one request for a summary; more is summarised piece by piece.",
    )
    tool_output_lines = Setting(
        "THINK_TOOL_OUTPUT_LINES",
        2_000,
        doc="Lines of a tool's output that a model is sent, unless the tool says otherwise; 0 is no limit. The whole "
        "is stored with the conversation, and models read on in it with `read_output`.",
    )
    tool_output_bytes = Setting("THINK_TOOL_OUTPUT_BYTES", 50 * 1024, doc="The same in bytes (UTF-8); 0 is no limit.")
    request_media_bytes = Setting(
        "THINK_REQUEST_MEDIA_BYTES",
        20 * 1024 * 1024,
        doc="Bytes of files in one request to a model at most; of the others, the oldest, the model gets the names.",
    )
    approval_seconds = Setting(
        "THINK_APPROVAL_SECONDS",
        7 * 24 * 3600.0,
        doc="How long a person may take to approve a tool call; then it is denied. 0: for ever.",
    )
    caller_seconds = Setting(
        "THINK_CALLER_SECONDS",
        30.0,
        doc="How much longer than a tool's own time a turn waits for the program that runs the tool for it "
        "(`AgentHandle.chat(tools=…)`); then the call has failed.",
    )
    fibers_per_user = Setting(
        "THINK_FIBERS_PER_USER",
        1_000,
        doc="Background work of one user's agents (`spawn_fiber`) that has not ended; 0: no limit.",
    )
    fibers_per_minute = Setting(
        "THINK_FIBERS_PER_MINUTE", 300, doc="Background work that one user's agents may start in a minute; 0: no limit."
    )
    fiber_bytes = Setting(
        "THINK_FIBER_BYTES", 1024 * 1024, doc="Bytes of what background work is given at most, as JSON."
    )
    state_bytes = Setting("THINK_STATE_BYTES", 1024 * 1024, doc="Bytes of an instance's synced state at most, as JSON.")
    config_bytes = Setting(
        "THINK_CONFIG_BYTES", 256 * 1024, doc="Bytes of an instance's configuration at most, as JSON."
    )
    authority_seconds = Setting(
        "THINK_AUTHORITY_SECONDS", 15.0, doc="How often a live socket's user, session or token is checked again."
    )


chat_settings = ChatSettings()


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
    archive_max_bytes = Setting(
        "THINK_ARCHIVE_MAX_BYTES",
        1024 * 1024 * 1024,
        doc="Largest archive of another product that can be uploaded for an import.",
    )
    archives_per_user = Setting(
        "THINK_ARCHIVES_PER_USER", 3, doc="Uploaded archives of one user that have not been imported yet; 0: no limit."
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
            *sorted(DOCUMENTS - {PDF}),
            *sorted(PICTURES - {"image/png", "image/jpeg", "image/gif", "image/webp"}),
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
        "THINK_WORKER_SILENCE_SECONDS",
        30.0,
        doc="Silence after which workers that are still connected count as gone.",
    )
