"""Django admin of the chat; importing this package registers its models."""

from chat.admin import (
    access,
    change_feeds,
    durable_streams,
    feedback,
    files,
    imports,
    inboxes,
    instances,
    members,
    pages_of_lower_apps,
    people,
    reverts,
    shares,
    streams,
    turns,
)
from chat.admin.durable import runs, schedules
from chat.admin.tools import executions, extensions, guards, mcp, rules, workspace_files, workspaces

__all__ = [
    "access",
    "change_feeds",
    "durable_streams",
    "executions",
    "extensions",
    "feedback",
    "files",
    "guards",
    "imports",
    "inboxes",
    "instances",
    "mcp",
    "members",
    "pages_of_lower_apps",
    "people",
    "reverts",
    "rules",
    "runs",
    "schedules",
    "shares",
    "streams",
    "turns",
    "workspace_files",
    "workspaces",
]
