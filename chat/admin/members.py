"""Members of conversations and invitations in the admin: who may what where, and an end to it."""

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked
from chat.errors import InvitationNotFound, MemberNotFound
from chat.members.services import remove_member, withdraw_invitation
from chat.models import AgentInstance, Invitation, Membership
from thinkproject.kernel.read_only_admin import column, moment, moment_text

PERSON = f"=user__{get_user_model().USERNAME_FIELD}"


def _conversation(instance: AgentInstance) -> str:
    return linked("think_chat_agentinstance", instance.pk, instance.pk)  # a title may quote a message


@admin.register(Membership)
class MembershipAdmin(ActionAdmin):
    """Members, newest first."""

    list_display = ("user", "role", "conversation", "invited_by", "created", "ended")
    list_filter = ("role", "created_at")
    list_select_related = ("user", "instance", "invited_by")
    search_fields = (PERSON, "=instance__id")
    search_help_text = _("The exact name of the person, or the exact id of the conversation.")
    fields = ("user", "role", "conversation", "invited_by", "created", "ended")
    ordering = ("-created_at", "-id")
    actions = ("end_memberships",)

    conversation = column(_("conversation"), lambda row: _conversation(row.instance))
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")
    ended = column(_("ended"), lambda row: moment(row.revoked_at), ordering="revoked_at")

    @admin.action(description=_("End the chosen memberships"), permissions=["manage"])
    def end_memberships(self, request: HttpRequest, rows: QuerySet[Membership]) -> None:
        """End them at once, on open connections too."""
        count = 0
        for row in rows.filter(revoked_at=None).select_related("instance"):
            try:
                remove_member(row.instance, row.pk)
            except MemberNotFound:  # ended meanwhile
                continue
            count += 1
        text = ngettext("%(count)d membership was ended.", "%(count)d memberships were ended.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)


@admin.register(Invitation)
class InvitationAdmin(ActionAdmin):
    """Invitations, newest first; never their secret."""

    list_display = ("id", "role", "conversation", "made_by", "created", "state")
    list_filter = ("role", "created_at")
    list_select_related = ("instance", "made_by")
    search_fields = ("=id", "=instance__id")
    search_help_text = _("The exact id of the invitation or of the conversation.")
    fields = ("id", "role", "conversation", "made_by", "created", "state")
    ordering = ("-created_at", "-id")
    actions = ("withdraw_invitations",)

    conversation = column(_("conversation"), lambda row: _conversation(row.instance))
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("state"))
    def state(self, row: Invitation) -> str:
        """Whether it can be accepted."""
        if row.ended_at is not None:
            return _("accepted or taken back, %(when)s") % {"when": moment_text(row.ended_at)}
        if row.expires_at <= timezone.now():
            return _("expired, %(when)s") % {"when": moment_text(row.expires_at)}
        return _("open until %(when)s") % {"when": moment_text(row.expires_at)}

    @admin.action(description=_("Take the chosen invitations back"), permissions=["manage"])
    def withdraw_invitations(self, request: HttpRequest, rows: QuerySet[Invitation]) -> None:
        """Take back those that are open."""
        count = 0
        for row in rows.filter(ended_at=None).select_related("instance"):
            try:
                withdraw_invitation(row.instance, row.pk)
            except InvitationNotFound:  # accepted meanwhile
                continue
            count += 1
        text = ngettext("%(count)d invitation was taken back.", "%(count)d invitations were taken back.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)
