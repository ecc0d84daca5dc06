"""Tables of the chat app: instances, turns, the cold log, tokens, attachments.

Columns, constraints and derived properties only. Who may do what is decided in `auth.py`, writes happen in services.
"""

from datetime import UTC, datetime
from typing import ClassVar, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject

NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def new_instance_id() -> str:
    """Id of an instance."""
    return new_id("ins")


def new_turn_id() -> str:
    """Id of a turn, which is also the name of its stream."""
    return new_id("trn")


def new_attachment_id() -> str:
    """Id of an attachment."""
    return new_id("att")


class PresentInstances(models.Manager["AgentInstance"]):
    """The conversations that are not in *Deleted*: the only ones that anything but retention and quotas finds."""

    def get_queryset(self) -> models.QuerySet["AgentInstance"]:
        """Leave out what was deleted."""
        return super().get_queryset().filter(deleted_at=None)


class AgentInstance(models.Model):
    """One agent class under one name for one owner: the address of a conversation. Appears on the first write.

    One that its owner deleted keeps its rows for a while. Its address is free meanwhile, and `objects` leaves it out,
    with the sub-agents below it, which are marked alike. `everything` has these too.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_instance_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    parent = models.ForeignKey(
        "self", verbose_name=_("parent"), null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    ancestors = JSONText(default=list)  # [agent, name] of each instance above, root first; never changes
    agent = models.CharField(_("agent"), max_length=200)  # kebab-case route name of the class
    name = models.CharField(_("name"), max_length=255)  # percent-decoded
    title = models.CharField(max_length=100, blank=True, default="")
    title_is_provisional = models.BooleanField(default=False)  # only the first words; a better one may replace it
    session = models.ForeignKey(
        "think_sessions.Session", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # the current one
    state = JSONText(_("state"), null=True, blank=True)
    state_version = models.PositiveBigIntegerField(_("version of the state"), default=0)
    config = JSONText(null=True, blank=True)
    config_version = models.PositiveBigIntegerField(default=0)  # advanced by every change; 0: never set
    model_choice = JSONText(null=True, blank=True)  # the model and parameters that people chose; NULL: the agent's own
    last_body = JSONText(default=dict, blank=True)  # custom body of the newest client request, for continuations
    client_tools = JSONText(default=list)  # tools that the clients run, as the last request gave them
    generation = models.PositiveBigIntegerField(
        _("generation"), default=0
    )  # advanced by clear: what is older may not persist
    turn_count = models.PositiveBigIntegerField(_("turns"), default=0)  # last position given in this instance
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    active_at = models.DateTimeField(_("last active"), auto_now_add=True)  # last accepted message; orders the list
    seen_at = models.DateTimeField(_("last seen by its owner"), null=True, blank=True)  # when the owner last looked
    archived_at = models.DateTimeField(_("archived"), null=True, blank=True)
    pinned_at = models.DateTimeField(_("pinned"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)  # NULL: it is there
    held_schedules = JSONText(null=True, blank=True)  # ids of those that the deletion paused
    is_temporary = models.BooleanField(_("temporary"), default=False)  # as the sub-agents below it
    project = models.ForeignKey(
        "think_chat.Project",
        verbose_name=_("project"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="conversations",
    )  # of its owner's; of roots alone

    everything: ClassVar[models.Manager["AgentInstance"]] = models.Manager()  # the first: of the admin and of cascades
    objects: ClassVar[PresentInstances] = PresentInstances()

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "agent", "name"],
                condition=Q(parent=None, owner__isnull=False, deleted_at=None),
                name="think_instance_owned",
            ),
            models.UniqueConstraint(
                fields=["agent", "name"],
                condition=Q(parent=None, owner=None, deleted_at=None),
                name="think_instance_shared",
            ),
            models.UniqueConstraint(
                fields=["parent", "agent", "name"],
                condition=Q(parent__isnull=False, deleted_at=None),
                name="think_instance_child",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-active_at", "id"], name="think_instance_recent"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="think_instance_deleted"),
            models.Index(fields=["active_at"], condition=Q(is_temporary=True), name="think_instance_temporary"),
        ]

    def __str__(self) -> str:
        return f"{self.agent}/{self.name}"


class TurnTrigger(models.TextChoices):
    """The entry point that admitted a turn."""

    SUBMIT = "submit-message"
    REGENERATE = "regenerate-message"
    CONTINUE = "continue"
    EDIT = "edit-message"
    PROGRAM = "program"


class Delivery(models.TextChoices):
    """The fate of a message that is sent while another turn runs."""

    QUEUE = "queue"  # it waits for its turn
    STEER = "steer"  # the answer takes it in between two steps
    INTERRUPT = "interrupt"  # the answer is stopped, and this is the next


class TurnOptions(TypedDict, total=False):
    """Options of a turn's request that have no column."""

    answers: list[str]  # ids of the user messages that the turn answers
    later: list[Message]  # what enters the conversation when the turn starts; gone once it is there
    merged: list[str]  # ids of messages before its own that are one with them for the model, in order
    called: bool  # the caller of a turn that waits for its input is there and calls its function
    metadata: JSONObject  # of a submission: the caller's own
    caller_tools: list[JSONObject]  # tools that the program that asked for the turn runs, as they are declared
    leaf: str | None  # id of the message that the answer hangs below; there once the turn has begun
    model_choice: JSONObject  # the conversation's when the turn began; missing where there was none
    goes_on_from: list[str]  # ids of the turns of the same answer before this one, oldest first
    denied: list[list[str]]  # lists of patterns of tools that the turn which has started it denies
    inbox: bool  # true: it takes what is in the inbox when it begins; false: it goes on from one that has
    direct_call: JSONObject  # `tool` and `input` of the one call that the turn makes instead of asking a model
    opening: JSONObject  # of a command: `calls` before the answer, the line `then` after them, its `model`


