"""Table of the calls of models beside answers: what titles, summaries and the like have used."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class SideCallKind(models.TextChoices):
    """The purpose of a call of a model that is no part of an answer."""

    TITLE = "title", _("title")
    SUMMARY = "summary", _("summary for people")
    COMPACTION = "compaction", _("summary of older messages")
    REVIEW = "review", _("review of a call")
    SAMPLING = "sampling", _("question of an MCP server")


class SideCall(models.Model):
    """One piece of such work, with the figures of its provider and the price of its day.

    Its session's usage has it as well; the rows of turns have the answers.
    """

    instance = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="+"
    )
    kind = models.CharField(_("kind"), max_length=20, choices=SideCallKind.choices)
    model_name = models.CharField(_("model"), max_length=200, blank=True, default="")
    input_tokens = models.PositiveBigIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveBigIntegerField(_("output tokens"), default=0)
    cached_tokens = models.PositiveBigIntegerField(_("cached tokens"), default=0)
    cost = models.DecimalField(_("cost"), max_digits=20, decimal_places=10, default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("call beside answers")
        verbose_name_plural = _("calls beside answers")
        indexes = [models.Index(fields=["created_at"], name="think_side_call_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.created_at}"
