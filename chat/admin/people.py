"""Preferences of people in the admin: to read. Each person changes their own, on the page."""

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.admin.base import ActionAdmin
from chat.models import PersonPreferences
from thinkproject.kernel.read_only_admin import NOTHING, column, moment


@admin.register(PersonPreferences)
class PersonPreferencesAdmin(ActionAdmin):
    """Preferences, the last changed first."""

    list_display = ("user", "name", "language", "zone", "theme", "text_size", "changed")
    list_filter = ("language", "theme", "text_size")
    list_select_related = ("user",)
    search_fields = (f"=user__{get_user_model().USERNAME_FIELD}",)
    search_help_text = _("The exact name of the person.")
    fields = (
        *("user", "name", "language", "zone", "theme", "text_size"),
        *("about_me", "how_to_answer", "agents", "changed"),
    )
    ordering = ("-updated_at",)

    @admin.display(description=_("read by"))
    def agents(self, row: PersonPreferences) -> str:
        """Name the agents that read the two texts."""
        if row.read_by is None:
            return gettext("all agents")
        return ", ".join(row.read_by) or NOTHING

    changed = column(_("changed"), lambda row: moment(row.updated_at), ordering="updated_at")