class Turn(models.Model):
    """One request, one fiber, one stream, one answer. Its status is its fiber's; there is no column for it here."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_turn_id, editable=False)
    instance = models.ForeignKey(AgentInstance, on_delete=models.CASCADE, related_name="turns")
    session = models.ForeignKey(
        "think_sessions.Session", on_delete=models.DO_NOTHING, related_name="+"
    )  # a history that is deleted takes its turns along through a signal: their logs and calls go with them (`apps.py`)
    fiber = models.OneToOneField("think_fibers.Fiber", on_delete=models.PROTECT, related_name="+")
    parent = models.ForeignKey(
        "self", verbose_name=_("parent"), null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    delivery = models.CharField(_("delivery"), max_length=16, choices=Delivery.choices, default=Delivery.QUEUE)
    answered_by = models.ForeignKey(
        "self", verbose_name=_("answered by"), null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # the turn whose answer has taken its message in
    retry_of = models.ForeignKey(
        "self",
        verbose_name=_("answers again after"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )  # the turn that had answered the same message, or failed to
    position = models.PositiveBigIntegerField(
        _("place in the conversation")
    )  # order of acceptance in the instance, from 1
    author = models.CharField(
        _("author"), max_length=64, blank=True, default=""
    )  # key of the member who asked, also once that person is gone; empty: the owner
    request_id = models.CharField(_("request id"), max_length=128)
    idempotency_key = models.CharField(_("idempotency key"), max_length=128, null=True, blank=True)
    trigger = models.CharField(max_length=32, choices=TurnTrigger.choices)
    generation = models.PositiveBigIntegerField()  # of the instance at admission
    input_ids = JSONText(
        _("messages of the request"), default=list
    )  # ids of the user messages this turn places, in order
    base_id = models.CharField(_("message to build on"), max_length=128, null=True, blank=True)  # where it is explicit
    base_is_explicit = models.BooleanField(
        _("names the message to build on"), default=False
    )  # False: the active leaf when the turn starts
    assistant_id = models.CharField(
        _("id of the answer"), max_length=128
    )  # stamped on `start`, kept by the stored message
    body = JSONText(_("custom body"), default=dict)  # fields of the request
    options: "models.TextField[TurnOptions, TurnOptions]" = JSONText(
        _("options"), default=dict
    )  # what else the entry path asked for
    model_name = models.CharField(_("model"), max_length=200, blank=True, default="")
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=20, decimal_places=10, default=0)  # in the currency of the price table
    step_count = models.PositiveIntegerField(_("steps"), default=0)
    changed_file_count = models.PositiveIntegerField(_("changed files"), default=0)  # in workspaces
    retry = JSONText(null=True)  # the last time that its model was to be asked again: attempt, attempts, retryAt, code
    model_report = JSONText(
        _("models"), null=True, blank=True
    )  # where several answered: `models` with their calls, tokens and cost, and `switches` between them
    error_text = models.TextField(blank=True, default="")  # the text for clients
    error_code = models.CharField(max_length=64, blank=True, default="")
    accepted_at = models.DateTimeField(_("accepted"), auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            models.UniqueConstraint(fields=["instance", "request_id"], name="think_turn_request"),
            models.UniqueConstraint(
                fields=["instance", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="think_turn_idempotency",
            ),
            models.UniqueConstraint(fields=["instance", "position"], name="think_turn_position"),
        ]
        indexes = [
            models.Index(fields=["session", "position"], name="think_turn_session"),
            models.Index(fields=["instance", "accepted_at"], name="think_turn_recent"),
            models.Index(fields=["accepted_at"], name="think_turn_accepted"),  # what was used of late, of all people
        ]

    def __str__(self) -> str:
        return self.id


class TurnSeen(models.Model):
    """A user saw how a failed turn ended, by live delivery or by an acknowledged replay."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="seen_by")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name = _("seen turn")
        verbose_name_plural = _("seen turns")
        constraints = [models.UniqueConstraint(fields=["turn", "user"], name="think_turn_seen")]

    def __str__(self) -> str:
        return f"{self.turn_id} seen by {self.user_id}"


