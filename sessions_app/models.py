"""Tables of conversation storage: a session is a tree of messages and a leaf that is shown."""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db import models
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from sessions_app.core.compaction.compaction import Overlay
from sessions_app.core.messages.shapes import Content
from sessions_app.queries import (
    ACTIVE_LEAF,
    CLIMB,
    COMPACTION_COUNT,
    FLOOR,
    FORKED_DEPTH,
    FORKED_SESSION,
    KEPT,
    LEAVES_BELOW,
    LOWEST_OF_IDS,
    NO_BOUND,
    SHARED,
    STAYING,
    SUBTREE,
    TAIL,
    TAIL_TO_COMPACTION,
    UNREACHED,
    PathBounds,
    own_rows,
    own_rows_of,
    rows_by,
)
from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id


def new_session_id() -> str:
    """Id of a session."""
    return new_id("ses")


def new_compaction_id() -> str:
    """Id of a compaction."""
    return new_id("cmp")


class Session(models.Model):
    """One conversation. `scope` is opaque here; its meaning belongs to the creator of the session."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_session_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    scope = models.CharField(_("scope"), max_length=200, blank=True, default="")
    name = models.CharField(max_length=200, blank=True, default="")
    active_leaf = models.ForeignKey(
        "Message", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # the end of the path that is shown
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks")
    forked_from = models.ForeignKey(
        "Message", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )  # the last message shared with another session; the path to it belongs to this one too
    end_reason = models.CharField(_("reason for the end"), max_length=64, blank=True, default="")
    change_seq = models.PositiveBigIntegerField(_("changes"), default=0)  # advanced in the transaction of every change
    archived_depth = models.PositiveIntegerField(default=0)  # what lies above is kept, but neither shown nor sent
    system_prompt = JSONText(null=True, blank=True)  # the frozen one; null: none yet, an empty text is a value
    loaded_keys = JSONText(default=list, blank=True)  # "label:key" of each skill that the model has loaded
    source = models.CharField(
        _("source"), max_length=64, blank=True, default=""
    )  # where it came from: a caller's own word
    model_name = models.CharField(_("model"), max_length=200, blank=True, default="")  # that answered last
    input_tokens = models.PositiveBigIntegerField(_("tokens in"), default=0)
    output_tokens = models.PositiveBigIntegerField(_("tokens out"), default=0)
    reasoning_tokens = models.PositiveBigIntegerField(_("tokens of reasoning"), default=0)
    cached_tokens = models.PositiveBigIntegerField(_("tokens from a cache"), default=0)
    cost = models.DecimalField(
        _("cost"), max_digits=20, decimal_places=10, default=0
    )  # in the currency of the price table
    max_cost = models.DecimalField(
        _("cost limit"), max_digits=20, decimal_places=10, null=True, blank=True
    )  # no model call beyond
    auto_compaction = models.BooleanField(null=True, blank=True)  # null: the agent and the site decide
    pinned_at = models.DateTimeField(_("pinned"), null=True, blank=True)
    archived_at = models.DateTimeField(_("archived"), null=True, blank=True)
    hidden_at = models.DateTimeField(_("hidden"), null=True, blank=True)  # no search finds it, but that of staff
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now_add=True)

    class Meta:
        verbose_name = _("history")
        verbose_name_plural = _("histories")
        indexes = [models.Index(fields=["scope", "-updated_at", "id"], name="think_session_recent")]

    def __str__(self) -> str:
        return self.name or self.id


class MessageQuerySet(QuerySet["Message"]):
    """Messages, found by where they stand in the tree. Row ids are meant where an argument is called `row_id`."""

    def with_active_leaf_of(self, session_id: str) -> "MessageQuerySet":
        """Add `active_leaf_id`, the message id of a session's active leaf."""
        return self.annotate(active_leaf_id=rows_by(ACTIVE_LEAF, (session_id,)))

    def tail(self, session_id: str, row_id: int | None, bounds: PathBounds) -> "MessageQuerySet":
        """Newest messages of the path to a leaf, root first; without a row id, to the active leaf.

        Adds `floor`, the depth where the session's archive ends.
        """
        limits = (bounds.max_messages, bounds.exchange_bytes, bounds.max_bytes)
        tail = self.filter(pk__in=rows_by(TAIL, (row_id, session_id, *limits)))
        return tail.annotate(floor=rows_by(FLOOR, (session_id,))).order_by("depth")

    def tail_to_compaction(self, session_id: str, row_id: int | None, bounds: PathBounds) -> "MessageQuerySet":
        """The same, down from the next message that ends a compaction of the session, that message included.

        Adds `compaction_count` too: how many compactions of the session are not undone.
        """
        limits = (bounds.max_messages, bounds.exchange_bytes, bounds.max_bytes)
        walk = (session_id, row_id, session_id, session_id, *limits)
        tail = self.filter(pk__in=rows_by(TAIL_TO_COMPACTION, walk))
        counted = tail.annotate(compaction_count=rows_by(COMPACTION_COUNT, (session_id,)))
        return counted.annotate(floor=rows_by(FLOOR, (session_id,))).order_by("depth")

    def on_path(
        self, session_id: str, row_id: int | None, min_depth: int, max_depth: int = NO_BOUND
    ) -> "MessageQuerySet":
        """Messages of the path to a leaf that lie between two depths, both included."""
        return self.filter(pk__in=rows_by(CLIMB, (row_id, session_id, min_depth, max_depth)))

    def shared_with_origin(self, session_id: str, min_depth: int) -> "MessageQuerySet":
        """Messages that a fork shares with its origin, from a depth on; none for a session that is no fork."""
        return self.filter(pk__in=rows_by(SHARED.replace(":floor:", "%s"), (session_id, min_depth)))

    def seen_by(self, session_id: str, min_depth: int) -> "MessageQuerySet":
        """Messages that belong to a session: its own, and from a depth on those it shares with its origin.

        Meant for further narrowing by an indexed column; on its own it reads the whole table.
        """
        shared = rows_by(SHARED.replace(":floor:", "%s"), (session_id, min_depth))
        return self.filter(Q(own_rows(session_id)) | Q(pk__in=shared))

    def named(self, session_id: str, message_ids: Sequence[str]) -> "MessageQuerySet":
        """Messages of a session by their ids, its own or shared with its origin."""
        lowest = LOWEST_OF_IDS.replace(":ids:", ", ".join(["%s"] * len(message_ids)))
        shared = rows_by(SHARED.replace(":floor:", lowest), (session_id, *message_ids))
        return self.filter(message_id__in=message_ids).filter(Q(own_rows(session_id)) | Q(pk__in=shared))

    def named_at(self, session_id: str, depths: Mapping[str, int]) -> "MessageQuerySet":
        """Messages of a session by id: its own, and the origin's at these depths.

        For ids that were on the shared path at these depths: ids are unique in the origin, so nothing has to be walked.
        What is shared and without an owner, or further up than the origin's own, is not among them; `named` finds it.
        """
        shared = Q(depth__lte=rows_by(FORKED_DEPTH, (session_id,))) & own_rows_of(
            rows_by(FORKED_SESSION, (session_id,))
        )
        places = Q()
        for message_id, depth in depths.items():
            places |= Q(message_id=message_id) & (Q(own_rows(session_id)) | (Q(depth=depth) & shared))
        return self.filter(message_id__in=list(depths)).filter(places)

    def roots_of(self, session_id: str) -> "MessageQuerySet":
        """Messages of a session's own without a parent, as far as they have a place."""
        return self.filter(session_id=session_id, parent__isnull=True, placed_at__isnull=False)

    def queue_of(self, session_id: str) -> "MessageQuerySet":
        """Accepted messages without a place, in order."""
        return self.filter(session_id=session_id, placed_at__isnull=True).order_by("queued_position", "pk")

    def leaves_below(self, session_id: str, row_id: int) -> "MessageQuerySet":
        """Ends of the branches below a message, itself when it is one, as a session sees them; newest first."""
        leaves = rows_by(LEAVES_BELOW, (session_id, row_id, session_id, row_id))
        return self.filter(pk__in=leaves).order_by("-placed_at", "-pk")

    def subtree(self, row_id: int) -> "MessageQuerySet":
        """A message and everything below it, whosever it is."""
        return self.filter(pk__in=rows_by(SUBTREE, (row_id,)))

    def needed_by_others(self, session_id: str) -> "MessageQuerySet":
        """Messages of a session that a fork reaches."""
        return self.filter(pk__in=rows_by(KEPT, (session_id, session_id)))

    def staying_without(self, scopes: Sequence[str]) -> "MessageQuerySet":
        """Messages of all sessions of some scopes that would stay if those were deleted: forks of others reach them."""
        return self.filter(pk__in=rows_by(STAYING.replace(":scopes:", ", ".join(["%s"] * len(scopes))), tuple(scopes)))

    def unreached(self, limit: int) -> "MessageQuerySet":
        """Messages whose session is gone and that no fork reaches, at most so many branches of them."""
        return self.filter(pk__in=rows_by(UNREACHED.replace(":start:", "1 = 1"), (limit,)))

    def unreached_above(self, row_id: int) -> "MessageQuerySet":
        """Of a message and those above it, the ones whose session is gone and that no fork reaches."""
        return self.filter(pk__in=rows_by(UNREACHED.replace(":start:", "m.id = %s"), (row_id, 1)))

    def erase(self) -> int:
        """Delete rows without loading them. The caller has seen to it that nothing points at them."""
        return self._raw_delete(self.db)


