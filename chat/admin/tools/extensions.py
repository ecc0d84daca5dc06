"""Extensions in the admin: what each is made of, may do and has done; changed, disabled, and disabled everywhere."""

from typing import Any, Final

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin, PageAdmin
from chat.admin.columns import Text, about_link, linked, noted, of_conversation, shortened, state
from chat.admin.tools.extension_pages import ExtensionPages
from chat.admin.tools.highlighting import highlighted
from chat.instances.notifications import notify_conversation
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, block, choice_filter, column, moment
from tools_app.core.extensions.manifest import parse_manifest, parse_permissions
from tools_app.core.extensions.permissions import in_words
from tools_app.core.files.diffs import unified
from tools_app.errors import FileFailed
from tools_app.extensions.loaded import with_ban
from tools_app.extensions.services import (
    allow_source,
    ban_source,
    current_version,
    holder_of,
    make_site_wide,
    set_enabled,
    unload_extension,
)
from tools_app.models.extensions import BannedSource, Extension, ExtensionCall, ExtensionLevel, ExtensionVersion

CALLS_SHOWN: Final = 100


class VersionInline(ReadOnlyInline):
    """Versions, the newest first, each with what it changed."""

    template = "admin/think_sessions/read_only_inline.html"
    model = ExtensionVersion
    fields = ("number", "written", "asks_for", "difference")
    readonly_fields = fields
    ordering = ("-number",)

    @admin.display(description=_("written"))
    def written(self, row: ExtensionVersion) -> str:
        """When, by whom, and by what way."""
        by = "" if row.author is None else row.author.get_username()
        return noted(moment(row.created_at), " · ".join(part for part in (by, str(row.get_via_display())) if part))

    @admin.display(description=_("asks for"))
    def asks_for(self, row: ExtensionVersion) -> str:
        """Its version and the permissions of its manifest."""
        manifest = parse_manifest(row.manifest)
        words = " ".join(translate(each) for each in in_words(manifest.permissions, manifest))
        return noted(manifest.version, words)

    @admin.display(description=_("changes"))
    def difference(self, row: ExtensionVersion) -> str:
        """The lines of the source that differ from the version before it."""
        before = ExtensionVersion.objects.filter(extension_id=row.extension_id, number__lt=row.number)
        older = before.order_by("-number").first()
        if older is None:
            return NOTHING
        try:
            found = unified(f"{older.source}\n", f"{row.source}\n", str(older.number), str(row.number))
        except FileFailed as error:
            found = error.message
        return block(found) if found else NOTHING


class CallColumns:
    """Columns of recorded calls."""

    made = column(_("call"), lambda row: noted(row.method, shortened(row.subject, 120)))

    @admin.display(description=_("outcome"))
    def outcome(self, row: ExtensionCall) -> str:
        """Whether it was made, refused or failed."""
        if row.is_refused:
            return state("aborted", _("Refused"), shortened(row.error, 200))
        return state("error", _("Failed"), shortened(row.error, 200)) if row.error else state("completed", _("Made"))

    at = column(_("when"), lambda row: moment(row.created_at), ordering="created_at")


ExtensionStateFilter = choice_filter(
    _("state"),
    "runs",
    {
        "yes": (_("Enabled"), Q(enabled=True, is_banned=False)),
        "no": (_("Disabled"), Q(enabled=False)),
        "nowhere": (_("Disabled everywhere"), Q(is_banned=True)),
    },
)


