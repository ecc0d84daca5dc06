"""Links for readers in the admin: whose, how long, and an end to them; never their secret or what they show."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked
from chat.models import ShareLink
from thinkproject.kernel.read_only_admin import column, moment, moment_text


@admin.register(ShareLink)
class ShareLinkAdmin(ActionAdmin):
    """Links for readers, newest first."""

    list_display = ("id", "owner", "conversation", "shows", "created", "state")
    list_filter = ("created_at",)
    list_select_related = ("instance__owner",)
    search_fields = ("=id", "=instance__id")
    search_help_text = _("The exact id of the link or of the conversation.")
    fields = ("id", "owner", "conversation", "shows", "created", "state")
    ordering = ("-created_at", "-id")
    actions = ("revoke_links",)

    owner = column(_("owner"), lambda row: str(row.instance.owner))
    conversation = column(
        _("conversation"), lambda row: linked("think_chat_agentinstance", row.instance_id, row.instance_id)
    )

    @admin.display(description=_("shows"))
    def shows(self, row: ShareLink) -> str:
        """The kinds of content that it shows besides the words."""
        named = ((row.shows_tools, _("tools")), (row.shows_files, _("files")), (row.shows_reasoning, _("thoughts")))
        return ", ".join(str(name) for is_shown, name in named if is_shown) or str(_("words only"))

    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("state"))
    def state(self, row: ShareLink) -> str:
        """Whether it works."""
        if row.revoked_at is not None:
            return _("taken back, %(when)s") % {"when": moment_text(row.revoked_at)}
        if row.expires_at <= timezone.now():
            return _("expired, %(when)s") % {"when": moment_text(row.expires_at)}
        return _("open until %(when)s") % {"when": moment_text(row.expires_at)}

    @admin.action(description=_("Take the chosen links back"), permissions=["manage"])
    def revoke_links(self, request: HttpRequest, rows: QuerySet[ShareLink]) -> None:
        """End those that work."""
        count = rows.filter(revoked_at=None).update(revoked_at=timezone.now())
        text = ngettext("%(count)d link was taken back.", "%(count)d links were taken back.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)
