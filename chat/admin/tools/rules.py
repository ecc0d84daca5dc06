"""Rules about calls in the admin: those of the site and of agents are made here, others are shown and ended."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.columns import about_link, of_conversation, of_present, shortened, state, with_reader
from thinkproject.kernel.read_only_admin import column
from tools_app.core.permissions.rules import Permission, RuleAction, checked
from tools_app.errors import ToolDeclarationInvalid
from tools_app.models import PermissionRule
from tools_app.models.permissions import CLASS, SITE

ACTION_WORDS = {
    RuleAction.ALLOW: ("completed", _("Runs")),
    RuleAction.ASK: ("asked", _("Asks")),
    RuleAction.DENY: ("failed", _("Is refused")),
}
"""Colour and words of what happens to a call."""

OF_SITE = {SITE, CLASS}


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]  # its generic form exists for type checkers only
    """A rule of the site or of an agent."""

    class Meta:
        model = PermissionRule
        fields = ("level", "agent", "action", "key", "pattern", "position", "expires_at")

    @override
    def clean(self) -> dict[str, Any]:
        """Check that it can match something, and that it is the site's or one agent's."""
        given: dict[str, Any] = super().clean() or {}
        if given.get("level") not in OF_SITE:
            raise ValidationError({"level": _("People make their own rules in their conversations.")})
        if (given["level"] == CLASS) != bool(given.get("agent")):
            raise ValidationError({"agent": _("A rule of an agent names it; a rule of the site names none.")})
        if {"action", "key", "pattern"} <= given.keys():
            try:
                checked(Permission(action=RuleAction(given["action"]), key=given["key"], pattern=given["pattern"]))
            except ToolDeclarationInvalid as error:
                raise ValidationError({"key": error.message}) from error
        return given


@admin.register(PermissionRule)
class PermissionRuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # the same
    """Rules, in the order in which they count within a level."""

    form = RuleForm
    list_display = ("rule", "what", "level", "whose", "conversation", "created_by", "expires_at")
    list_filter = ("level", "action")
    list_select_related = ("owner", "created_by")
    search_fields = ("key", "pattern", "agent", "=scope")
    search_help_text = _("A tool, a pattern, an agent, or the exact id of a conversation.")
    ordering = ("level", "position", "created_at")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[PermissionRule]:
        rows: QuerySet[PermissionRule] = with_reader(of_present(super().get_queryset(request)), request)
        return rows.annotate(**of_conversation("scope"))

    @override
    def has_change_permission(self, request: HttpRequest, obj: PermissionRule | None = None) -> bool:
        """People's own rules are theirs to change."""
        is_of_site = obj is None or obj.level in OF_SITE
        return is_of_site and super().has_change_permission(request, obj)

    @override
    def save_model(self, request: HttpRequest, obj: PermissionRule, form: Any, change: bool) -> None:
        if not change:
            obj.created_by_id, obj.via = request.user.pk, "admin"
        super().save_model(request, obj, form, change)

    rule = column(_("rule"), lambda row: shortened(row.key if row.pattern == "*" else f"{row.key}: {row.pattern}", 40))
    what = column(_("a call"), lambda row: state(*ACTION_WORDS[RuleAction(row.action)]), ordering="action")
    whose = column(_("whose"), lambda row: row.agent or (row.owner.get_username() if row.owner is not None else ""))
    conversation = column(
        _("conversation"),
        lambda row: about_link(row) if row.scope else "",
    )
