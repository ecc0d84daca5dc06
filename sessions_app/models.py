"""Tables of conversation storage: a session is a tree of messages and a leaf that is shown."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sessions_app.querysets import MessageQuerySet
from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id


def new_session_id() -> str:
    """Id of a session."""
    return new_id("ses")


class Session(models.Model):
    """One conversation. `scope` is opaque here; whoever made the session knows what it belongs to."""

    id = models.CharField(primary_key=True, max_length=64, default=new_session_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    scope = models.CharField(max_length=200, blank=True, default="")
    name = models.CharField(max_length=200, blank=True, default="")
    active_leaf = models.ForeignKey(
        "Message", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # the end of the path that is shown
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks")
    forked_from = models.ForeignKey(
        "Message", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )  # the last message shared with another session; the path to it belongs to this one too
    end_reason = models.CharField(max_length=64, blank=True, default="")
    change_seq = models.PositiveBigIntegerField(default=0)  # advanced in the transaction of every change
    archived_depth = models.PositiveIntegerField(default=0)  # what lies above is kept, but neither shown nor sent
    system_prompt = JSONText(null=True, blank=True)  # the frozen one; null: none yet, an empty text is a value
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["scope", "-updated_at", "id"], name="think_session_recent")]

    def __str__(self) -> str:
        return self.name or self.id


class Message(models.Model):
    """One message of the tree. A queued one (`placed_at` null) is accepted but has no place in a path yet."""

    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="messages", db_index=False
    )  # null: its session is gone, a fork still reaches it
    message_id = models.CharField(max_length=128)  # the client's or ours; unique per session
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    depth = models.PositiveIntegerField(default=0)  # 0 at a root
    role = models.CharField(max_length=16)  # user, assistant, system
    content = JSONText()  # {"parts": [...], "metadata": {...}?}
    byte_size = models.PositiveIntegerField(default=0)  # of the whole UI message's JSON
    turn_id = models.CharField(max_length=64, blank=True, default="")  # opaque: who wrote it
    change_seq = models.PositiveBigIntegerField(default=0)  # of the session, when last changed
    queued_position = models.PositiveBigIntegerField(null=True, blank=True)  # order of the queue, while queued
    placed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = [
            # The id first: a fork looks for ids among other sessions' rows as well.
            models.UniqueConstraint(fields=["message_id", "session"], name="think_message_id"),
            models.CheckConstraint(
                condition=Q(placed_at__isnull=False, queued_position=None)
                | Q(placed_at=None, queued_position__isnull=False, parent=None),
                name="think_message_placed_or_queued",
            ),
            models.CheckConstraint(condition=~Q(parent=F("id")), name="think_message_not_own_parent"),
        ]
        indexes = [
            models.Index(fields=["session", "change_seq"], name="think_message_changes"),
            models.Index(
                fields=["session"], condition=Q(parent=None, placed_at__isnull=False), name="think_message_roots"
            ),
            models.Index(fields=["turn_id"], name="think_message_turn"),
            models.Index(
                fields=["session", "queued_position"], condition=Q(placed_at=None), name="think_message_queue"
            ),
        ]

    def __str__(self) -> str:
        return self.message_id
