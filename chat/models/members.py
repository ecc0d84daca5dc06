"""Tables of people who share a conversation with its owner: members with a role, and invitations to become one.

What a role may see and do is decided in `chat/members/policy.py`.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_member_id() -> str:
    """Id of a membership."""
    return new_id("mem")


def new_invitation_id() -> str:
    """Id of an invitation; its secret is another value."""
    return new_id("inv")


class Role(models.TextChoices):
    """The place of a person in a conversation, least first. The owner's is that of the conversation, and not given."""

    READER = "reader", _("reads")
    WRITER = "writer", _("writes")
    APPROVER = "approver", _("writes and approves")
    OWNER = "owner", _("owner")


GIVEN = [(role.value, role.label) for role in (Role.READER, Role.WRITER, Role.APPROVER)]
"""Choices of what can be given to others."""


class Membership(models.Model):
    """A person's role in another's conversation and its sub-agents, until it is revoked."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_member_id, editable=False)
    instance = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="members"
    )  # a root: sub-agents have its members
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("person"), on_delete=models.CASCADE, related_name="+"
    )
    role = models.CharField(_("role"), max_length=16, choices=GIVEN)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("invited by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    revoked_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "user"], condition=Q(revoked_at=None), name="think_member_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} {self.instance_id}"


class Invitation(models.Model):
    """A link that makes the first person who accepts it a member. Only the hash of its secret is stored."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_invitation_id, editable=False)
    instance = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="invitations"
    )
    role = models.CharField(_("role"), max_length=16, choices=GIVEN)
    token_hash = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("invited by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)  # accepted, or taken back

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return self.id