class Message(models.Model):
    """One message of the tree. A queued one (`placed_at` null) is accepted but has no place in a path yet."""

    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="messages", db_index=False
    )  # null: its session is gone, a fork still reaches it
    message_id = models.CharField(_("message id"), max_length=128)  # the client's or ours; unique per session
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    depth = models.PositiveIntegerField(_("depth"), default=0)  # 0 at a root
    role = models.CharField(max_length=16)  # user, assistant, system
    content: "models.TextField[Content, Content]" = JSONText()  # {"parts": [...], "metadata": {...}?}
    byte_size = models.PositiveIntegerField(default=0)  # of the whole UI message's JSON
    turn_id = models.CharField(_("turn"), max_length=64, blank=True, default="")  # opaque: what wrote it
    author = models.CharField(
        _("author"), max_length=64, blank=True, default=""
    )  # opaque: the person who wrote it, also once that person is gone; empty: the owner of the session
    change_seq = models.PositiveBigIntegerField(
        _("number of its last change"), default=0
    )  # of the session, when last changed
    queued_position = models.PositiveBigIntegerField(null=True, blank=True)  # order of the queue, while queued
    pruned_calls = JSONText(default=list, blank=True)  # ids of calls whose outputs models are not sent any more
    placed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
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


class CompactionTrigger(models.TextChoices):
    """The author of a compaction."""

    MANUAL = "manual", _("On request")
    AUTO = "auto", _("The history was long")  # the session grew beyond its threshold
    OVERFLOW = "overflow", _("A request was too long")  # a request did not fit into the model's context
    ADDED = "added", _("Added by code")  # with a summary of its own


