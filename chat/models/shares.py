"""Table of links by which anybody who has them reads a conversation, up to a message, without signing in.

What such a link shows is decided in `chat/shares/projection.py`.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_share_id() -> str:
    """Id of a link; its secret is another value."""
    return new_id("shr")


class ShareLink(models.Model):
    """A read-only view of a path as it ends at one message, until it expires. Only the hash of its secret is stored."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_share_id, editable=False)
    instance = models.ForeignKey(
        "think_chat.AgentInstance",
        verbose_name=_("conversation"),
        on_delete=models.CASCADE,
        related_name="share_links",
    )
    session_id = models.CharField(_("history"), max_length=64)  # no key: deleting a history costs no look for links
    message_id = models.CharField(_("last message"), max_length=128)
    title = models.CharField(_("title"), max_length=100, blank=True, default="")  # as it was when the link was made
    token_hash = models.CharField(max_length=64, unique=True)
    shows_tools = models.BooleanField(_("shows results of tools"), default=False)
    shows_files = models.BooleanField(_("shows attached files"), default=False)
    shows_reasoning = models.BooleanField(_("shows thoughts"), default=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("link for readers")
        verbose_name_plural = _("links for readers")

    def __str__(self) -> str:
        return self.id
