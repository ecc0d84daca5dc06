"""API tokens and grants to programs in the admin: whose they are, whether they are used, and their end."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.access import api_tokens
from chat.access.oauth import grants
from chat.admin.base import ActionAdmin
from chat.admin.columns import state
from chat.models import ApiToken, OAuthGrant
from sessions_app.admin.confirming import confirmation
from thinkproject.kernel.read_only_admin import NOTHING, column, moment


@admin.register(ApiToken)
class ApiTokenAdmin(ActionAdmin):
    """Tokens by name and prefix; the secret is nowhere."""

    list_display = ("name", "user", "validity", "limited", "used", "created", "expires", "prefix")
    list_filter = ("created_at", "used_at")
    list_select_related = ("user",)
    search_fields = ("=prefix", "^name", f"=user__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact prefix or user name, or how the name begins.")
    fields = ("name", "user", "validity", "limited", "prefix", "created_at", "used_at", "expires_at", "revoked_at")
    ordering = ("-id",)
    actions = ("revoke_tokens",)

    @admin.display(description=_("state"))
    def validity(self, row: ApiToken) -> str:
        """Whether it opens anything."""
        if row.revoked_at is not None:
            return state("aborted", _("Revoked"))
        if row.expires_at is not None and row.expires_at <= timezone.now():
            return state("skipped", _("Expired"))
        return state("completed", _("Valid"))

    limited = column(_("limited to"), lambda row: ", ".join(row.scopes) or NOTHING)
    used = column(_("last used"), lambda row: moment(row.used_at), ordering="used_at")
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")
    expires = column(_("expires"), lambda row: moment(row.expires_at), ordering="expires_at")

    @admin.action(description=_("Revoke"), permissions=["manage"])
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> HttpResponse | None:
        """End the selected tokens for good."""
        chosen: list[Any] = list(queryset)
        asking = confirmation(
            self,
            request,
            action="revoke_tokens",
            title=_("Revoke these tokens?"),
            consequence=_("Programs that use them are refused from now on. A revoked token cannot be restored."),
            rows=[(row.pk, f"{row.name} ({row.prefix}…), {row.user}") for row in chosen],
            button=_("Revoke"),
        )
        if asking is not None:
            return asking
        done = [row for row in chosen if api_tokens.revoke_token(row.pk)]
        for row in done:
            self.log_change(request, row, str(_("Revoked.")))
        text = ngettext("%(count)d token was revoked.", "%(count)d tokens were revoked.", len(done))
        self.message_user(request, text % {"count": len(done)}, messages.SUCCESS)
        return None


@admin.register(OAuthGrant)
class OAuthGrantAdmin(ActionAdmin):
    """Grants by person and program; tokens and codes are nowhere."""

    list_display = ("program", "user", "agent", "validity", "used", "created")
    list_filter = ("created_at", "used_at")
    list_select_related = ("user", "client")
    search_fields = ("=id", "^client__name", f"=user__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact user name, or how the name of the program begins.")
    fields = ("program", "user", "agent", "resource", "abilities", "validity", "created_at", "used_at", "revoked_at")
    ordering = ("-created_at",)
    actions = ("revoke_grants",)

    program = column(_("program"), lambda row: str(row.client), ordering="client__name")
    abilities = column(_("scopes"), lambda row: ", ".join(row.scopes))

    @admin.display(description=_("state"))
    def validity(self, row: OAuthGrant) -> str:
        """Whether it works."""
        if row.revoked_at is not None:
            return state("aborted", _("Ended"))
        if row.exchanged_at is None:
            return state("skipped", _("Not used"))
        return state("completed", _("Valid"))

    used = column(_("last used"), lambda row: moment(row.used_at), ordering="used_at")
    created = column(_("created"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.action(description=_("End"), permissions=["manage"])
    def revoke_grants(self, request: HttpRequest, queryset: QuerySet[OAuthGrant]) -> HttpResponse | None:
        """End the selected grants for good."""
        chosen: list[Any] = list(queryset)
        asking = confirmation(
            self,
            request,
            action="revoke_grants",
            title=_("End these grants?"),
            consequence=_("The programs are refused from now on. The person has to authorise them again."),
            rows=[(row.pk, f"{row.client}, {row.agent}, {row.user}") for row in chosen],
            button=_("End"),
        )
        if asking is not None:
            return asking
        done = [row for row in chosen if grants.revoke(row.pk)]
        for row in done:
            self.log_change(request, row, str(_("Ended.")))
        text = ngettext("%(count)d grant has ended.", "%(count)d grants have ended.", len(done))
        self.message_user(request, text % {"count": len(done)}, messages.SUCCESS)
        return None
