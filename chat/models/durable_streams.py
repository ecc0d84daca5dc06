"""Tables of the Durable Streams server: logs of bytes that programs write and follow, and who is woken by them.

Not the logs of turns, which are `StreamSegment`: these have an owner, a path, a content type and a life of their own.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText


class DurableStream(models.Model):
    """An append-only log of bytes at a path of its owner's. Positions count bytes from 0; `tail` is the end.

    A fork has what its source has below `fork_at`, by reference. A key is never used again, so it tells the lives of a
    path apart.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    path = models.CharField(_("path"), max_length=400)
    content_type = models.CharField(_("content type"), max_length=200)
    is_json = models.BooleanField(_("JSON messages"), default=False)
    tail = models.PositiveBigIntegerField(_("end"), default=0)
    kept_bytes = models.PositiveBigIntegerField(_("bytes kept"), default=0)  # of its own, with what rows take
    ttl_seconds = models.PositiveBigIntegerField(_("lifetime after the last use (s)"), null=True)
    expires_at = models.DateTimeField(_("expires"), null=True)
    last_seq = models.CharField(max_length=400, blank=True, default="")
    forked_from = models.ForeignKey(
        "self", verbose_name=_("fork of"), null=True, on_delete=models.DO_NOTHING, related_name="forks"
    )
    fork_base = models.PositiveBigIntegerField(default=0)  # the position that was asked for
    fork_sub = models.PositiveBigIntegerField(default=0)  # so many bytes or messages after it
    fork_at = models.PositiveBigIntegerField(_("forked at"), default=0)
    depth = models.PositiveSmallIntegerField(default=0)  # how many forks it is away from a stream that is none
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"))  # read or written; kept where it decides about the end of life
    closed_at = models.DateTimeField(_("closed"), null=True)
    closed_by = JSONText(null=True)  # producer, epoch and sequence of the append that closed it
    deleted_at = models.DateTimeField(_("deleted"), null=True)  # forks still need its bytes

    class Meta:
        verbose_name = _("durable stream")
        verbose_name_plural = _("durable streams")
        constraints = [models.UniqueConstraint(fields=["owner", "path"], name="think_durable_stream_path")]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="think_durable_stream_end")
        ]

    def __str__(self) -> str:
        return self.path


class StreamEntry(models.Model):
    """One append. `data` of a JSON stream are messages, each followed by a comma."""

    stream = models.ForeignKey(DurableStream, on_delete=models.CASCADE, related_name="entries")
    end = models.PositiveBigIntegerField()  # position after it
    data = models.BinaryField()

    class Meta:
        verbose_name = _("entry of a durable stream")
        verbose_name_plural = _("entries of durable streams")
        constraints = [models.UniqueConstraint(fields=["stream", "end"], name="think_stream_entry_end")]

    def __str__(self) -> str:
        return f"{self.stream_id} to {self.end}"


class StreamProducer(models.Model):
    """The place of a writer with an id, so that what it sends twice is stored once."""

    stream = models.ForeignKey(DurableStream, on_delete=models.CASCADE, related_name="producers")
    producer = models.CharField(max_length=200)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        verbose_name = _("writer of a durable stream")
        verbose_name_plural = _("writers of durable streams")
        constraints = [models.UniqueConstraint(fields=["stream", "producer"], name="think_stream_producer")]

    def __str__(self) -> str:
        return f"{self.producer} of {self.stream_id}"


class StreamSubscription(models.Model):
    """A worker that is woken when streams have something new for it: by a webhook, or by an entry of another stream.

    While `wake_id` is set, one worker has the work until `leased_until`.
    """

    class Kind(models.TextChoices):
        """The way in which the worker is woken."""

        WEBHOOK = "webhook", _("by a webhook")
        PULL = "pull-wake", _("by an entry of a stream")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=200)  # the id in its address
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    pattern = models.CharField(_("pattern"), max_length=400, blank=True, default="")
    configuration = models.CharField(max_length=64)  # fingerprint of what it was made with
    url = models.CharField(_("address"), max_length=2000, blank=True, default="")
    root = models.CharField(max_length=400)  # the address of this server's streams, as the maker knows it
    wake_path = models.CharField(_("path of the wakes"), max_length=400, blank=True, default="")
    lease_ms = models.PositiveIntegerField(_("lease (ms)"))
    description = models.CharField(_("description"), max_length=1000, blank=True, default="")
    generation = models.PositiveBigIntegerField(_("wakes"), default=0)
    wake_id = models.CharField(max_length=64, blank=True, default="")
    holder = models.CharField(_("worker"), max_length=200, blank=True, default="")
    leased_until = models.DateTimeField(_("leased until"), null=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    error_text = models.CharField(_("last failure"), max_length=500, blank=True, default="")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("subscription of streams")
        verbose_name_plural = _("subscriptions of streams")
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="think_subscription_name")]

    def __str__(self) -> str:
        return self.name


class SubscriptionLink(models.Model):
    """One path that a subscription follows, and the position up to which its worker is done."""

    subscription = models.ForeignKey(StreamSubscription, on_delete=models.CASCADE, related_name="links")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")  # for one lookup
    path = models.CharField(max_length=400)
    is_explicit = models.BooleanField(default=False)  # named, else found by the pattern
    acked = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("subscribed stream")
        verbose_name_plural = _("subscribed streams")
        constraints = [models.UniqueConstraint(fields=["subscription", "path"], name="think_subscription_link")]
        indexes = [models.Index(fields=["owner", "path"], name="think_subscription_path")]

    def __str__(self) -> str:
        return self.path
