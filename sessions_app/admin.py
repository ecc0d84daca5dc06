"""Sessions and messages in the admin: to read and to remove. Nothing is edited, and no list counts a whole table."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from typing_extensions import override

from sessions_app import services
from sessions_app.conversation_view import conversation_view
from sessions_app.core.messages import is_message_id
from sessions_app.models import Message, Session
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions; the page of one shows its conversation, newest messages first to hand, with its branches."""

    list_display = ("id", "name", "owner", "scope", "created_at", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=scope", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = "The exact id, scope or owner, or how the name begins."
    ordering = ("-id",)
    can_delete = True
    fields = ("id", "name", "owner", "scope", "forked", "change_seq", "created_at", "updated_at")
    readonly_fields = fields

    @admin.display(description="forked from")
    def forked(self, row: Session) -> str:
        """The session that this one goes on from."""
        if row.parent_id is None:
            return "-"
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:think_sessions_session_change", args=[row.parent_id]), row.parent_id
        )

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
        if self.has_view_permission(request):
            context["conversation"] = conversation_view(
                object_id, branch=_id_from(request, "branch"), before=_id_from(request, "before")
            )
        return super().change_view(request, object_id, form_url, context)

    @override
    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[Any]]:
        """Say which sessions go, without loading their messages to list them."""
        names = [f"{row} with all its messages" for row in objs]
        return names, {self.opts.verbose_name_plural: len(names)}, set(), []

    @override
    def delete_model(self, request: HttpRequest, obj: Session) -> None:
        """Delete a session; what a fork reaches stays."""
        services.delete_session(obj.pk)

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Delete the chosen sessions; what a fork reaches stays."""
        for session_id in queryset.values_list("pk", flat=True):
            services.delete_session(session_id)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Single messages, found by an exact id."""

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
            urlencode({"branch": row.message_id}),
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


def _id_from(request: HttpRequest, name: str) -> str:
    value = request.GET.get(name, "")
    return value if is_message_id(value) else ""
