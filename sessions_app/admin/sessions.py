"""Sessions and messages in the admin: to read, to search and to remove. No message is edited, no list counts a table.

Summaries, context blocks and entries are in `admin_context.py`.
"""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from typing_extensions import override

from sessions_app.admin.context import BlockAdmin, ChangeAdmin, CompactionAdmin, EntryAdmin
from sessions_app.admin.conversation_view import conversation_view
from sessions_app.compactions.summaries import find_summary
from sessions_app.core.messages.messages import is_message_id
from sessions_app.errors import CursorInvalid
from sessions_app.messages import services
from sessions_app.models import Compaction, ContextBlock, ContextChange, ContextEntry, Message, Session
from sessions_app.search.query import SearchHit, SearchPage, search, search_everything
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin

admin.site.register(Compaction, CompactionAdmin)
admin.site.register(ContextBlock, BlockAdmin)
admin.site.register(ContextEntry, EntryAdmin)
admin.site.register(ContextChange, ChangeAdmin)


class ArchivedFilter(admin.SimpleListFilter):
    """Rows that are archived, or not."""

    title = "archived"
    parameter_name = "archived"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return both."""
        return [("1", "Yes"), ("0", "No")]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset if self.value() is None else queryset.filter(archived_at__isnull=self.value() == "0")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions; the page of one shows its conversation, newest messages first to hand, with its branches."""

    list_display = ("id", "name", "owner", "scope", "model_name", "cost", "created_at", "updated_at")
    list_filter = (ArchivedFilter, "updated_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=scope", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = "The exact id, scope or owner, or how the name begins."
    ordering = ("-id",)
    can_delete = True
    _first = (
        *("id", "name", "owner", "scope", "forked", "updated_at", "cost", "about", "system_prompt_text"),
        "read_besides",
    )
    _more = (
        *("source", "end_reason", "change_seq", "created_at", "pinned_at", "archived_at", "model_name", "input_tokens"),
        *("output_tokens", "reasoning_tokens", "cached_tokens", "max_cost", "compacts_itself"),
    )
    fieldsets = ((None, {"fields": _first}), ("More", {"fields": _more, "classes": ("collapse",)}))
    readonly_fields = (*_first, *_more)

    @admin.display(description="forked from")
    def forked(self, row: Session) -> str:
        """The session that this one goes on from."""
        if row.parent_id is None:
            return "-"
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:think_sessions_session_change", args=[row.parent_id]), row.parent_id
        )

    @admin.display(description="automatic compaction")
    def compacts_itself(self, row: Session) -> str:
        """The model and limits chosen for the session."""
        return {True: "on", False: "off", None: "as its agent and the site say"}[row.auto_compaction]

    @admin.display(description="summary for people")
    def about(self, row: Session) -> str:
        """The summary and its author."""
        found = find_summary(row.pk)
        if found is None:
            return "-"
        return f"{found.text} ({found.model_name or 'a person'}, {date_format(found.written_at, 'DATETIME_FORMAT')})"

    @admin.display(description="system prompt")
    def system_prompt_text(self, row: Session) -> str:
        """The prompt that is kept for the next turn."""
        if row.system_prompt is None:
            return "none kept: the next turn renders it"
        fold = (
            '<details><summary>Kept for the next turn</summary><pre class="think-block" tabindex="0">{}</pre></details>'
        )
        return format_html(fold, row.system_prompt)

    @admin.display(description="models also read")
    def read_besides(self, row: Session) -> str:
        """Links to the session's related objects."""
        links = [
            (reverse(f"admin:think_sessions_{name}_changelist"), row.pk, title)
            for name, title in (
                ("compaction", "compactions"),
                ("contextblock", "context blocks"),
                ("contextentry", "context entries"),
                ("contextchange", "who changed them"),
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
        if self.has_view_permission(request) and Session.objects.filter(pk=object_id).exists():
            context["conversation"] = conversation_view(
                object_id,
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
        names = [f"{row} with all its messages" for row in objs]
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

    q = forms.CharField(label="Words", max_length=500, strip=True)
    owner = forms.CharField(label="Of this person", max_length=200, required=False)
    session = forms.CharField(label="In this session", max_length=64, required=False)

    def clean_owner(self) -> Any:
        """Find the person."""
        name = self.cleaned_data["owner"]
        if not name:
            return None
        found = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: name}).first()
        if found is None:
            raise forms.ValidationError("There is no user of this name.")
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

    list_display = ("message_id", "role", "session", "depth", "byte_size", "turn_id", "created_at")
    list_select_related = ("session",)
    search_fields = ("=message_id",)
    search_help_text = "The exact id of a message, a turn or a session."
    ordering = ("-id",)
    fields = (
        "message_id",
        "role",
        "in_conversation",
        "depth",
        "byte_size",
        "turn_id",
        "change_seq",
        "placed_at",
        "created_at",
        "updated_at",
    )
    readonly_fields = fields

    @admin.display(description="conversation")
    def in_conversation(self, row: Message) -> str:
        """Link to the conversation around the message."""
        if row.session_id is None:
            return "its session is gone, a fork still reaches it"
        return format_html(
            '<a href="{}?{}">{}</a>',
            reverse("admin:think_sessions_session_change", args=[row.session_id]),
            urlencode({"at": row.message_id}),
            row.session_id,
        )

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """Leave the content out: fifty rows of a list may hold fifty megabytes."""
        return super().get_queryset(request).defer("content")

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
        """Add the search."""
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
            "title": "Search in messages",
            "opts": self.opts,
            "form": form,
            "page": page,
            "problem": page.problem if page else problem,
            "hits": _shown_hits(page.hits) if page else [],
            "next": urlencode({**rest, "cursor": page.next_cursor}) if page and page.next_cursor else "",
        }
        return TemplateResponse(request, "admin/think_sessions/message/search.html", context)


def _shown_hits(hits: list[SearchHit]) -> list[dict[str, Any]]:
    sessions = Session.objects.select_related("owner").in_bulk([hit.session_id for hit in hits])
    return [{"hit": hit, "session": sessions.get(hit.session_id), "pieces": _pieces(hit)} for hit in hits]


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
