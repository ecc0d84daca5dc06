"""Histories and messages in the admin: to read, to search and to remove. No list counts a table.

Summaries, context blocks and entries are in `context.py`; messages are edited where their conversation is known.
"""

from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from sessions_app.admin.changes import ChangeAdmin
from sessions_app.admin.context import BlockAdmin, CompactionAdmin, EntryAdmin
from sessions_app.admin.conversation_view import SPEAKERS, conversation_view
from sessions_app.admin.message_start import START_CHARS, beginning_of
from sessions_app.compactions.summaries import find_summary
from sessions_app.core.messages.messages import is_message_id
from sessions_app.errors import CursorInvalid
from sessions_app.messages import services
from sessions_app.models import Compaction, ContextBlock, ContextChange, ContextEntry, Message, Session
from sessions_app.search.query import SearchHit, SearchPage, search, search_everything
from thinkproject.kernel.read_only_admin import (
    NOTHING,
    ReadOnlyAdmin,
    amount,
    choice_filter,
    column,
    moment,
    moment_text,
)

admin.site.register(Compaction, CompactionAdmin)
admin.site.register(ContextBlock, BlockAdmin)
admin.site.register(ContextEntry, EntryAdmin)
admin.site.register(ContextChange, ChangeAdmin)


ArchivedFilter = choice_filter(
    _("archived"),
    "archived",
    {"1": (_("Archived"), Q(archived_at__isnull=False)), "0": (_("Not archived"), Q(archived_at=None))},
)


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Histories; the page of one shows its messages, newest page first, with its branches."""

    list_display = ("title", "owner", "kept", "by_model", "spent", "created", "updated")
    list_filter = (ArchivedFilter, "updated_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=scope", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact id, scope or owner, or how the name begins.")
    ordering = ("-id",)
    can_delete = True
    _first = (
        *("title", "owner", "conversation", "forked", "updated_at", "cost", "about", "system_prompt_text"),
        "read_besides",
    )
    _more = (
        *("id", "scope", "source", "end_reason", "change_seq", "created_at", "pinned_at", "archived_at", "model_name"),
        *("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "max_cost", "compacts_itself"),
    )
    fieldsets = ((None, {"fields": _first}), (_("More"), {"fields": _more, "classes": ("collapse",)}))
    readonly_fields = (*_first, *_more)

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    @admin.display(description=_("history"), ordering="name")
    def title(self, row: Session) -> str:
        """Its name, or that of the conversation where the chat knows it."""
        return self.title_of(row)

    def title_of(self, row: Session) -> str:
        """The name of a history. The chat, which knows whose it is, gives the conversation's."""
        return row.name or str(_("Untitled (%(id)s)")) % {"id": row.pk}

    @override
    def page_title(self, row: Session) -> str:
        return self.title_of(row)

    @admin.display(description=_("conversation"))
    def conversation(self, row: Session) -> str:
        """The conversation that it belongs to, where that is known."""
        return self.conversation_of(row)

    def conversation_of(self, row: Session) -> str:
        """The scope, which is its creator's. The chat gives a link to the conversation."""
        return row.scope or NOTHING

    @admin.display(description=_("kept"))
    def kept(self, row: Session) -> str:
        """Whether it is pinned or archived."""
        if row.archived_at is not None:
            return str(_("Archived"))
        return str(_("Pinned")) if row.pinned_at is not None else NOTHING

    by_model = column(_("model"), lambda row: row.model_name.rpartition("/")[2] or NOTHING, ordering="model_name")
    spent = column(_("cost"), lambda row: amount(row.cost), ordering="cost")
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")
    updated = column(_("changed"), lambda row: moment(row.updated_at), ordering="updated_at")

    @admin.display(description=_("forked from"))
    def forked(self, row: Session) -> str:
        """The session that this one goes on from."""
        if row.parent_id is None:
            return NOTHING
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:think_sessions_session_change", args=[row.parent_id]), row.parent_id
        )

    compacts_itself = column(
        _("summaries by themselves"),
        lambda row: str(
            {True: _("On"), False: _("Off"), None: _("As its agent and the site say")}[row.auto_compaction]
        ),
    )

    @admin.display(description=_("summary for people"))
    def about(self, row: Session) -> str:
        """The summary and its author."""
        found = find_summary(row.pk)
        if found is None:
            return NOTHING
        by, at = found.model_name or str(_("a person")), moment_text(found.written_at)
        return str(_("%(text)s (%(by)s, %(at)s)")) % {"text": found.text, "by": by, "at": at}

    @admin.display(description=_("system prompt"))
    def system_prompt_text(self, row: Session) -> str:
        """The prompt that is kept for the next turn."""
        if row.system_prompt is None:
            return str(_("None kept: the next turn renders it."))
        fold = '<details><summary>{}</summary><pre class="think-block" tabindex="0">{}</pre></details>'
        return format_html(fold, _("Kept for the next turn"), row.system_prompt)

    @admin.display(description=_("models also read"))
    def read_besides(self, row: Session) -> str:
        """Links to the session's related objects."""
        links = [
            (reverse(f"admin:think_sessions_{name}_changelist"), row.pk, title)
            for name, title in (
                ("compaction", _("summaries")),
                ("contextblock", _("context blocks")),
                ("contextentry", _("context entries")),
                ("contextchange", _("who changed them")),
            )
        ]
        return format_html_join(" · ", '<a href="{}?session__id__exact={}">{}</a>', links)

    @override
    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a page of the conversation below the fields."""
        context = dict(extra_context or {})
        session_id = unquote(object_id)
        if self.has_view_permission(request) and Session.objects.filter(pk=session_id).exists():
            context["conversation"] = conversation_view(
                session_id,
                branch=_id_from(request, "branch"),
                before=_id_from(request, "before"),
                at=_id_from(request, "at"),
            )
        return super().change_view(request, object_id, form_url, context)

    @override
    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[Any]]:
        """List the sessions to delete, without loading their messages."""
        names = [str(_("%(history)s with all its messages")) % {"history": self.title_of(row)} for row in objs]
        return names, {self.opts.verbose_name_plural: len(names)}, set(), []

    @override
    def delete_model(self, request: HttpRequest, obj: Session) -> None:
        """Delete a session; messages that a fork shares stay."""
        services.delete_session(obj.pk)

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Delete the selected sessions; messages that a fork shares stay."""
        for session_id in queryset.values_list("pk", flat=True):
            services.delete_session(session_id)


