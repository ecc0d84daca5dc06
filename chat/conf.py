"""Settings of the chat."""

from thinkproject.kernel.conf import Setting


class ChatSettings:
    """Each is a Django setting and an environment variable of the same name."""

    turns_per_minute = Setting(
        "THINK_TURNS_PER_MINUTE",
        60,
        doc="Accepted turns, summaries and compactions asked for, a minute for one user; 0 is no limit.",
    )
    turn_policies = Setting(
        "THINK_TURN_POLICIES",
        ["chat.turns.state.policies.TurnsPerMinute", "chat.turns.state.policies.SessionBudget"],
        doc="Classes asked, in order, whether a turn may run (see chat.turns.state.policies.TurnPolicy).",
    )
    window_messages = Setting("THINK_WINDOW_MESSAGES", 500, doc="Messages in a transcript frame at most.")
    window_bytes = Setting("THINK_WINDOW_BYTES", 512 * 1024, doc="Bytes of messages in a transcript frame at most.")
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
    approval_seconds = Setting(
        "THINK_APPROVAL_SECONDS",
        7 * 24 * 3600.0,
        doc="How long a person may take to approve a tool call; then it is denied. 0: for ever.",
    )
    state_bytes = Setting("THINK_STATE_BYTES", 1024 * 1024, doc="Bytes of an instance's synced state at most, as JSON.")
    config_bytes = Setting(
        "THINK_CONFIG_BYTES", 256 * 1024, doc="Bytes of an instance's configuration at most, as JSON."
    )
    authority_seconds = Setting(
        "THINK_AUTHORITY_SECONDS", 15.0, doc="How often a live socket's user, session or token is checked again."
    )


chat_settings = ChatSettings()
