"""Settings of turns."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit, Setting


class TurnSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    turns_per_minute = PeopleLimit("THINK_TURNS_PER_MINUTE", 60)
    """Accepted turns, summaries and compactions asked for, a minute for one user; 0 is no limit. Lower it where models
    are dear."""

    delegated_turns_per_minute = PeopleLimit("THINK_DELEGATED_TURNS_PER_MINUTE", 120)
    """Turns a minute that agents and durable code may start for one user, sub-agents' above all; they do not count
    towards `THINK_TURNS_PER_MINUTE`. 0 is no limit. Raise it for agents with many sub-agents."""

    runs_per_user = PeopleLimit("THINK_RUNS_PER_USER", 100)
    """Runs of agents as tools of others that one user may have under way; a further one fails. 0 is no limit. Raise it
    for agents with many sub-agents."""

    policies = Setting(
        "THINK_TURN_POLICIES", ["chat.turns.policies.TurnsPerMinute", "chat.turns.policies.SessionBudget"]
    )
    """Classes asked, in order, whether a turn may run (see chat.turns.policies.TurnPolicy). Add your own for rules of
    your site."""

    auto_compaction = Setting("THINK_AUTO_COMPACTION", True)
    """Whether a conversation that does not fit into its model's context is summarised within the turn. Agents and
    sessions may say otherwise; where it is off the turn ends with the error. Switch it off where people shall
    decide."""

    prunes_outputs = Setting("THINK_PRUNE_OUTPUTS", True)
    """Whether old tool outputs are let go at the end of turns, as models read them. Switch it off where providers'
    prompt caches save more."""

    unpruned_tools: Setting[list[str]] = Setting("THINK_PRUNE_PROTECTED_TOOLS", ["skill", "load_context"])
    """Tools whose outputs are never let go. Add those that agents need to the end of long conversations."""

    tool_output_lines = MachineLimit("THINK_TOOL_OUTPUT_LINES", 2_000)
    """Lines of a tool's output that a model is sent, unless the tool says otherwise; 0 is no limit. The whole is stored
    with the conversation, and models read on in it with `read_output`. Lower it for small models."""

    tool_output_bytes = MachineLimit("THINK_TOOL_OUTPUT_BYTES", 50 * 1024)
    """Bytes (UTF-8) of such an output; 0 is no limit. Lower it for small models."""

    request_media_bytes = MachineLimit("THINK_REQUEST_MEDIA_BYTES", 20 * 1024 * 1024)
    """Bytes of files in one request to a model at most; of the others, the oldest, the model gets the names. Lower it
    where the provider refuses so many."""

    approval_seconds = PeopleLimit("THINK_APPROVAL_SECONDS", 7 * 24 * 3600.0)
    """How long a person may take to approve a tool call; then it is denied. 0: for ever. Lower it where a late consent
    does harm."""


turn_settings = TurnSettings()
