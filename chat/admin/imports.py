"""Imports in the admin: who brought which archive, how it went, what was left out; nothing of its contents."""

from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked, shortened, state
from chat.conversations.archive_imports import ImportStatus, remove_import, status_of, stop_import
from chat.models import ArchiveImport
from sessions_app.admin.confirming import confirmation
from thinkproject.kernel.read_only_admin import NOTHING, block, column, moment

STATES: Final = {
    ImportStatus.READING: ("running", _("Being read")),
    ImportStatus.READY: ("skipped", _("Waits for the person")),
    ImportStatus.IMPORTING: ("running", _("Importing")),
    ImportStatus.DONE: ("completed", _("Imported")),
    ImportStatus.STOPPED: ("aborted", _("Stopped")),
    ImportStatus.FAILED: ("failed", _("Failed")),
}
COUNTS: Final = (
    "conversation_count",
    "added_count",
    "known_count",
    "grown_count",
    "message_count",
    "file_count",
    "unreadable_count",
    "left_out",
)
"""Counts of a preview or report that are shown. Titles of conversations are not."""


@admin.register(ArchiveImport)
class ArchiveImportAdmin(ActionAdmin):
    """Imports, newest first."""

    list_display = ("title", "owner", "condition", "conversations", "size", "created")
    list_filter = ("created_at",)
    list_select_related = ("owner", "scan", "run")
    search_fields = ("=id", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact id or owner, or how the name begins.")
    fields = (
        *("name", "owner", "condition", "agent", "conversations", "size", "created_at", "error_text"),
        *("found", "brought", "reading", "importing", "id", "storage_name"),
    )
    ordering = ("-created_at", "-id")
    actions = ("stop_imports", "remove_imports")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read the fibers along, by which the state is known."""
        return super().get_queryset(request).select_related("scan", "run", "owner")

    title = column(_("name"), lambda row: shortened(row.name), ordering="name")
    condition = column(_("state"), lambda row: state(*STATES[status_of(row)]))

    @admin.display(description=_("conversations"))
    def conversations(self, row: ArchiveImport) -> str:
        """Count those that were looked at, and all that there are."""
        total = (row.preview or {}).get("conversation_count")
        return f"{row.seen_count} / {total}" if total is not None else str(row.seen_count)

    size = column(_("size"), lambda row: filesizeformat(row.byte_size), ordering="byte_size")
    created = column(_("brought"), lambda row: moment(row.created_at), ordering="created_at")
    found = column(_("found in it"), lambda row: _counts(row.preview))
    brought = column(_("imported"), lambda row: _counts(row.report))
    reading = column(_("run that read it"), lambda row: linked("think_fibers_fiber", row.scan_id, row.scan_id or ""))
    importing = column(
        _("run that imported it"), lambda row: linked("think_fibers_fiber", row.run_id, row.run_id or "")
    )

    @admin.action(description=_("Stop"), permissions=["manage"])
    def stop_imports(self, request: HttpRequest, queryset: QuerySet[ArchiveImport]) -> None:
        """Stop the selected imports where they run."""
        chosen = [row for row in queryset if status_of(row) in {ImportStatus.READING, ImportStatus.IMPORTING}]
        for row in chosen:
            stop_import(row)
            self.log_change(request, row, str(_("Stopped.")))
        text = ngettext("%(count)d import was stopped.", "%(count)d imports were stopped.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)

    @admin.action(description=_("Remove with the uploaded file"), permissions=["remove"])
    def remove_imports(self, request: HttpRequest, queryset: QuerySet[ArchiveImport]) -> HttpResponse | None:
        """Remove the selected imports."""
        chosen = list(queryset)
        asking = confirmation(
            self,
            request,
            action="remove_imports",
            title=_("Remove these imports?"),
            consequence=_("Conversations that came of them stay. What was not imported has to be uploaded again."),
            rows=[(row.pk, f"{row.name}, {row.owner}") for row in chosen],
            button=_("Remove"),
        )
        if asking is not None:
            return asking
        self.log_deletions(request, queryset)
        for row in chosen:
            remove_import(row)
        text = ngettext("%(count)d import was removed.", "%(count)d imports were removed.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)
        return None


def _counts(found: Any) -> str:
    return block({name: found[name] for name in COUNTS if name in found}) if found else NOTHING
