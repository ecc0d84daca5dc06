"""Change feeds in the admin: whose, how far, what is kept; not the names in them, which are of private things."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chat.admin.base import ActionAdmin
from chat.admin.durable_streams import OWNER
from chat.models import FeedHead
from thinkproject.kernel.read_only_admin import column, moment


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

    kept = column(_("entries kept"), lambda row: str(row.seq - row.floor))
    opened = column(_("opened"), lambda row: moment(row.opened_at), ordering="opened_at")
    used = column(_("last used"), lambda row: moment(row.used_at), ordering="used_at")
