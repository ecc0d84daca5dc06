"""Files in the admin: whose they are, where they are used, their size. Only their owners are served their bytes."""

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked, shortened, title_of
from chat.files import attachments
from chat.models import Attachment
from sessions_app.admin.confirming import confirmation
from thinkproject.kernel.read_only_admin import NOTHING, choice_filter, column, moment

ClaimedFilter = choice_filter(
    _("use"),
    "claimed",
    {"1": (_("In a message"), Q(claimed_at__isnull=False)), "0": (_("Not used"), Q(claimed_at=None))},
)


@admin.register(Attachment)
class AttachmentAdmin(ActionAdmin):
    """Files, newest first."""

    list_display = ("title", "owner", "used_in", "media_type", "size", "created")
    list_filter = (ClaimedFilter, "created_at")
    list_select_related = ("owner", "instance")
    search_fields = ("=id", "=sha256", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact id, checksum or owner, or how the name begins.")
    fields = (
        *("name", "owner", "used_in", "media_type", "size", "created_at", "claimed_at"),
        *("id", "sha256", "storage_name"),
    )
    ordering = ("-id",)
    actions = ("delete_files",)

    title = column(_("name"), lambda row: shortened(row.name), ordering="name")

    @admin.display(description=_("used in"))
    def used_in(self, row: Attachment) -> str:
        """Link to the conversation whose message has it."""
        if row.instance is None:
            return NOTHING
        return linked("think_chat_agentinstance", row.instance_id, title_of(row.instance, reads=row.reads))  # type: ignore[attr-defined] # annotated

    size = column(_("size"), lambda row: filesizeformat(row.byte_size), ordering="byte_size")
    created = column(_("sent"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.action(description=_("Delete with their bytes"), permissions=["remove"])
    def delete_files(self, request: HttpRequest, queryset: QuerySet[Attachment]) -> HttpResponse | None:
        """Delete the selected files."""
        chosen = list(queryset)
        asking = confirmation(
            self,
            request,
            action="delete_files",
            title=_("Delete these files?"),
            consequence=_("Messages that refer to them stay, without the file. This cannot be undone."),
            rows=[(row.pk, f"{row.name}, {row.owner}") for row in chosen],
            button=_("Delete"),
        )
        if asking is not None:
            return asking
        self.log_deletions(request, queryset)
        for row in chosen:
            attachments.delete_attachment(row)
        text = ngettext("%(count)d file was deleted.", "%(count)d files were deleted.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)
        return None
