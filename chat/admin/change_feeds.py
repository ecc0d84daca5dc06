"""Change feeds in the admin: whose, how far, what is kept; not the names in them, which are of private things."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chat.admin.base import ActionAdmin
from chat.admin.durable_streams import OWNER
from chat.models import FeedHead
from thinkproject.kernel.read_only_admin import moment


@admin.register(FeedHead)
class FeedHeadAdmin(ActionAdmin):
    """Feeds, those used last first."""

    list_display = ("owner", "is_open", "seq", "kept", "opened", "used")
    list_filter = ("is_open",)
    list_select_related = ("owner",)
    search_fields = (OWNER,)
    search_help_text = _("The exact owner.")
    fields = ("owner", "is_open", "seq", "floor", "kept", "opened", "used")
    ordering = ("-used_at",)

    @admin.display(description=_("entries kept"))
    def kept(self, row: FeedHead) -> str:
        """Count the changes that can be read."""
        return str(row.seq - row.floor)

    @admin.display(description=_("opened"), ordering="opened_at")
    def opened(self, row: FeedHead) -> str:
        """When it was opened last."""
        return moment(row.opened_at)

    @admin.display(description=_("last used"), ordering="used_at")
    def used(self, row: FeedHead) -> str:
        """When it was read last, within the hour."""
        return moment(row.used_at)
