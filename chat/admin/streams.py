"""The cold log in the admin: what was streamed, for those who look into a replay."""

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Length
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked, title_from
from chat.models import StreamSegment, Turn
from chat.streams.logs.database_log import prune_segments
from thinkproject.kernel.read_only_admin import column, moment


@admin.register(StreamSegment)
class StreamSegmentAdmin(ActionAdmin):
    """Records of the cold log, newest first."""

    list_display = ("title", "turn", "offsets", "size", "created")
    list_filter = ("created_at",)
    search_fields = ("=stream",)
    search_help_text = _("The exact id of a turn.")
    fields = ("title", "turn", "first_offset", "last_offset", "size", "created_at", "data")
    ordering = ("-id",)
    actions = ("prune_old",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[StreamSegment]:
        """Sizes come from the database; the chunks themselves are read in the detail only."""
        rows: QuerySet[StreamSegment] = super().get_queryset(request)
        turns = Turn.objects.filter(pk=OuterRef("stream"))
        columns = {"about_title": "title", "about_name": "name", "about_provisional": "title_is_provisional"}
        about = {name: Subquery(turns.values(f"instance__{column}")[:1]) for name, column in columns.items()}
        return rows.annotate(size_chars=Length("data"), **about).defer("data")

    @admin.display(description=_("conversation"))
    def title(self, row: StreamSegment) -> str:
        """The conversation's title."""
        found = vars(row)
        if found["about_name"] is None:
            return row.stream
        return title_from(
            found["about_title"], found["about_name"], is_provisional=found["about_provisional"], reads=found["reads"]
        )

    turn = column(_("turn"), lambda row: linked("think_chat_turn", row.stream, row.stream))
    offsets = column(_("records"), lambda row: f"{row.first_offset:,}–{row.last_offset:,}", ordering="first_offset")
    size = column(_("characters"), lambda row: f"{int(getattr(row, 'size_chars', 0)):,}", ordering="size_chars")
    created = column(_("written"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.action(
        description=_("Prune what is past its retention (the selection does not matter)"), permissions=["remove"]
    )
    def prune_old(self, request: HttpRequest, queryset: QuerySet[StreamSegment]) -> None:  # noqa: ARG002 - policy decides
        """Remove segments of turns that ended long enough ago."""
        self.message_user(request, str(_("%(count)d removed.")) % {"count": prune_segments()}, messages.SUCCESS)