class Compaction(models.Model):
    """A summary that stands for a stretch of a path where models read it. The messages themselves are untouched.

    It applies to a path on which both its ends lie. Message ids and not rows: a fork that makes a shared message its
    own keeps the compactions, and where an end is deleted the messages are read again as they are.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_compaction_id, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="compactions")
    first_id = models.CharField(_("first message"), max_length=128)  # message ids, the first above the last
    last_id = models.CharField(_("last message"), max_length=128)
    summary = models.TextField(_("summary"))
    trigger = models.CharField(_("reason"), max_length=16, choices=CompactionTrigger.choices)
    model_name = models.CharField(_("model"), max_length=200, blank=True, default="")  # that wrote the summary
    message_count = models.PositiveIntegerField(_("messages"), default=0)  # messages it stands for
    tokens_before = models.PositiveIntegerField(default=0)  # of what the model was sent, as estimated
    tokens_after = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("asked for by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    edited_at = models.DateTimeField(_("edited"), null=True, blank=True)
    undone_at = models.DateTimeField(_("undone"), null=True, blank=True)  # it applies to nothing any more

    class Meta:
        verbose_name = _("summary")
        verbose_name_plural = _("summaries")
        indexes = [models.Index(fields=["session", "created_at"], name="think_compaction_session")]

    def __str__(self) -> str:
        return self.id

    def to_overlay(self) -> Overlay:
        """Give what reading needs of it."""
        return Overlay(id=self.id, first_id=self.first_id, last_id=self.last_id, summary=self.summary)


class SessionSummary(models.Model):
    """A session's summary for people. Models do not read it; they read compactions.

    It covers the path to a leaf as it was at a change. Written by a model, or by a person, whose words stay.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="summary")
    text = models.TextField()
    leaf_id = models.CharField(max_length=128, blank=True, default="")  # a message id
    change_seq = models.PositiveBigIntegerField(default=0)  # of the session, when its messages were read
    model_name = models.CharField(max_length=200, blank=True, default="")  # that wrote it; empty: a person did
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    written_at = models.DateTimeField()

    class Meta:
        verbose_name = _("session summary")
        verbose_name_plural = _("session summaries")

    def __str__(self) -> str:
        return self.text[:80]


