"""The table of stored rules about calls. Rules of classes are code, too (`Think.permissions`)."""

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id
from tools_app.core.permissions.rules import MAX_KEY_CHARS, MAX_PATTERN_CHARS, Permission, RuleAction, RuleLevel

SITE: Final = RuleLevel.SITE.value
CLASS: Final = RuleLevel.CLASS.value
OWNER: Final = RuleLevel.OWNER.value
CONVERSATION: Final = RuleLevel.CONVERSATION.value


def new_rule_id() -> str:
    """Make the id of a rule."""
    return new_id("rul")


class PermissionRule(models.Model):
    """One rule about calls. Within its level the one with the higher position counts, then the later one."""

    id = models.CharField(primary_key=True, max_length=40, default=new_rule_id, editable=False)
    level = models.CharField(
        _("whose"),
        max_length=16,
        choices=[
            (SITE, _("the site's")),
            (CLASS, _("an agent's")),
            (OWNER, _("a person's")),
            (CONVERSATION, _("a conversation's")),
        ],
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )  # of rules of a person and of a conversation
    agent = models.CharField(_("agent"), max_length=128, blank=True, default="")  # of a rule of an agent
    scope = models.CharField(max_length=64, blank=True, default="")  # opaque: of a rule of a conversation
    action = models.CharField(
        _("what happens"),
        max_length=8,
        choices=[
            (RuleAction.ALLOW.value, _("runs")),
            (RuleAction.ASK.value, _("asks a person")),
            (RuleAction.DENY.value, _("is refused")),
        ],
    )
    key = models.CharField(_("tool"), max_length=MAX_KEY_CHARS)
    pattern = models.CharField(_("pattern"), max_length=MAX_PATTERN_CHARS, default="*")
    position = models.IntegerField(_("position"), default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("made by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    via = models.CharField(_("came by"), max_length=16, blank=True, default="")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)

    class Meta:
        verbose_name = _("rule about calls")
        verbose_name_plural = _("rules about calls")
        ordering = ["position", "created_at", "id"]
        indexes = [
            models.Index(fields=["owner", "scope"], name="think_rule_owner"),
            models.Index(fields=["scope"], condition=~models.Q(scope=""), name="think_rule_scope"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(level=SITE, owner=None, agent="", scope="")
                | (models.Q(level=CLASS, owner=None, scope="") & ~models.Q(agent=""))
                | models.Q(level=OWNER, owner__isnull=False, agent="", scope="")
                | (models.Q(level=CONVERSATION, agent="") & ~models.Q(scope="")),
                name="think_rule_level",
            )
        ]

    def __str__(self) -> str:
        return self.permission.name

    @property
    def permission(self) -> Permission:
        """The rule as a value."""
        return Permission(
            action=RuleAction(self.action),
            key=self.key,
            pattern=self.pattern,
            level=RuleLevel(self.level),
            rule_id=self.pk,
            expires_at=self.expires_at,
        )
