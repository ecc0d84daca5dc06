"""The benchmarks there are, and on which database each is run."""

from collections.abc import Iterable, Sequence

TITLES = {
    "turns": "Turns that begin and end",
    "load": "A hundred conversations, answered again and again",
    "long_turns": "Turns of long conversations",
    "calls": "What is asked beside turns",
    "reconnect": "Coming back to a running answer",
    "start": "Starting",
    "first_chunk": "From the frame to the first word",
    "delivery": "A hundred answers at once",
    "opening": "Opening a long conversation",
    "idle": "Idle sockets",
    "recovery": "A killed worker",
    "executors": "Calls of tools that another process runs (SQLite)",
    "durable_streams": "Durable streams",
    "streams": "The log by itself",
    "sessions": "Conversations in the database (SQLite)",
    "search": "Search in conversations (SQLite)",
    "shell": "A shell over 1,000 files (SQLite)",
    "model_adapter": "The model adapters by themselves",
    "prompt_head": "Prompts that a cache serves, over twenty turns",
    "feed": "The change feed (SQLite)",
    "durable": "Durable work: sweeps, schedules, runs, messages (SQLite)",
    "effects": "Effects of querysets (SQLite)",
    "files": "Files of workspaces, and code with its records",
    "sandbox": "Code of models",
    "mcp_calls": "A call of an MCP server's tool (SQLite)",
    "tokens": "Tokens of tools",
    "core": "The pure units",
}
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
ON_BOTH = ("turns", "load", "long_turns", "calls", "durable_streams", "files")
"""What a database has most of the time of."""


def runs_of(names: Sequence[str], database: str) -> Iterable[tuple[str, str, str]]:
    """Title, name and database of each run; without names, of all benchmarks. `database` may be `both`."""
    for name in names or TITLES:
        if name not in ON_BOTH:
            yield TITLES[name], name, "sqlite" if database == "both" else database
            continue
        for each in DATABASES if database == "both" else [database]:
            yield f"{TITLES[name]} ({DATABASES[each]})", name, each
