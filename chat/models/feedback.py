"""Table of feedback: what people think of answers."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class MessageFeedback(models.Model):
    """One person's word about one answer. It goes with the answer: `chat/people/feedback.py` sees to that."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("person"), on_delete=models.CASCADE, related_name="+"
    )
    instance = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="+"
    )
    session = models.ForeignKey("think_sessions.Session", on_delete=models.CASCADE, related_name="+")
    message_id = models.CharField(_("message id"), max_length=128)
    is_good = models.BooleanField(_("good"))
    reason = models.CharField(_("reason"), max_length=1000, blank=True, default="")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("feedback")
        verbose_name_plural = _("feedback")
        constraints = [
            models.UniqueConstraint(fields=["session", "message_id", "user"], name="think_feedback_once"),
        ]
        indexes = [models.Index(fields=["-updated_at"], name="think_feedback_recent")]

    def __str__(self) -> str:
        return self.message_id