class StreamSegment(models.Model):
    """A run of chunks of one stream in the database: the cold log. `data` is one chunk's JSON a line."""

    stream = models.CharField(max_length=64)
    first_offset = models.PositiveBigIntegerField(_("first offset"))
    last_offset = models.PositiveBigIntegerField(_("last offset"))
    data = models.TextField(_("data"))
    epoch = models.CharField(max_length=32, blank=True, default="")  # life of the stream in which it was written
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("stream segment")
        verbose_name_plural = _("stream segments")
        constraints = [models.UniqueConstraint(fields=["stream", "first_offset"], name="think_segment_offset")]

    def __str__(self) -> str:
        return f"{self.stream} {self.first_offset}-{self.last_offset}"


class ApiToken(models.Model):
    """A named bearer token. Only its hash is stored; the token is shown once."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(_("prefix"), max_length=16, db_index=True)  # shown in lists, finds the row
    token_hash = models.CharField(max_length=64, unique=True)
    scopes = JSONText(_("limited to"), default=list)  # names of doors that it opens; empty: all of them
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class SignInLink(models.Model):
    """A one-time sign-in link of `make run`. Only its hash is stored; 15 minutes; loopback only."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("sign-in link")
        verbose_name_plural = _("sign-in links")

    def __str__(self) -> str:
        return f"link for {self.user_id}"


class Attachment(models.Model):
    """A file of a user's, in storage; the row is written after the object. Unclaimed ones are swept."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_attachment_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    instance = models.ForeignKey(
        AgentInstance, null=True, blank=True, on_delete=models.CASCADE, related_name="attachments"
    )  # set when a message claims it
    name = models.CharField(_("name"), max_length=255)
    media_type = models.CharField(_("media type"), max_length=127)
    byte_size = models.PositiveBigIntegerField()
    sha256 = models.CharField(_("checksum (SHA-256)"), max_length=64)
    storage_name = models.CharField(_("name in storage"), max_length=255)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    claimed_at = models.DateTimeField(_("in a message since"), null=True, blank=True)
    is_by_hand = models.BooleanField(_("uploaded by hand"), default=False)  # by its owner, in a browser

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")
        indexes = [models.Index(fields=["claimed_at", "created_at"], name="think_attachment_orphans")]

    def __str__(self) -> str:
        return self.name


class MessageCount(models.Model):
    """Counts one user's stored messages for the quotas (`chat/instances/quota.py`). It is recounted now and then."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+")
    minute_started_at = models.DateTimeField(default=NEVER)
    minute_count = models.PositiveBigIntegerField(default=0)  # added since then
    message_count = models.PositiveBigIntegerField(default=0)
    byte_count = models.PositiveBigIntegerField(default=0)
    counted_at = models.DateTimeField(default=NEVER)  # when both were last counted from the messages

    class Meta:
        verbose_name = _("message count")
        verbose_name_plural = _("message counts")

    def __str__(self) -> str:
        return f"{self.message_count} messages of {self.owner_id}"
