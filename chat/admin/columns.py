"""Columns that the chat's lists share: a title first, then who, when, in what state, at what cost; all escaped."""

from typing import Any, Final

from django.db.models import BooleanField, CharField, Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.agent import registry
from chat.agent.appearance import appearance_of
from chat.models import AgentInstance, Turn
from chat.turns.state.status import TurnStatus, turn_status
from thinkproject.kernel.read_only_admin import NOTHING, column
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

Text = str | Promise

ASKED_AGAIN: Final = _("The question is asked again. The new answer will stand beside the old one.")

ASKED: Final = _("Waits for a decision")

TITLE_CHARS: Final = 80
MADE_UP: Final = "chat_"
"""How names begin that no person gave (`new_instance_name`)."""

RECENT_TURNS: Final = 50
"""The newest turn of a conversation is looked for among so many positions: added messages take positions, too."""

STATUS_WORDS: Final[dict[TurnStatus, Text]] = {
    TurnStatus.PENDING: _("Waiting"),
    TurnStatus.RUNNING: _("Running"),
    TurnStatus.COMPLETED: _("Completed"),
    TurnStatus.ABORTED: _("Stopped"),
    TurnStatus.SKIPPED: _("Skipped"),
    TurnStatus.ERROR: _("Failed"),
}


def reads_messages(request: HttpRequest) -> bool:
    """Whether this user may read message content. A provisional title counts: it quotes the first message."""
    return request.user.has_perm("think_sessions.view_message")


def title_of(instance: AgentInstance, *, reads: bool) -> str:
    """A conversation's title, or its name; what quotes a message only for those who may read messages."""
    return title_from(instance.title, instance.name, is_provisional=instance.title_is_provisional, reads=reads)


def title_from(title: str, name: str, *, is_provisional: bool, reads: bool) -> str:
    """Do the same from the columns."""
    if title and (reads or not is_provisional):
        return shortened(title)
    return str(_("Untitled")) if name.startswith(MADE_UP) else shortened(name)


def shortened(text: str, limit: int = TITLE_CHARS) -> str:
    """A text on one line, cut to a width that a list can show."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def agent_title(name: str) -> str:
    """An agent as people know it; the route name of one that is not served any more."""
    return appearance_of(registry.get_agent_class(name)).title if registry.is_served(name) else name


def state(kind: str, label: Text, note: str = "") -> SafeString:
    """A state in words; `kind` chooses its colour, which says nothing that the words do not."""
    shown = format_html('<span class="think-state think-state-{}">{}</span>', kind, label)
    return format_html('{}<br><span class="think-note-small">{}</span>', shown, note) if note else shown


def noted(text: Text, note: Text) -> SafeString | str:
    """A value with a smaller one below it."""
    if not note:
        return str(text) if not isinstance(text, SafeString) else text
    return format_html('{}<br><span class="think-note-small">{}</span>', text, note)


def turn_state(status: str, reason: str, note: str = "", *, is_asked: bool = False) -> SafeString:
    """The state of a turn, from its fiber's columns. `is_asked`: one of its calls waits for a decision."""
    if is_asked:
        return state("asked", ASKED)
    found = turn_status(status, reason)
    return state(found.value, STATUS_WORDS[found], note)


def tokens(given: int, made: int) -> str:
    """Tokens in and out."""
    return str(_("%(given)s in, %(made)s out")) % {"given": f"{given:,}", "made": f"{made:,}"}


def linked(view: str, key: Any, text: Text, query: str = "") -> SafeString | str:
    """Link to the page of a row, or just its text where that table has no page in this admin."""
    if key is None:
        return NOTHING
    try:
        url = reverse(f"admin:{view}_change", args=[key])
    except NoReverseMatch:
        return str(text)
    return format_html('<a href="{}{}">{}</a>', url, query, text)


def with_reader(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """Note in each row whether titles that quote a message may be shown; a column does not know who asks."""
    annotated: QuerySet[Any] = rows.annotate(reads=Value(reads_messages(request), output_field=BooleanField()))
    return annotated


def of_present(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Leave out rows of deleted conversations: by the column that names one, `instance`, `scope`, or its history's."""
    names = {field.name for field in rows.model._meta.concrete_fields}
    paths = {"instance": "instance", "scope": "scope", "session": "session__scope"}
    path = next((path for name, path in paths.items() if name in names), None)
    if path is None:
        return rows
    return rows.exclude(**{f"{path}__in": AgentInstance.everything.filter(deleted_at__isnull=False).values("pk")})


def with_newest_turn(rows: QuerySet[AgentInstance]) -> QuerySet[AgentInstance]:
    """Annotate each conversation with the state of its newest turn: a few index probes a row."""
    newest = Turn.objects.filter(instance=OuterRef("pk"), position__gt=OuterRef("turn_count") - RECENT_TURNS)
    newest = newest.order_by("-position")
    return rows.annotate(
        turn_status=Subquery(newest.values("fiber__status")[:1]),
        turn_reason=Subquery(newest.values("fiber__reason")[:1]),
        turn_error=Subquery(newest.values("error_code")[:1]),
    )


_ABOUT: Final = {
    "about_id": "pk",
    "about_title": "title",
    "about_name": "name",
    "about_agent": "agent",
    "about_provisional": "title_is_provisional",
}


def of_conversation(scope: str, turns: QuerySet[Turn] | None = None) -> dict[str, Any]:
    """Annotations with the title of the conversation that a column names, for tables without a key to it.

    `turns`: the turn of a row, whose conversation goes before.
    """
    rows = AgentInstance.objects.filter(pk=OuterRef(scope))
    if turns is None:
        return {name: Subquery(rows.values(column)[:1]) for name, column in _ABOUT.items()}
    return {
        name: Coalesce(
            Subquery(turns.values(f"instance__{column}")[:1]),
            Subquery(rows.values(column)[:1]),
            output_field=BooleanField() if name == "about_provisional" else CharField(),
        )
        for name, column in _ABOUT.items()
    }


def asked_in(turn: str) -> Exists:
    """Whether a call of the turn that a column names waits for a person's decision."""
    return Exists(ToolCallRecord.objects.filter(turn_id=OuterRef(turn), status=CallStatus.ASKED))


def about(row: Any, *, reads: bool) -> str:
    """The title of the conversation that `of_conversation` found; a dash where there is none."""
    if row.about_id is None:
        return NOTHING
    return title_from(row.about_title, row.about_name, is_provisional=row.about_provisional, reads=reads)


def about_link(row: Any) -> SafeString | str:
    """Link to that conversation."""
    return linked("think_chat_agentinstance", row.about_id, about(row, reads=row.reads))


CONVERSATION: Final = column(_("conversation"), about_link)
"""The column of rows that `of_conversation` annotates."""
