"""Files of workspaces in the admin. Who may read messages may read them: as texts, as pictures, or downloaded."""

from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import about, linked, noted, reads_messages, shortened
from chat.admin.tools.workspaces import with_conversation
from chat.files.serving import PiecesResponse, ServedFile, with_safe_headers
from thinkproject.kernel.read_only_admin import NOTHING, block, choice_filter, column, moment
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.media_types import is_inline
from tools_app.core.files.workspace import EntryKind
from tools_app.models import WorkspaceEntry
from tools_app.workspace.selectors import open_entry

PREVIEW_BYTES: Final = 64 * 1024
KIND_WORDS: Final = {
    EntryKind.FILE: _("File"),
    EntryKind.DIRECTORY: _("Directory"),
    EntryKind.SYMLINK: _("Link"),
}


KindFilter = choice_filter(_("kind"), "kind", {each: (word, Q(kind=each)) for each, word in KIND_WORDS.items()})


@admin.register(WorkspaceEntry)
class WorkspaceEntryAdmin(ActionAdmin):
    """Files, directories and links by their paths, workspace by workspace."""

    list_display = ("title", "used_in", "what", "size_shown", "changed")
    list_filter = (KindFilter, "modified_at")
    search_fields = ("=workspace__id", "=workspace__attachments__scope", "=path_key", "=name")
    search_help_text = _("The exact id of a workspace or conversation, a path, or a name.")
    ordering = ("workspace", "path_key")
    fieldsets = (
        (None, {"fields": ("path", "used_in", "what", "size_shown", "changed", "download", "preview")}),
        (_("Ids"), {"classes": ("collapse",), "fields": ("workspace", "version", "storage_name", "created_at")}),
    )

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkspaceEntry]:
        """Add the conversation. Contents are read for one file only."""
        rows: QuerySet[WorkspaceEntry] = super().get_queryset(request)
        return with_conversation(rows.select_related("workspace").defer("content"), "workspace")

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.content_view)
        return [path("<path:object_id>/content/", view, name="think_tools_workspaceentry_content"), *super().get_urls()]

    def content_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """The bytes of a file, as no browser runs them. `?download=1`: to be saved, pictures too."""
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row) or not reads_messages(request):
            raise PermissionDenied
        if row is None or row.kind != EntryKind.FILE:
            raise Http404
        served = ServedFile(name=row.name, media_type=row.media_type, size=row.size, tag=str(row.version))
        response = PiecesResponse(open_entry(row), 0, row.size)
        response["Content-Length"] = str(row.size)
        return with_safe_headers(response, served, is_download=bool(request.GET.get("download")))

    title = column(_("path"), lambda row: shortened(row.path), ordering="path_key")

    @override
    def page_title(self, row: WorkspaceEntry) -> str:
        return shortened(row.path)

    @admin.display(description=_("used by"))
    def used_in(self, row: Any) -> str:
        """Link to the workspace, by the conversation that used it first."""
        shown = about(row, reads=row.reads)
        name = row.workspace.name
        text = name if shown == NOTHING else shown
        return noted(linked("think_tools_storedworkspace", row.workspace_id, text), "" if text == name else name)

    what = column(
        _("kind"),
        lambda row: noted(KIND_WORDS[EntryKind(row.kind)], shortened(row.target or row.media_type, 60)),
        ordering="kind",
    )
    size_shown = column(
        _("size"), lambda row: filesizeformat(row.size) if row.kind == EntryKind.FILE else NOTHING, ordering="size"
    )
    changed = column(_("changed"), lambda row: moment(row.modified_at), ordering="modified_at")

    @admin.display(description=_("download"))
    def download(self, row: Any) -> str:
        """Link to its bytes, for those who may read them."""
        if row.kind != EntryKind.FILE or not row.reads:
            return NOTHING
        return format_html('<a href="{}?download=1">{}</a>', _content_url(row), row.name)

    @admin.display(description=_("content"))
    def preview(self, row: Any) -> str:
        """The file as a picture or the beginning of its text, for those who may read it."""
        if row.kind != EntryKind.FILE:
            return NOTHING
        if not row.reads:
            return str(_("Only who may read messages may read files."))
        if is_inline(row.media_type):
            return format_html('<img class="think-preview" src="{}" alt="{}">', _content_url(row), row.name)
        if not row.media_type.startswith("text/") and row.media_type != "application/json":
            return str(_("This is no text and no picture."))
        with open_entry(row) as file:
            begin = file.read(PREVIEW_BYTES + 1)
        shown = block(shown_text(begin[:PREVIEW_BYTES], is_head=len(begin) > PREVIEW_BYTES)[0])
        return noted(shown, _("Only the beginning is shown.")) if len(begin) > PREVIEW_BYTES else shown


def _content_url(row: WorkspaceEntry) -> str:
    return reverse("admin:think_tools_workspaceentry_content", args=[row.pk])
