"""Table of the messages between agents: the inboxes of the agents of a room, and what they answered.

A room is an instance. Its own agent and those below it that take part in it each have an inbox there: the rows that
name them as the target and are not processed. What is answered to them is written by an ordinary turn.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText


class AgentMessageKind(models.TextChoices):
    """The kind of a message between agents."""

    USER = "user", _("message")
    ASSISTANT = "assistant", _("answer")
    SYSTEM = "system", _("failure")  # in the place of an answer: why there is none


class AgentMessage(models.Model):
    """One message to an agent of a room. It waits in the agent's inbox until it is processed, which happens once."""

    seq = models.BigAutoField(_("number"), primary_key=True)  # the order of messages, whatever clocks say
    room = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("room"), on_delete=models.CASCADE, related_name="agent_messages"
    )
    sender = models.CharField(
        _("sender"), max_length=200, blank=True, default=""
    )  # route name of the agent; empty: a person or a program
    target = models.CharField(_("to"), max_length=200, blank=True, default="")  # the same
    role = models.CharField(_("kind"), max_length=16, choices=AgentMessageKind.choices, default=AgentMessageKind.USER)
    content = JSONText(_("text"))  # a text with whatever characters models write
    request_id = models.CharField(
        _("request id"), max_length=64, blank=True, default=""
    )  # of a call that wants a reply
    in_reply_to = models.CharField(_("in reply to"), max_length=64, blank=True, default="")  # the request id
    call_chain = JSONText(_("asked by"), default=list, blank=True)  # agents that wait for this, the first one first
    late = models.BooleanField(_("late"), default=False)  # a reply for which no call waited any more
    # What the call that asks waits with: fiber and key. NULL: no call waits, or none does any more; {}: not parked yet.
    wait = JSONText(null=True, blank=True)
    # Whatever deletes turns takes them out of both (`chat/turns/state/deletion.py`).
    asked_in = models.ForeignKey(
        "think_chat.Turn",
        verbose_name=_("sent by"),
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
    )
    turn = models.ForeignKey(
        "think_chat.Turn",
        verbose_name=_("turn"),
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
    )  # the one that has taken it, or has written it
    created_at = models.DateTimeField(_("sent"), db_default=Now(), editable=False)
    processed_at = models.DateTimeField(_("processed"), null=True, blank=True)

    class Meta:
        verbose_name = _("agent message")
        verbose_name_plural = _("agent messages")
        constraints = [
            models.UniqueConstraint(
                fields=["room", "request_id"], condition=~Q(request_id=""), name="think_agent_request"
            ),
            models.UniqueConstraint(
                fields=["room", "in_reply_to"], condition=~Q(in_reply_to=""), name="think_agent_reply"
            ),  # a request is answered once, whatever crashes
        ]
        indexes = [
            models.Index(fields=["room", "target"], condition=Q(processed_at=None), name="think_agent_inbox"),
        ]

    def __str__(self) -> str:
        return f"{self.sender or '—'} → {self.target or '—'} {self.seq}"