_OF_ONE = Q(session__isnull=False, owner=None) | Q(session=None, owner__isnull=False)


class ContextBlock(models.Model):
    """A labelled text that models read in their system prompt.

    It belongs to one session, or to a user: then it is the same in all of that user's conversations.
    """

    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="context_blocks")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    label = models.CharField(_("label"), max_length=64)
    content = models.TextField(_("text"), blank=True, default="")
    description = models.CharField(_("description"), max_length=500, blank=True, default="")
    max_tokens = models.PositiveIntegerField(_("token limit"), null=True, blank=True)
    is_runtime = models.BooleanField(_("added by the agent"), default=False)  # while it ran; its class does not name it
    is_removed = models.BooleanField(_("removed"), default=False)  # taken out while the agent ran; its content is kept
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("context block")
        verbose_name_plural = _("context blocks")
        constraints = [
            models.CheckConstraint(condition=_OF_ONE, name="think_block_of_one"),
            models.UniqueConstraint(
                fields=["session", "label"], condition=Q(owner=None), name="think_block_of_session"
            ),
            models.UniqueConstraint(fields=["owner", "label"], condition=Q(session=None), name="think_block_of_user"),
        ]

    def __str__(self) -> str:
        return self.label


class ContextEntry(models.Model):
    """A document under a key in a context block: a skill that is loaded, or an entry that is searched."""

    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.CASCADE, related_name="context_entries"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    label = models.CharField(_("label"), max_length=64)  # of the block
    key = models.CharField(_("key"), max_length=200)
    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    description = models.CharField(_("description"), max_length=500, blank=True, default="")
    content = models.TextField(_("text"), blank=True, default="")
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("context entry")
        verbose_name_plural = _("context entries")
        constraints = [
            models.CheckConstraint(condition=_OF_ONE, name="think_entry_of_one"),
            models.UniqueConstraint(
                fields=["session", "label", "key"], condition=Q(owner=None), name="think_entry_of_session"
            ),
            models.UniqueConstraint(
                fields=["owner", "label", "key"], condition=Q(session=None), name="think_entry_of_user"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.label}/{self.key}"


class ContextChange(models.Model):
    """A change of context: author and time. Append-only."""

    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.CASCADE, related_name="context_changes"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    subject = models.CharField(
        _("subject"), max_length=320
    )  # "block:<label>", "entry:<label>/<key>", "compaction:<id>", "message:<id>"
    action = models.CharField(_("action"), max_length=16)  # set, append, add, remove, delete, edit, undo, ask
    before = models.TextField(blank=True, default="")
    after = models.TextField(blank=True, default="")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # null: code or a model
    via = models.CharField(_("via"), max_length=16)  # model, code, api, admin
    made_in = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )  # the session in which a user's memory was changed; null where that was in none, or for a session's own
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        constraints = [models.CheckConstraint(condition=_OF_ONE, name="think_change_of_one")]
        indexes = [
            models.Index(fields=["session", "-id"], name="think_change_session"),
            models.Index(fields=["owner", "-id"], name="think_change_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class IndexedText(models.Model):
    """The search index entry of one row, under that row's id; written by `search/indexing.py`.

    The full-text index over it is the database's own (`search/sqlite.py`, `search/postgres.py`), and the database
    removes it together with the row: messages are erased without being loaded.
    """

    id = models.BigAutoField(primary_key=True)  # always given; on SQLite only this type is the row's own number
    words = models.TextField()  # as `core/search/words.py::indexed_words` gives them, joined by spaces
    tags = models.TextField()  # whose it is: marks that narrow a search, joined by spaces

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)


class MessageWords(IndexedText):
    """Words of a message in the tree: the texts of people and agents."""

    class Meta:
        verbose_name = _("message words")
        verbose_name_plural = _("message words")


class EntryWords(IndexedText):
    """Words of a context entry."""

    class Meta:
        verbose_name = _("entry words")
        verbose_name_plural = _("entry words")