class SearchForm(forms.Form):
    """The search form: query and scope."""

    q = forms.CharField(label=_("Words"), max_length=500, strip=True)
    owner = forms.CharField(label=_("Of this person (user name)"), max_length=200, required=False)
    session = forms.CharField(label=_("In this history (id)"), max_length=64, required=False)

    def clean_owner(self) -> Any:
        """Find the person."""
        name = self.cleaned_data["owner"]
        if not name:
            return None
        found = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: name}).first()
        if found is None:
            raise forms.ValidationError(_("There is no user of this name."))
        return found

    def search(self, cursor: str) -> SearchPage:
        """Run the search. Errors: `CursorInvalid`."""
        data = self.cleaned_data
        if data["owner"] is None and not data["session"]:
            return search_everything(data["q"], cursor=cursor)
        owner_id = None if data["owner"] is None else data["owner"].pk
        return search(data["q"], session_id=data["session"] or None, owner_id=owner_id, cursor=cursor)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Single messages, found by an exact id; a page of its own finds them by their words."""

    list_display = ("beginning", "said_by", "conversation", "placed", "size", "created", "message_id")
    list_filter = ("created_at",)
    list_select_related = ("session",)
    search_fields = ("=message_id",)
    search_help_text = _("The exact id of a message, a turn or a history.")
    ordering = ("-id",)
    fields = (
        *("beginning", "said_by", "conversation", "in_conversation", "placed", "size", "created_at", "updated_at"),
        *("message_id", "turn_id", "depth", "change_seq"),
    )
    readonly_fields = fields

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    beginning = column(_("message"), lambda row: beginning_of(vars(row).get("start") or "") or str(_("Without text")))
    said_by = column(_("said by"), lambda row: str(SPEAKERS.get(row.role, row.role)), ordering="role")

    @admin.display(description=_("conversation"))
    def conversation(self, row: Message) -> str:
        """The title of what it is in."""
        return self.title_of(row)

    @override
    def page_title(self, row: Message) -> str:
        return str(self.beginning(row))

    def title_of(self, row: Message) -> str:
        """The name of its history. The chat gives the conversation's title."""
        return NOTHING if row.session is None else row.session.name or row.session.pk

    placed = column(
        _("place"), lambda row: str(_("Waits for its turn")) if row.placed_at is None else str(row.depth + 1)
    )
    size = column(_("size"), lambda row: filesizeformat(row.byte_size), ordering="byte_size")
    created = column(_("written"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("read it"))
    def in_conversation(self, row: Message) -> str:
        """Link to the conversation around the message."""
        if row.session_id is None:
            return str(_("Its history is gone; a fork still reaches it."))
        url = reverse("admin:think_sessions_session_change", args=[row.session_id])
        return format_html('<a href="{}?{}">{}</a>', url, urlencode({"at": row.message_id}), _("In its place"))

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """Leave the content out but for its beginning: fifty rows of a list may hold fifty megabytes."""
        rows: QuerySet[Message] = super().get_queryset(request)
        return rows.annotate(start=Substr("content", 1, START_CHARS)).defer("content")

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        """Look ids up by their indexes; nothing is scanned."""
        if not search_term:
            return queryset, False
        if not is_message_id(search_term):
            return queryset.none(), False
        found = Q(message_id=search_term) | Q(turn_id=search_term) | Q(session_id=search_term)
        return queryset.filter(found), False

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.search_view)
        return [path("search/", view, name="think_sessions_message_search"), *super().get_urls()]

    def search_view(self, request: HttpRequest) -> HttpResponse:
        """Search messages of people and agents, best hits first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = SearchForm(request.GET if "q" in request.GET else None)
        page, problem = None, ""
        if form.is_bound and form.is_valid():
            try:
                page = form.search(request.GET.get("cursor", ""))
            except CursorInvalid as error:
                problem = error.message
        rest = {name: value for name in form.fields if (value := request.GET.get(name, ""))}
        context = {
            **self.admin_site.each_context(request),
            "title": _("Search in messages"),
            "opts": self.opts,
            "form": form,
            "page": page,
            "problem": page.problem if page else problem,
            "hits": self.shown_hits(page.hits) if page else [],
            "next": urlencode({**rest, "cursor": page.next_cursor}) if page and page.next_cursor else "",
        }
        return TemplateResponse(request, "admin/think_sessions/message/search.html", context)

    def shown_hits(self, hits: list[SearchHit]) -> list[dict[str, Any]]:
        """Hits with the name of what they are in, and where they open."""
        sessions = Session.objects.select_related("owner").in_bulk([hit.session_id for hit in hits])
        return [
            {
                "hit": hit,
                "session": sessions.get(hit.session_id),
                "title": str(sessions.get(hit.session_id, hit.session_id)),
                "url": place_of(reverse("admin:think_sessions_session_change", args=[hit.session_id]), hit.message_id),
                "speaker": SPEAKERS.get(hit.role, hit.role),
                "pieces": _pieces(hit),
            }
            for hit in hits
        ]


def place_of(url: str, message_id: str, query: str = "") -> str:
    """The address of a conversation's page, opened at a message."""
    return f"{url}?{query}{urlencode({'at': message_id})}#message-{quote(message_id, safe='')}"


def _pieces(hit: SearchHit) -> list[tuple[str, bool]]:
    """Cut a snippet where its highlights begin and end: texts, and whether each is one."""
    pieces, at = [], 0
    for start, end in hit.highlights:
        pieces += [(hit.snippet[at:start], False), (hit.snippet[start:end], True)]
        at = end
    return [piece for piece in [*pieces, (hit.snippet[at:], False)] if piece[0]]


def _id_from(request: HttpRequest, name: str) -> str:
    value = request.GET.get(name, "")
    return value if is_message_id(value) else ""