@admin.register(Extension)
class ExtensionAdmin(PageAdmin):
    """Extensions of conversations, people and the site."""

    change_form_template = "admin/think_tools/extension/change_form.html"
    change_list_template = "admin/think_tools/extension/change_list.html"
    list_display = ("title", "range", "standing", "may", "changed")
    list_filter = (ExtensionStateFilter, "level", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("name", "=prefix", "=scope", "=sha256", "=owner__username")
    search_help_text = _("A name, a user, the exact id of a conversation, or the hash of a source.")
    ordering = ("-updated_at", "-pk")
    inlines = (VersionInline,)
    fieldsets = (
        (None, {"fields": ("range", "standing", "described", "may", "asked_for", "tools", "hooks", "changed")}),
        (_("Source"), {"fields": ("source",)}),
        (_("Calls to its host"), {"fields": ("calls",)}),
        (_("Ids"), {"classes": ("collapse",), "fields": ("prefix", "sha256", "number", "scope", "created_at")}),
    )
    actions = ("enable", "disable", "disable_everywhere", "let_run_again", "give_to_everybody", "unload")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Extension]:
        """Add the conversation, and whether the source is disabled everywhere."""
        rows: QuerySet[Extension] = super().get_queryset(request)
        return with_ban(rows.annotate(**of_conversation("scope")))

    @override
    def get_urls(self) -> list[URLPattern]:
        return [*ExtensionPages(self).urls(), *super().get_urls()]

    title = column(_("extension"), lambda row: noted(row.name, str(row.manifest.get("version", ""))), ordering="name")

    @admin.display(description=_("for"))
    def range(self, row: Any) -> str:
        """The conversation, the person, or everybody."""
        if row.level == ExtensionLevel.INSTANCE:
            return noted(about_link(row), _owner(row))
        return _owner(row) if row.level == ExtensionLevel.USER else str(row.get_level_display())

    @admin.display(description=_("state"))
    def standing(self, row: Any) -> str:
        """Whether it runs."""
        if row.is_banned:
            return state("error", _("Disabled everywhere"))
        return state("completed", _("Enabled")) if row.enabled else state("aborted", _("Disabled"))

    may = column(_("may"), lambda row: _words(parse_permissions(row.granted), row))

    @admin.display(description=_("asks for"))
    def asked_for(self, row: Extension) -> str:
        """The permissions of its manifest, where they are more."""
        asked = parse_manifest(row.manifest).permissions
        return NOTHING if asked == parse_permissions(row.granted) else _words(asked, row)

    described = column(_("description"), lambda row: row.manifest.get("description") or NOTHING)

    @admin.display(description=_("tools"))
    def tools(self, row: Extension) -> str:
        """Its tools as models call them."""
        found = row.surface["tools"]
        lines = ((f"{row.prefix}_{each['name']}", each["description"]) for each in found)
        return format_html_join("", "<div><code>{}</code> {}</div>", lines) if found else NOTHING

    hooks = column(_("hooks"), lambda row: ", ".join(row.surface["hooks"]) or NOTHING)
    changed = column(_("changed"), lambda row: moment(row.updated_at), ordering="updated_at")
    source = column(_("source"), lambda row: highlighted(current_version(row).source))

    @admin.display(description=_("calls"))
    def calls(self, row: Extension) -> str:
        """The newest of its calls, made and refused."""
        shown = CallColumns()
        found = list(ExtensionCall.objects.filter(extension_id=row.pk).order_by("-pk")[:CALLS_SHOWN])
        if not found:
            return NOTHING
        lines = ((shown.at(each), each.during, shown.made(each), shown.outcome(each)) for each in found)
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", lines)
        titles = (_("when"), _("during"), _("call"), _("outcome"))
        heads = format_html_join("", '<th scope="col">{}</th>', ((title,) for title in titles))
        return format_html(
            '<div class="think-wide" tabindex="0" role="region" aria-label="{}"><table><thead><tr>{}</tr></thead>'
            "<tbody>{}</tbody></table></div>",
            _("Calls to its host"),
            heads,
            body,
        )

    @admin.action(description=_("Enable"), permissions=["manage"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Let the selected ones run again."""
        self._set(request, queryset, is_enabled=True)

    @admin.action(description=_("Disable"), permissions=["manage"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Stop the selected ones: at their next call, also where they run now."""
        self._set(request, queryset, is_enabled=False)

    @admin.action(description=_("Disable everywhere the same source is"), permissions=["manage"])
    def disable_everywhere(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Disable their sources on the whole site, at once and for later."""
        done = 0
        for row in queryset:
            done += ban_source(row.sha256, reason=row.name, by=request.user.pk)
            self.log_change(request, row, str(_("Source disabled everywhere.")))
        _report(self, request, queryset, done, _("%(done)d sources are disabled everywhere."))

    @admin.action(description=_("Let the source run again everywhere"), permissions=["manage"])
    def let_run_again(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Take that back."""
        done = 0
        for row in queryset:
            done += allow_source(row.sha256)
            self.log_change(request, row, str(_("Source allowed again.")))
        _report(self, request, queryset, done, _("%(done)d sources may run again."))

    @admin.action(description=_("Give a copy to everybody"), permissions=["manage"])
    def give_to_everybody(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Load the selected ones for the whole site, as they are."""
        done = 0
        for row in queryset:
            try:
                make_site_wide(row, by=request.user.pk)
            except ThinkError as error:
                self.message_user(request, translate(error.phrase), messages.ERROR)
                continue
            done += 1
            self.log_change(request, row, str(_("Given to everybody.")))
        _report(self, request, queryset, done, _("%(done)d extensions are everybody's now."))

    @admin.action(description=_("Unload"), permissions=["remove"])
    def unload(self, request: HttpRequest, queryset: QuerySet[Extension]) -> None:
        """Remove the selected ones with their versions. What they called stays recorded."""
        chosen = list(queryset)
        for row in chosen:
            self.log_deletions(request, Extension.objects.filter(pk=row.pk))
            unload_extension(holder_of(row), row.name)
            _notify(row)
        text = str(_("%(done)d extensions were unloaded.")) % {"done": len(chosen)}
        self.message_user(request, text, messages.SUCCESS)

    def _set(self, request: HttpRequest, queryset: QuerySet[Extension], *, is_enabled: bool) -> None:
        chosen = list(queryset)
        for row in chosen:
            set_enabled(holder_of(row), row.name, is_enabled)
            self.log_change(request, row, str(_("Enabled.") if is_enabled else _("Disabled.")))
        text = _("%(done)d extensions are enabled.") if is_enabled else _("%(done)d extensions are disabled.")
        _report(self, request, queryset, len(chosen), text)


@admin.register(ExtensionCall)
class ExtensionCallAdmin(CallColumns, ActionAdmin):
    """Calls of extensions to their host, those that were refused too."""

    scope_column = "scope"
    list_display = ("title", "conversation", "made", "outcome", "at")
    list_filter = ("is_refused", "method", "created_at")
    list_select_related = ("owner",)
    search_fields = ("=name", "=scope", "=turn_id", "subject")
    search_help_text = _("An extension, the exact id of a conversation or a turn, or a part of an address or path.")
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("title", "conversation", "made", "outcome", "at")}),
        (_("Ids"), {"classes": ("collapse",), "fields": ("turn", "call_id")}),
    )

    title = column(
        _("extension"),
        lambda row: noted(
            linked("think_tools_extension", row.extension_id, row.name) if row.extension_id else row.name, row.during
        ),
        ordering="name",
    )
    conversation = column(
        _("conversation"),
        lambda row: noted(about_link(row), _owner(row)),
    )
    turn = column(
        _("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id) if row.turn_id else NOTHING
    )


@admin.register(BannedSource)
class BannedSourceAdmin(ActionAdmin):
    """Sources that run nowhere."""

    list_display = ("sha256", "reason", "banned_by", "at")
    search_fields = ("=sha256", "reason")
    ordering = ("-pk",)
    fieldsets = ((None, {"fields": ("sha256", "reason", "banned_by", "at")}),)
    actions = ("allow",)

    at = column(_("when"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.action(description=_("Let these sources run again"), permissions=["manage"])
    def allow(self, request: HttpRequest, queryset: QuerySet[BannedSource]) -> None:
        """Take the selected bans back."""
        done = sum(allow_source(sha256) for sha256 in list(queryset.values_list("sha256", flat=True)))
        text = str(_("%(done)d sources may run again.")) % {"done": done}
        self.message_user(request, text, messages.SUCCESS)


def _words(permissions: Any, row: Extension) -> str:
    words = in_words(permissions, parse_manifest(row.manifest))
    return format_html_join("", "<div>{}</div>", ((translate(each),) for each in words))


def _owner(row: Any) -> str:
    return NOTHING if row.owner is None else row.owner.get_username()


def _report(page: ActionAdmin, request: HttpRequest, rows: QuerySet[Extension], done: int, text: Text) -> None:
    """Notify open pages, and report to the person what was done."""
    for row in rows:
        _notify(row)
    page.message_user(request, str(text) % {"done": done}, messages.SUCCESS)


def _notify(row: Extension) -> None:
    if row.level == ExtensionLevel.INSTANCE:
        notify_conversation(row.owner_id, row.scope)
