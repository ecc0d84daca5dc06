"""Durable streams and their subscriptions in the admin: whose, how large, how far; nothing of what is in them."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked, shortened
from chat.durable_streams.finding import remove_stream
from chat.durable_streams.waking import MAX_FAILURES
from chat.models import DurableStream, StreamSubscription
from sessions_app.admin.confirming import confirmation
from thinkproject.kernel.read_only_admin import NOTHING, column, moment

OWNER = f"=owner__{get_user_model().USERNAME_FIELD}"


@admin.register(DurableStream)
class DurableStreamAdmin(ActionAdmin):
    """Streams, newest first."""

    list_display = ("title", "owner", "content_type", "size", "created", "ends", "closed")
    list_filter = ("created_at", "content_type")
    list_select_related = ("owner",)
    search_fields = ("^path", OWNER)
    search_help_text = _("How the path begins, or the exact owner.")
    fields = (
        *("path", "owner", "content_type", "tail", "size", "source", "fork_at"),
        *("created", "ttl_seconds", "ends", "closed", "deleted"),
    )
    ordering = ("-id",)
    actions = ("delete_streams",)

    title = column(_("path"), lambda row: shortened(row.path), ordering="path")
    size = column(_("size"), lambda row: filesizeformat(row.kept_bytes), ordering="kept_bytes")
    source = column(
        _("fork of"), lambda row: linked("think_chat_durablestream", row.forked_from_id, str(row.forked_from or ""))
    )
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")
    ends = column(
        _("expires"), lambda row: NOTHING if row.expires_at is None else moment(row.expires_at), ordering="expires_at"
    )
    closed = column(
        _("closed"), lambda row: NOTHING if row.closed_at is None else moment(row.closed_at), ordering="closed_at"
    )
    deleted = column(_("deleted"), lambda row: NOTHING if row.deleted_at is None else moment(row.deleted_at))

    @admin.action(description=_("Delete"), permissions=["remove"])
    def delete_streams(self, request: HttpRequest, queryset: QuerySet[DurableStream]) -> HttpResponse | None:
        """Delete the selected streams, as their owners would."""
        chosen = list(queryset.filter(deleted_at=None).select_related("owner"))
        asking = confirmation(
            self,
            request,
            action="delete_streams",
            title=_("Delete these streams?"),
            consequence=_("What is in them is gone, except where forks need it."),
            rows=[(row.pk, f"{row.path}, {row.owner}") for row in chosen],
            button=_("Delete"),
        )
        if asking is not None:
            return asking
        for row in chosen:
            with transaction.atomic():
                held = DurableStream.objects.select_for_update().filter(pk=row.pk, deleted_at=None).first()
                if held is not None:
                    self.log_change(request, row, str(_("Deleted.")))
                    remove_stream(held)
        text = ngettext("%(count)d stream was deleted.", "%(count)d streams were deleted.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)
        return None


@admin.register(StreamSubscription)
class StreamSubscriptionAdmin(ActionAdmin):
    """Subscriptions, newest first. Of a webhook's address only the host is shown: the rest may be a secret."""

    list_display = ("name", "owner", "kind", "host", "generation", "leased_until", "condition")
    list_filter = ("kind", "created_at")
    list_select_related = ("owner",)
    search_fields = ("^name", OWNER)
    search_help_text = _("How the name begins, or the exact owner.")
    fields = (
        *("name", "owner", "kind", "pattern", "host", "wake_path", "lease_ms", "description", "generation", "holder"),
        *("leased_until", "followed", "failures", "error_text", "condition", "created_at"),
    )
    ordering = ("-id",)
    actions = ("delete_subscriptions",)

    host = column(_("sent to"), lambda row: row.url.split("/")[2] if row.url else NOTHING)
    condition = column(_("state"), lambda row: str(_("Given up") if row.failures >= MAX_FAILURES else _("Active")))
    followed = column(_("streams"), lambda row: str(row.links.count()))

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out what the pages do not show."""
        return super().get_queryset(request).defer("configuration")

    @admin.action(description=_("Delete"), permissions=["remove"])
    def delete_subscriptions(self, request: HttpRequest, queryset: QuerySet[StreamSubscription]) -> HttpResponse | None:
        """Delete the selected subscriptions."""
        chosen = list(queryset.select_related("owner"))
        asking = confirmation(
            self,
            request,
            action="delete_subscriptions",
            title=_("Delete these subscriptions?"),
            consequence=_("Their workers are not woken any more. The streams stay."),
            rows=[(row.pk, f"{row.name}, {row.owner}") for row in chosen],
            button=_("Delete"),
        )
        if asking is not None:
            return asking
        for row in chosen:
            self.log_change(request, row, str(_("Deleted.")))
            row.delete()
        text = ngettext("%(count)d subscription was deleted.", "%(count)d subscriptions were deleted.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)
        return None
