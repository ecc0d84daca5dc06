"""Tables of the injection guard: how it stands in a conversation, and an append-only list of what happened to it."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools_app.core.guard.rules import GuardDecision, SeenText, Spot, Standing
from tools_app.core.origins import Origin


class Guard(models.Model):
    """The guard of one conversation. There is a row once text of others was in its context."""

    session = models.OneToOneField(
        "think_sessions.Session", primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    scope = models.CharField(max_length=64, db_index=True)  # opaque: the instance
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    seen = models.PositiveIntegerField(default=0)  # texts so far
    decision = models.CharField(
        _("decision"),
        max_length=16,
        blank=True,
        default="",
        choices=[
            (GuardDecision.NONE.value, _("asks")),
            (GuardDecision.ASK.value, _("asks, as a person decided")),
            (GuardDecision.UNTIL_NEW.value, _("allowed until there is further text")),
            (GuardDecision.CONVERSATION.value, _("allowed in this conversation")),
        ],
    )
    decided_through = models.PositiveIntegerField(default=0)  # the texts that the decision was about
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("injection guard")
        verbose_name_plural = _("injection guards")
        indexes = [models.Index(fields=["-created_at"], name="think_guard_recent")]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def standing(self) -> Standing:
        """The standing, as a value."""
        return Standing(seen=self.seen, decision=GuardDecision(self.decision), decided_through=self.decided_through)


class GuardEventKind(models.TextChoices):
    """The kind of an event."""

    SEEN = "seen", _("text of others")
    ASK = "ask", _("asks again")
    UNTIL_NEW = "until_new", _("allowed until there is further text")
    CONVERSATION = "conversation", _("allowed in this conversation")


class GuardEvent(models.Model):
    """A text of others that came into a conversation, or a person's decision: added, never changed."""

    guard = models.ForeignKey(Guard, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(_("kind"), max_length=16, choices=GuardEventKind.choices)
    number = models.PositiveIntegerField(_("number"))  # the count of texts with this one, or that a decision was about
    origin = models.CharField(_("origin"), max_length=8, blank=True, default="")
    source = models.CharField(
        _("source"), max_length=200, blank=True, default=""
    )  # for people: an address, a path, a server's name
    message_id = models.CharField(max_length=200, blank=True, default="")  # opaque here: that has the text
    call_id = models.CharField(_("call id"), max_length=128, blank=True, default="")  # that returned it
    name = models.CharField(max_length=128, blank=True, default="")  # of what is in no message, as a server's catalogue
    turn_id = models.CharField(_("turn"), max_length=64, blank=True, default="")  # opaque here
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    via = models.CharField(_("came by"), max_length=16, blank=True, default="")  # the way a decision came in
    created_at = models.DateTimeField(_("when"), auto_now_add=True)

    class Meta:
        verbose_name = _("event of an injection guard")
        verbose_name_plural = _("events of injection guards")
        ordering = ["id"]
        indexes = [models.Index(fields=["guard", "kind", "message_id"], name="think_guard_place")]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"

    @property
    def text(self) -> SeenText:
        """The text of others that it tells of."""
        return SeenText(Origin(self.origin), self.source)

    @property
    def spot(self) -> Spot:
        """The spot where that was seen."""
        return Spot(message_id=self.message_id, call_id=self.call_id, name=self.name)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new event. Errors: `TypeError` for an existing one."""
        if not self._state.adding:
            raise TypeError("Events of a guard are added and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse. Errors: `TypeError`, always."""
        raise TypeError("Events of a guard are added and never deleted.")
