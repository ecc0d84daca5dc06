"""The record of what extensions called, made and refused alike. The newest calls of each conversation are kept."""

import time
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from thinkproject.kernel.errors import ThinkError
from tools_app.errors import ExtensionDenied, ExtensionUnloaded
from tools_app.extensions.host import ExtensionPlace
from tools_app.extensions.loaded import LoadedExtension
from tools_app.fetching.errors import FetchFailed
from tools_app.models.extensions import ExtensionCall

CALLS_KEPT = 1_000
"""Records of calls that are kept for one conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A call as it is recorded. `subject`: a path, a label, an address; never a content."""

    method: str
    subject: str
    during: str


def note_call(extension: LoadedExtension, place: ExtensionPlace, call: HostCall, error: ThinkError | None) -> None:
    """Record a call and its outcome. Durable when it returns."""
    row = ExtensionCall(
        extension_id=extension.pk,
        name=extension.name,
        scope=place.scope,
        owner_id=place.owner_id,
        turn_id=place.turn_id,
        call_id=place.call_id,
        during=call.during[:100],
        method=call.method[:60].replace("\x00", ""),
        subject=call.subject,
        is_refused=_is_refusal(error),
        error="" if error is None else error.message[:500].replace("\x00", ""),
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:  # it has just been unloaded
        row.extension_id = None
        row.save(force_insert=True)


def trim_calls(scope: str) -> None:
    """Let go of the oldest records of a conversation, beyond `CALLS_KEPT`."""
    rows = ExtensionCall.objects.filter(scope=scope).order_by("-pk")
    oldest = rows.values_list("pk", flat=True)[CALLS_KEPT : CALLS_KEPT + 1].first()
    if oldest is not None:
        ExtensionCall.objects.filter(scope=scope, pk__lte=oldest).delete()


def calls_of(*, name: str, scope: str = "", owner_id: int | None = None) -> QuerySet[ExtensionCall]:
    """Recorded calls of an extension by its name, newest first: in one conversation, or in all of a user's."""
    rows = ExtensionCall.objects.filter(name=name)
    return (rows.filter(scope=scope) if scope else rows.filter(owner_id=owner_id)).order_by("-pk")


def now_ms() -> int:
    """The time for the clock of the guest."""
    return int(time.time() * 1000)


def _is_refusal(error: ThinkError | None) -> bool:
    if isinstance(error, FetchFailed):
        return error.reason in {"disallowed_url", "disallowed_redirect"}
    return isinstance(error, ExtensionDenied | ExtensionUnloaded)
