"""API schemas of sessions, forks and exports."""

from ninja import Field, Schema

from chat.conversations.importing import ImportResult
from chat.http.api.schemas.common import Id, Input, Title
from chat.http.api.schemas.from_values import Amount, shows
from chat.operations.deleted import DeletedConversation
from sessions_app.core.messages.session_facts import SessionFacts
from thinkproject.kernel.jsonvalue import JSONObject


class SessionIn(Input):
    """A new history inside a conversation."""

    name: Title = ""


class SessionPatch(Input):
    """Changes of a session. With `auto_compaction: null` its agent and the site decide about summaries."""

    name: Title | None = None
    pinned: bool | None = None
    archived: bool | None = None
    auto_compaction: bool | None = None


class SessionChoiceIn(Input):
    """The session to make current."""

    session_id: Id


@shows(SessionFacts)
class SessionOut(Schema):
    """A session of a conversation. `is_current`: new turns go to it; `message_count`: of its active path.

    `summary`: a summary for people; empty until one is written.
    """

    is_current: bool
    message_count: int
    max_cost: Amount | None


@shows(DeletedConversation)
class DeletedOut(Schema):
    """A deleted conversation that can be restored until `ends_at`."""


class ForkIn(Input):
    """The origin of a new conversation: a message of the current session, or of `session_id`."""

    message_id: Id
    session_id: Id | None = None
    title: Title = ""


class EditedAnswerIn(Input):
    """Another text in the place of an answer, as a sibling of it.

    `continue_from_here`: the conversation goes on from the new one; what follows the old one stays on its branch.
    Otherwise what is shown stays as it is, unless nothing follows.
    """

    parts: list[JSONObject] = Field(min_length=1, max_length=200)
    continue_from_here: bool = False


class EditedAnswerOut(Schema):
    """The new sibling, and where the path that is shown ends now."""

    message_id: str
    leaf_id: str | None


@shows(ImportResult)
class ImportedOut(Schema):
    """Result of an import. `left_out`: labels of blocks that users may not write in this agent."""
