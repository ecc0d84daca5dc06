"""The rows of a person's that an export of everything has as lists of JSON, besides conversations and files.

A test compares them with the tables that name a person, and has the reasons for those that are in none.
Secrets are in none: hashes, keys of sessions, headers and tokens of servers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Model

from chat.models import (
    AgentInstance,
    AgentMessage,
    ApiToken,
    ArchiveImport,
    Attachment,
    DurableStream,
    Membership,
    MessageFeedback,
    NoticeChoices,
    OAuthGrant,
    PersonPreferences,
    Project,
    PushDevice,
    SavedPrompt,
    SignedInBrowser,
)
from fibers.models.schedules import Schedule
from sessions_app.models import ContextBlock, ContextChange, ContextEntry
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.models import ActionRecord, Extension, McpServer, PermissionRule
from tools_app.models.extensions import ExtensionVersion

CHUNK: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """One list of an export: a table, the way from it to the person, and the columns. `name`: of its file."""

    name: str
    model: type[Model]
    owner: str = "owner"
    fields: tuple[str, ...]


AGENT_MESSAGES: Final = AccountRecord(
    name="agent-messages",
    model=AgentMessage,
    owner="room__owner",
    fields=(
        "seq",
        "room_id",
        "sender",
        "target",
        "role",
        "content",
        "request_id",
        "in_reply_to",
        "late",
        "turn_id",
        "created_at",
        "processed_at",
    ),
)
RECORDS: Final = (
    AccountRecord(
        name="conversations",
        model=AgentInstance,
        fields=(
            "id",
            "parent_id",
            "agent",
            "name",
            "title",
            "session_id",
            "model_choice",
            "created_at",
            "active_at",
            "archived_at",
            "pinned_at",
            "is_temporary",
            "project_id",
        ),
    ),
    AGENT_MESSAGES,
    AccountRecord(
        name="projects",
        model=Project,
        fields=("id", "name", "colour", "instructions", "agent", "created_at", "updated_at"),
    ),
    AccountRecord(
        name="files",
        model=Attachment,
        fields=("id", "instance_id", "name", "media_type", "byte_size", "sha256", "created_at"),
    ),
    AccountRecord(
        name="memory",
        model=ContextBlock,
        fields=("label", "content", "description", "max_tokens", "updated_at"),
    ),
    AccountRecord(
        name="memory-entries",
        model=ContextEntry,
        fields=("label", "key", "title", "description", "content", "updated_at"),
    ),
    AccountRecord(
        name="memory-changes",
        model=ContextChange,
        fields=("subject", "action", "before", "after", "via", "created_at"),
    ),
    AccountRecord(
        name="preferences",
        model=PersonPreferences,
        owner="user",
        fields=("name", "language", "zone", "theme", "text_size", "about_me", "how_to_answer", "read_by"),
    ),
    AccountRecord(
        name="prompts",
        model=SavedPrompt,
        owner="user",
        fields=("name", "text", "created_at", "updated_at"),
    ),
    AccountRecord(
        name="feedback",
        model=MessageFeedback,
        owner="user",
        fields=("instance_id", "message_id", "is_good", "reason", "created_at", "updated_at"),
    ),
    AccountRecord(
        name="notices",
        model=NoticeChoices,
        owner="user",
        fields=("decision", "answer", "schedule", "quiet_from", "quiet_until", "zone"),
    ),
    AccountRecord(
        name="devices",
        model=PushDevice,
        owner="user",
        fields=("name", "language", "origin", "created_at"),
    ),
    AccountRecord(
        name="rules",
        model=PermissionRule,
        fields=("level", "scope", "action", "key", "pattern", "position", "created_at", "expires_at"),
    ),
    AccountRecord(
        name="tokens",
        model=ApiToken,
        owner="user",
        fields=("name", "prefix", "scopes", "created_at", "used_at", "expires_at", "revoked_at"),
    ),
    AccountRecord(
        name="programs",
        model=OAuthGrant,
        owner="user",
        fields=("client__name", "agent", "scopes", "created_at", "used_at", "revoked_at"),
    ),
    AccountRecord(
        name="browsers",
        model=SignedInBrowser,
        owner="user",
        fields=("browser", "system", "created_at", "seen_at"),
    ),
    AccountRecord(
        name="schedules",
        model=Schedule,
        fields=("scope", "title", "kind", "spec", "zone", "payload", "status", "next_at", "created_at"),
    ),
    AccountRecord(
        name="servers",
        model=McpServer,
        fields=("name", "scope", "instance_id", "transport", "url", "is_enabled", "created_at"),
    ),
    AccountRecord(
        name="extensions",
        model=Extension,
        fields=("name", "level", "scope", "enabled", "number", "granted", "created_at", "updated_at"),
    ),
    AccountRecord(
        name="extension-versions",
        model=ExtensionVersion,
        owner="extension__owner",
        fields=("extension__name", "number", "manifest", "source", "via", "created_at"),
    ),
    AccountRecord(
        name="actions",
        model=ActionRecord,
        fields=("scope", "action", "key", "input", "output", "status", "created_at", "settled_at"),
    ),
    AccountRecord(
        name="memberships",
        model=Membership,
        owner="user",
        fields=("instance_id", "role", "created_at", "revoked_at"),
    ),
    AccountRecord(
        name="imports",
        model=ArchiveImport,
        fields=("name", "byte_size", "agent", "report", "created_at"),
    ),
    AccountRecord(
        name="streams",
        model=DurableStream,
        fields=("path", "content_type", "tail", "created_at", "used_at", "closed_at", "deleted_at"),
    ),
)
_PERSON: Final = ("first_name", "last_name", "date_joined", "last_login")


def person_of(user_id: Any) -> JSONObject:
    """The account itself, without the password's hash."""
    model = get_user_model()
    user = model.objects.get(pk=user_id)
    found = {"name": user.get_username(), "email": getattr(user, model.get_email_field_name(), "")}
    return found | {name: getattr(user, name) for name in _PERSON if hasattr(user, name)}


def rows_of(record: AccountRecord, user_id: Any, **narrower: Any) -> Iterator[JSONObject]:
    """The rows of one list as JSON, a page at a time. `narrower`: further conditions."""
    rows = record.model._default_manager.filter(**{record.owner: user_id}, **narrower).order_by("pk")
    return map(plain, rows.values(*record.fields).iterator(chunk_size=CHUNK))


def plain(values: JSONObject) -> JSONObject:
    """Values of columns as JSON."""
    return {key: value.isoformat() if hasattr(value, "isoformat") else value for key, value in values.items()}
