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
    owner: str
    fields: tuple[str, ...]


def _record(name: str, model: type[Model], columns: str, *, owner: str = "owner") -> AccountRecord:
    return AccountRecord(name=name, model=model, owner=owner, fields=tuple(columns.split()))


AGENT_MESSAGES: Final = _record(
    "agent-messages",
    AgentMessage,
    "seq room_id sender target role content request_id in_reply_to late turn_id created_at processed_at",
    owner="room__owner",
)
RECORDS: Final = (
    _record(
        "conversations",
        AgentInstance,
        "id parent_id agent name title session_id model_choice created_at active_at archived_at pinned_at "
        "is_temporary project_id",
    ),
    AGENT_MESSAGES,
    _record("projects", Project, "id name colour instructions agent created_at updated_at"),
    _record("files", Attachment, "id instance_id name media_type byte_size sha256 created_at"),
    _record("memory", ContextBlock, "label content description max_tokens updated_at"),
    _record("memory-entries", ContextEntry, "label key title description content updated_at"),
    _record("memory-changes", ContextChange, "subject action before after via created_at"),
    _record(
        "preferences",
        PersonPreferences,
        "name language zone theme text_size about_me how_to_answer read_by",
        owner="user",
    ),
    _record("prompts", SavedPrompt, "name text created_at updated_at", owner="user"),
    _record("feedback", MessageFeedback, "instance_id message_id is_good reason created_at updated_at", owner="user"),
    _record("notices", NoticeChoices, "decision answer schedule quiet_from quiet_until zone", owner="user"),
    _record("devices", PushDevice, "name language origin created_at", owner="user"),
    _record("rules", PermissionRule, "level scope action key pattern position created_at expires_at"),
    _record("tokens", ApiToken, "name prefix scopes created_at used_at expires_at revoked_at", owner="user"),
    _record("programs", OAuthGrant, "client__name agent scopes created_at used_at revoked_at", owner="user"),
    _record("browsers", SignedInBrowser, "browser system created_at seen_at", owner="user"),
    _record("schedules", Schedule, "scope title kind spec zone payload status next_at created_at"),
    _record("servers", McpServer, "name scope instance_id transport url is_enabled created_at"),
    _record("extensions", Extension, "name level scope enabled number granted created_at updated_at"),
    _record(
        "extension-versions",
        ExtensionVersion,
        "extension__name number manifest source via created_at",
        owner="extension__owner",
    ),
    _record("actions", ActionRecord, "scope action key input output status created_at settled_at"),
    _record("memberships", Membership, "instance_id role created_at revoked_at", owner="user"),
    _record("imports", ArchiveImport, "name byte_size agent report created_at"),
    _record("streams", DurableStream, "path content_type tail created_at used_at closed_at deleted_at"),
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
