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
from thinkproject.kernel.read_only_admin import NOTHING, moment

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

    @admin.display(description=_("path"), ordering="path")
    def title(self, row: DurableStream) -> str:
        """The path below its owner."""
        return shortened(row.path)

    @admin.display(description=_("size"), ordering="kept_bytes")
    def size(self, row: DurableStream) -> str:
        """Bytes that count for its owner, in a unit that people read."""
        return filesizeformat(row.kept_bytes)

    @admin.display(description=_("fork of"))
    def source(self, row: DurableStream) -> str:
        """Link to the stream that it was forked from."""
        return linked("think_chat_durablestream", row.forked_from_id, str(row.forked_from or ""))

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, row: DurableStream) -> str:
        """When it was made."""
        return moment(row.created_at)

    @admin.display(description=_("expires"), ordering="expires_at")
    def ends(self, row: DurableStream) -> str:
        """When it ends, if it is not used before."""
        return NOTHING if row.expires_at is None else moment(row.expires_at)

    @admin.display(description=_("closed"), ordering="closed_at")
    def closed(self, row: DurableStream) -> str:
        """When it was closed."""
        return NOTHING if row.closed_at is None else moment(row.closed_at)

    @admin.display(description=_("deleted"))
    def deleted(self, row: DurableStream) -> str:
        """When it was deleted, while forks need its bytes."""
        return NOTHING if row.deleted_at is None else moment(row.deleted_at)

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

    @admin.display(description=_("sent to"))
    def host(self, row: StreamSubscription) -> str:
        """The host of a webhook."""
        return row.url.split("/")[2] if row.url else NOTHING

    @admin.display(description=_("state"))
    def condition(self, row: StreamSubscription) -> str:
        """Say whether its worker is still tried."""
        return str(_("Given up") if row.failures >= MAX_FAILURES else _("Active"))

    @admin.display(description=_("streams"))
    def followed(self, row: StreamSubscription) -> str:
        """Count what it follows."""
        return str(row.links.count())

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
